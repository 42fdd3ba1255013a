"""The critique pass: every draft of a file put to a teacher, one record a draft."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from autorubric._files import shortened
from autorubric._sync import run_sync
from autorubric.critique._critics import critic_of
from autorubric.critique._critique_pass import OUTPUTS, UNFINISHED, CritiquePass
from autorubric.critique._manifest import Setup, check_apart
from autorubric.critique._schema import CritiqueSchema
from autorubric.critique._unfinished import Unfinished
from autorubric.errors import ArgumentError
from autorubric.eval import spending_limit
from autorubric.llm import spending_within
from autorubric.rubric import Rubric
from autorubric.values import Json


def generate_critiques(  # noqa: PLR0913 - the public contract
    drafts_path: str | Path,
    out_dir: str | Path,
    teacher: Any,
    config: Mapping[str, Json] | None = None,
    schema: Mapping[str, Json] | str | Path | None = None,
    template: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    *,
    rubric: Rubric | str | Path | None = None,
    threshold: float | None = None,
    retry_errors: bool = False,
    dry_run: bool = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> dict[str, Json]:
    """The statistics of a critique pass, which writes one record a draft; safe inside a running event loop.

    Writes `critiques_v1.jsonl`, `critiques_v1_manifest.json` and `critiques_v1_stats.json`. Records are in
    the order in which critiques arrive, at most 32 drafts being under way, or as many as
    `max_parallel_requests` says; a teacher that is a plain function is asked for one draft at a time unless
    the config says more. A critique that cannot be used is a record with its error. The pass stops (`stopped`
    is `errors`) where the teacher only fails, with the same provider error or time-out.

    Args:
        drafts_path: JSON lines, each `{"id", "prompt", "output", "contract"}`; further keys are let be. Lines
            that give no draft, and ids that come twice, are told of under `faults`; the rest goes on.
        out_dir: Where the files go; made where it is missing.
        teacher: A model's name, an `LLMConfig`, an `LLMClient`, an object with `forward(prompt)` or
            `aforward(prompt)`, or a function of a `TeacherPrompt`, which gives JSON text, a dict, a
            `TeacherReply`, or an object with a text as `.text`. With a rubric, anything that `judges=[...]`
            takes.
        config: `{"models": [...], "generation": {...}}`: fallbacks and settings of a model given by name.
            Its `timeout`, in seconds, holds for an async function or an `aforward` too, for one critique; a
            plain function cannot be ended, and has to see to that itself. For any other teacher it only
            stands in the manifest. Secrets in it are not written.
        schema: JSON schema of the critiques, or its file; by default the one that ships.
        template: The prompt's text, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`, `{contract}`,
            `{material}` (these three), `{schema}` and `{rule}`; texts of a draft always stand between
            delimiters.
        limit: So many of the file's first drafts; None for all.
        resume: Go on with the records that are there: drafts that have one are passed over, unless the draft
            has changed. Without it, records that are there are moved to `critiques_v1.previous.jsonl`.
        rubric: A rubric, or its file, in the place of schema and template: its criteria's values on [0, 1]
            become the scores.
        threshold: Score on [0, 1] from which a rubric's verdict is pass, below it is revise; None: 0.7.
        retry_errors: With resume, ask again for the critiques that could not be used.
        dry_run: Read the drafts and say what would be done; ask nobody and write nothing.
        max_calls: Most requests that are sent to models, re-asked and retried ones included. At the limit
            what is in flight is still answered and written, and the pass ends; with `resume` another goes on,
            with a new allowance. Teachers of your own are counted where they ask through this library.
        max_cost: US dollars that requests may cost, the same way; every model's price has to be known.

    Raises:
        ArgumentError: The arguments cannot work together; or `max_cost` is set and a model's price is not
            known.
        FileError: A file cannot be read, or there is nothing in the drafts.
        RunLockedError: Another process writes to the folder.
    """
    return run_sync(
        generate_critiques_async(
            drafts_path,
            out_dir,
            teacher,
            config,
            schema,
            template,
            limit,
            resume,
            rubric=rubric,
            threshold=threshold,
            retry_errors=retry_errors,
            dry_run=dry_run,
            max_calls=max_calls,
            max_cost=max_cost,
        )
    )


async def generate_critiques_async(  # noqa: PLR0913 - the public contract
    drafts_path: str | Path,
    out_dir: str | Path,
    teacher: Any,
    config: Mapping[str, Json] | None = None,
    schema: Mapping[str, Json] | str | Path | None = None,
    template: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    *,
    rubric: Rubric | str | Path | None = None,
    threshold: float | None = None,
    retry_errors: bool = False,
    dry_run: bool = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> dict[str, Json]:
    """What `generate_critiques` gives, without blocking the event loop."""
    check_going_on(limit, resume=resume, retry_errors=retry_errors)
    if config is not None and not isinstance(config, Mapping):
        raise ArgumentError(f"config is {shortened(config)}; give a mapping")
    if rubric is not None and schema is not None:
        raise ArgumentError("the critiques of a rubric have their own form; leave out schema or the rubric")
    checked = CritiqueSchema.of(schema)
    critic = critic_of(
        teacher, config=config, schema=checked, template=template, rubric=rubric, threshold=threshold
    )
    inputs = {"drafts": Path(drafts_path)}
    check_apart(inputs, Path(out_dir), [*OUTPUTS.values(), UNFINISHED])
    try:
        budget = spending_limit(critic.models, max_calls=max_calls, max_cost=max_cost)
        setup = Setup.of(
            inputs=inputs,
            critic=critic,
            schema=checked if rubric is None else None,
            config=config,
            options={"limit": limit},
        )
        work = CritiquePass(
            drafts_path=Path(drafts_path),
            limit=limit,
            setup=setup,
            critic=critic,
            out_dir=Path(out_dir),
            retry_errors=retry_errors,
            unfinished=Unfinished(Path(out_dir) / UNFINISHED, setup.basis),
        )
        if dry_run:
            return work.rehearse(resume)
        with spending_within(budget) if budget.is_set else nullcontext():
            return await work.run(resume)
    finally:
        await critic.aclose()


def check_going_on(limit: Any, *, resume: bool, retry_errors: bool) -> None:
    """Checks how much of a pass is wanted.

    Raises:
        ArgumentError: It cannot be had.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ArgumentError(f"limit {limit!r}: give a whole number from 0 up, or None for all")
    if retry_errors and not resume:
        raise ArgumentError(
            "retry_errors=True tries again what failed before, and without resume=True everything is asked "
            "again; give resume=True with it, or leave it out"
        )
