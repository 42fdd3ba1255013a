"""Engineer: grade one reply and see why it got its score."""

from judge import GRADER

from autorubric import Rubric

rubric = Rubric.from_file("rubric.yaml")
report = rubric.grade_sync("We are sorry! Please send the lamp back.", GRADER, query="My lamp is broken.")

print(f"score {report.score:.2f}")
for criterion in report.report:
    print(f"{criterion.name:10} {criterion.final_verdict}: {criterion.final_reason}")
