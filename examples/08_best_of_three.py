"""Engineer: generate three replies and keep the one with the best score."""

from judge import GRADER

from autorubric import Rubric, Strategy
from autorubric.apps.strategy import RubricThreshold

rubric = Rubric.from_file("rubric.yaml")
drafts = [
    "Read the terms.",
    "Thank you for your message.",
    "Thank you! Please send the item back; the refund follows on Friday.",
]
threshold = RubricThreshold(rubric, GRADER, 0.3)
strategy = Strategy(verify=threshold, cost=threshold, num_candidates=3, max_iterations=1)
result = strategy.run_sync(lambda prompt, attempt: drafts[attempt], "Can I get a refund?")

print("winner:", result.winner)
for candidate in result.candidates:
    print(f"cost {candidate.cost if candidate.cost is not None else '–'}  {candidate.content}")
