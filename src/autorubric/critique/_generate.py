"""The critique pass: critiquing every draft of a file with a teacher, one record per draft."""

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
    """Critique every draft of a file, write one record per draft, and return statistics.

    Safe inside a running event loop.

    Writes `critiques_v1.jsonl`, `critiques_v1_manifest.json` and `critiques_v1_stats.json`. Records are in
    order of arrival. At most 32 drafts are in progress, or as many as `max_parallel_requests` allows; a
    teacher that is a plain function gets one draft at a time unless the config allows more. An unusable
    critique becomes a record with its error. The pass stops (`stopped` is `errors`) if the teacher keeps
    failing with the same provider error or time-out.

    Args:
        drafts_path: JSON lines, each `{"id", "prompt", "output", "contract"}`; other keys are ignored.
            Invalid lines and repeated ids are listed under `faults`, and the other drafts are critiqued.
        out_dir: Folder of the files; created if missing.
        teacher: A model's name, an `LLMConfig`, an `LLMClient`, an object with `forward(prompt)` or
            `aforward(prompt)`, or a function of a `TeacherPrompt`, which returns JSON text, a dict, a
            `TeacherReply`, or an object with a text as `.text`. With a rubric, anything that `judges=[...]`
            accepts.
        config: `{"models": [...], "generation": {...}}`: fallbacks and settings of a model given by name. Its
            `timeout`, in seconds per critique, also applies to an async function or an `aforward`; a plain
            function cannot be stopped and has to limit itself. For any other teacher it is only written into
            the manifest. Secrets in it are not written.
        schema: JSON schema of the critiques, or its file; by default the built-in one.
        template: Text of the prompt, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`, `{contract}`,
            `{material}` (these three), `{schema}` and `{rule}`; texts of a draft are always delimited.
        limit: Number of drafts from the start of the file; None for all.
        resume: Whether to keep existing records: drafts with a record are skipped unless they have changed.
            Otherwise existing records are moved to `critiques_v1.previous.jsonl`.
        rubric: A rubric, or its file, that replaces schema and template; the values of its criteria on [0, 1]
            become the scores.
        threshold: Score on [0, 1] from which a rubric's verdict is pass, and below which it is revise; None
            for 0.7.
        retry_errors: Whether, with resume, to ask again for unusable critiques.
        dry_run: Whether to only read the drafts and report what would be done.
        max_calls: Maximum number of requests to models, including retries and repeated questions. At the
            limit, requests in flight are still answered and written, and the pass ends; with `resume`,
            another pass continues with a new limit. Your own teachers count if they use this library's
            clients.
        max_cost: Maximum cost of requests in US dollars, enforced in the same way; the price of every model
            must be known.

    Raises:
        ArgumentError: If the arguments cannot be combined, or `max_cost` is set and the price of a model is
            unknown.
        FileError: If a file cannot be read, or has no drafts.
        RunLockedError: If another process writes to the folder.
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
    """Return the result of `generate_critiques` without blocking the event loop."""
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
    """Check the options that limit or resume a pass.

    Raises:
        ArgumentError: If they cannot be combined.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ArgumentError(f"limit {limit!r}: give a whole number from 0 up, or None for all")
    if retry_errors and not resume:
        raise ArgumentError(
            "retry_errors=True tries again what failed before, and without resume=True everything is asked "
            "again; give resume=True with it, or leave it out"
        )
