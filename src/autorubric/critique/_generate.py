"""The critique pass, in which a teacher critiques every draft of a file."""

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

    The function can also be called inside a running event loop.

    It writes `critiques_v1.jsonl`, `critiques_v1_manifest.json` and `critiques_v1_stats.json`. Records are
    written in order of arrival. At most 32 drafts are in progress, or as many as `max_parallel_requests`
    allows; a teacher that is a sync function gets one draft at a time unless the config allows more. For an
    unusable critique, the record contains the error. The pass stops (`stopped` is `errors`) if the teacher
    repeatedly fails with the same provider error or timeout.

    Args:
        drafts_path: JSON lines file with `{"id", "prompt", "output", "contract"}`; other keys are ignored.
            Invalid lines and duplicate ids are skipped and listed under `faults`.
        out_dir: The output folder, which is created if missing.
        teacher: A model name, an `LLMConfig`, an `LLMClient`, an object with `forward(prompt)` or
            `aforward(prompt)`, or a function that takes a `TeacherPrompt` and returns JSON text, a dict, a
            `TeacherReply`, or an object with a string attribute `text`. With a rubric, any value accepted by
            `judges=[...]`.
        config: `{"models": [...], "generation": {...}}`, fallbacks and settings of a model passed by name.
            The setting `timeout`, in seconds per critique, also applies to async functions and `aforward`;
            sync functions cannot be interrupted and must limit themselves. For other teachers, the config is
            only written to the manifest. Secrets are never written.
        schema: JSON schema of the critiques, or its path; None for the built-in schema.
        template: Text of the prompt template, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`,
            `{contract}`, `{material}` (prompt, output and contract), `{schema}` and `{rule}`.
        limit: Number of drafts to critique from the start of the file; None for all.
        resume: Whether to keep existing records and skip drafts that have one, unless they have changed.
            Otherwise existing records are moved to `critiques_v1.previous.jsonl`.
        rubric: A rubric or the path of a rubric file, used instead of schema and template. The values of its
            criteria on [0, 1] become the scores.
        threshold: Minimum score on [0, 1] for a rubric's verdict to be pass and not revise; None for 0.7.
        retry_errors: Whether to retry unusable critiques; requires `resume`.
        dry_run: Whether to only read the drafts and report what would be done.
        max_calls: Maximum number of requests to models, including retries and repeated questions. When the
            limit is reached, requests in flight are still completed and written, and the pass ends; another
            pass with `resume` continues under a new limit. Requests of your own teachers count if they use
            this library's clients.
        max_cost: Maximum cost of requests in US dollars, enforced in the same way. The price of every model
            must be known.

    Raises:
        ArgumentError: If the arguments are invalid or cannot be combined, or if `max_cost` is set and the
            price of a model is unknown.
        FileError: If a file cannot be read or has no drafts.
        RunLockedError: If another process is writing to the folder.
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
    """Critique every draft of a file; the asynchronous version of `generate_critiques`."""
    check_going_on(limit, resume=resume, retry_errors=retry_errors)
    if config is not None and not isinstance(config, Mapping):
        raise ArgumentError(f"config must be a mapping; got {shortened(config)}")
    if rubric is not None and schema is not None:
        raise ArgumentError("schema cannot be combined with a rubric, which defines its own form; omit one")
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
        ArgumentError: If an option is invalid or the options cannot be combined.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ArgumentError(f"limit must be a non-negative integer, or None for all; got {limit!r}")
    if retry_errors and not resume:
        raise ArgumentError(
            "retry_errors=True requires resume=True, because a new pass critiques all drafts; pass "
            "resume=True or omit retry_errors"
        )
