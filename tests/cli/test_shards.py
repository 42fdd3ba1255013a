"""`autorubric eval --shard` and `autorubric merge`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import TEXTS, Cli


def test_shards_are_graded_and_merged(cli: Cli, dataset: str) -> None:
    """Each in a folder of its own; together they are the run of the whole."""
    whole = cli("eval", dataset, "--judge", "lexical", "--name", "whole", "--json").json
    for shard in ("0/2", "1/2"):
        done = cli("eval", dataset, "--judge", "lexical", "--name", "part", "--shard", shard)
        assert done.code == 0
    folders = [str(Path("experiments") / f"part-{i}-of-2") for i in range(2)]
    merged = cli("merge", *folders, "--out", "experiments/all", "--json")
    assert merged.code == 0
    assert merged.json["total_items"] == len(TEXTS)
    assert merged.json["mean_score"] == pytest.approx(whole["mean_score"])
    assert merged.json["notices"] == []
    again = cli("merge", *folders, "--out", "experiments/all")
    assert again.code == 2
    assert "already exists" in again.err
    partly = cli("merge", folders[1], "--out", "experiments/half")
    assert partly.code == 0
    assert "missing: shard 0 of 2" in partly.err
    assert "Run half" in partly.out


@pytest.mark.parametrize("shard", ["2/2", "9", "one/two", "0/0", "5/9"])
def test_shards_that_are_none_are_refused(cli: Cli, dataset: str, shard: str) -> None:
    """The message says what a shard is."""
    done = cli("eval", dataset, "--judge", "lexical", "--shard", shard)
    assert done.code == 2
    assert "shard" in done.err


def test_an_executor_that_is_not_there_is_refused(cli: Cli, dataset: str) -> None:
    """The message names those that are."""
    done = cli("eval", dataset, "--judge", "lexical", "--executor", "nosuch")
    assert done.code == 2
    assert "available: local" in done.err


def test_a_dry_run_of_a_shard_counts_its_items_alone(cli: Cli, dataset: str) -> None:
    """And leaves out the votes that the shard's own run holds."""
    call = ("eval", dataset, "--judge", "lexical", "--name", "part", "--shard", "0/2")
    whole = cli(*call[:-2], "--dry-run", "--json").json
    half = cli(*call, "--dry-run", "--json").json
    assert (whole["items"], half["items"]) == (4, 2)
    assert half["votes"] == whole["votes"] / 2
    assert cli(*call).code == 0
    done = cli(*call, "--dry-run", "--json").json
    assert (done["votes"], done["stored_votes"]) == (0, half["votes"])
