"""Researcher: ask whether a panel of judges beats its members."""

from judge import look_for_words

from autorubric import CriterionGrader, JudgeReply, JudgeSpec, RubricDataset, evaluate_sync


def count_words(request):
    """A second judge: long replies are polite and name a next step."""
    words = len((request.submission.text or "").split())
    good = words > 8 if request.criterion.name in ("polite", "next_step") else False
    return JudgeReply(answer="MET" if good else "UNMET")


def say_yes(request):
    """A third judge that is too lenient."""
    return JudgeReply(answer="UNMET" if request.criterion.name == "blames" else "MET")


judges = {"words": look_for_words, "length": count_words, "lenient": say_yes}
grader = CriterionGrader(judges=[JudgeSpec(judge, name) for name, judge in judges.items()])
dataset = RubricDataset.from_file("replies.csv", rubric="rubric.yaml", id="ticket")
result = evaluate_sync(dataset, grader, experiment_name="panel", on_mismatch="rejudge", show_progress=False)

metrics = result.compute_metrics(per_judge=True)
accuracy = {name: one.criterion_accuracy for name, one in (metrics.per_judge or {}).items()}
accuracy["panel"] = metrics.criterion_accuracy
best = max((name for name in accuracy if name != "panel"), key=lambda name: accuracy[name] or 0)
for name, value in accuracy.items():
    print(f"{name:8} accuracy {value:.2f}")
beats = (accuracy["panel"] or 0) > (accuracy[best] or 0)
print(f"the panel {'beats' if beats else 'does not beat'} its best member, {best}")
