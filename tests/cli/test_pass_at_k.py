"""`autorubric pass-at-k`."""

from __future__ import annotations

from pathlib import Path

import pytest

from autorubric import Criterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import JudgeRequest
from tests.cli.conftest import Cli


@pytest.fixture
def runs(cli: Cli, tmp_path: Path) -> list[str]:
    """Two runs of two tasks with two trials each; the penalty is met in all trials of `b`."""

    def judge(request: JudgeRequest) -> str:
        said = str(request.submission.text).split()
        return "MET" if request.criterion.name in said else "UNMET"

    rubric = Rubric(
        [
            Criterion(name="done", requirement="It is done.", gate="required", weight=2),
            Criterion(name="rude", requirement="It is rude.", weight=-1),
        ]
    )
    texts = {"a": ["done", "nothing"], "b": ["done rude", "done rude"]}
    items = [
        DataItem(submission=text, id=f"{task}{i}", metadata={"task": task})
        for task, each in texts.items()
        for i, text in enumerate(each)
    ]
    for name in ("one", "two"):
        dataset = RubricDataset(rubric=rubric, items=items)
        evaluate_sync(dataset, CriterionGrader(judges=[judge]), experiment_name=name)
    return ["experiments/one", "experiments/two"]


def test_rates_by_task_key(cli: Cli, runs: list[str]) -> None:
    """Each k has its figures; by default all criteria must pass, and penalties must not be met."""
    done = cli("pass-at-k", runs[0], "--task", "task", "--k", "1", "--k", "2", "--json")
    assert done.code == 0
    assert done.json["runs"] == runs[:1]
    one, two = done.json["pass_rates"]
    assert (one["k"], one["pass_at_k"]["value"], one["pass_hat_k"]["value"]) == (1, 0.25, 0.25)
    assert (two["k"], two["pass_at_k"]["value"], two["pass_hat_k"]["value"]) == (2, 0.5, 0.0)
    shown = cli("pass-at-k", runs[0], "--task", "task", "--k", "2")
    assert "1 of 4 trials of 2 tasks passed" in shown.out and "pass^k" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--passes", "done"), 1.0),
        (("--passes", "gates"), 1.0),
        (("--passes", "done", "--passes", "rude"), 0.5),
        (("--passes", "0.4"), 1.0),
        (("--passes", "0.9"), 0.5),
    ],
)
def test_rules_for_a_trial(cli: Cli, runs: list[str], options: tuple[str, ...], expected: float) -> None:
    """Criteria, gates or a minimum score decide."""
    done = cli("pass-at-k", runs[0], "--task", "task", "--k", "2", "--json", *options)
    assert done.json["pass_rates"][0]["pass_at_k"]["value"] == expected


def test_one_run_per_trial(cli: Cli, runs: list[str]) -> None:
    """Without --task, items of several runs with one id are trials; one run alone is undefined for k=2."""
    done = cli("pass-at-k", *runs, "--k", "2", "--passes", "done", "--json")
    assert done.json["pass_rates"][0]["pass_hat_k"] == pytest.approx(
        done.json["pass_rates"][0]["pass_hat_k"] | {"value": 0.75, "n": 4}
    )
    alone = cli("pass-at-k", runs[0], "--k", "2")
    assert alone.code == 3
    assert "no_repeats" in alone.out
    assert "group the items with --task KEY, pass more runs, or use a smaller --k" in alone.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "name"), "has no metadata key 'name'; keys: task"),
        (("--passes", "dune"), "unknown criterion 'dune'; available: done, rude"),
        (("--k", "0"), "k must be an integer of at least 1; got 0"),
        (("--passes", "1", "--passes", "done"), "unknown criterion '1'; available: done, rude"),
        (("missing",), "missing"),
    ],
)
def test_errors(cli: Cli, runs: list[str], options: tuple[str, ...], message: str) -> None:
    """Errors name the value and what is allowed, with exit code 2."""
    done = cli("pass-at-k", runs[0], *options)
    assert (done.code, message in done.err) == (2, True), done.err
