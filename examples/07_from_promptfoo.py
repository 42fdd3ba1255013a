"""Team lead: grade replies by the model-graded assertions of a promptfoo configuration."""

from pathlib import Path

from autorubric import CriterionGrader, JudgeReply, evaluate_sync, from_promptfoo

Path("promptfooconfig.yaml").write_text(
    """
prompts: ["{{question}}"]
tests:
  - description: order
    vars: {question: "Where is my order?"}
    assert:
      - {type: llm-rubric, value: "The reply says what happens next.", metric: next_step}
      - {type: llm-rubric, value: "The reply is polite.", metric: polite}
""",
    encoding="utf-8",
)
replies = {"order": "Thank you. It leaves our warehouse today."}
dataset = from_promptfoo("promptfooconfig.yaml", submissions=replies)
words = {"next_step": "leaves", "polite": "thank"}


def judge(request):
    """Look for one word per criterion; use a model instead."""
    found = words[request.criterion.name] in request.submission.text.lower()
    return JudgeReply(answer="MET" if found else "UNMET")


grader = CriterionGrader(judges=[judge])
result = evaluate_sync(
    dataset, grader, experiment_name="from-promptfoo", on_mismatch="rejudge", show_progress=False
)
for item in result.item_results:
    names = [criterion.name for criterion in item.report.report]
    print(f"{dataset.get_item_prompt(item.item_idx)}  score {item.report.score:.2f} on {names}")
