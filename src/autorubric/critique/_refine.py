"""The refinement pass, which rewrites drafts and critiques them again, starting with the most urgent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from autorubric._files import shortened
from autorubric._sync import run_sync
from autorubric.critique._critics import critic_of
from autorubric.critique._generate import check_going_on
from autorubric.critique._manifest import Setup, check_apart
from autorubric.critique._prompts import rewrite_template, template_text
from autorubric.critique._refine_jobs import RANKS, Jobs, Risk, RiskRange
from autorubric.critique._refine_pass import OUTPUTS, UNFINISHED, RefinementPass
from autorubric.critique._refine_round import Refiner
from autorubric.critique._schema import CritiqueSchema, digest_of
from autorubric.critique._teacher import teacher_of
from autorubric.critique._unfinished import Unfinished
from autorubric.errors import ArgumentError
from autorubric.llm import spending_limit, spending_within
from autorubric.rubric import Rubric
from autorubric.values import Json


def refine(  # noqa: PLR0913 - the public contract
    critiques_path: str | Path,
    drafts_path: str | Path,
    out_dir: str | Path,
    teacher: Any,
    *,
    max_rounds: int = 3,
    config: Mapping[str, Json] | None = None,
    schema: Mapping[str, Json] | str | Path | None = None,
    template: str | Path | None = None,
    rewrite: str | Path | None = None,
    rubric: Rubric | str | Path | None = None,
    threshold: float | None = None,
    min_risk: Risk | None = None,
    max_risk: Risk | None = None,
    limit: int | None = None,
    resume: bool = False,
    retry_errors: bool = False,
    validate: Callable[[Json], Json] | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> dict[str, Json]:
    """Rewrite the drafts whose verdict is revise, critique them again, and return statistics.

    The function can also be called inside a running event loop. A draft is rewritten based on its critique
    and critiqued again until the verdict is pass (`refined`) or reject (`rejected`), or until the teacher
    fails (`errors`). If the score does not increase, a text repeats, or all rounds are used up, the draft is
    `undecided`, with the reason and the best text, which can be the draft itself. The score is the mean of a
    critique's scores, or the rubric's score. Drafts with the worst issues come first, then drafts with the
    lowest scores. The function writes the drafts to `refined_v1.jsonl`, `rejected_v1.jsonl`,
    `undecided_v1.jsonl` and `errors_v1.jsonl`, and also writes `refined_v1_manifest.json` and
    `refined_v1_stats.json`.

    Args:
        critiques_path: The critiques file written by `generate_critiques`.
        drafts_path: The file of the drafts that were critiqued. Drafts removed from it are ignored.
        out_dir: The output folder, which is created if missing.
        teacher: The teacher that rewrites and critiques; see `generate_critiques`. A function distinguishes
            the two tasks by `prompt.task`. With a rubric, the teacher rewrites and votes as a judge.
        max_rounds: Maximum number of rewrites per draft, at least 1.
        config: See `generate_critiques`.
        schema: See `generate_critiques`.
        template: See `generate_critiques`.
        rewrite: Text of the rewrite prompt template, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`,
            `{contract}`, `{remarks}`, `{material}` (all four), `{form}` and `{rule}`.
        rubric: See `generate_critiques`.
        threshold: See `generate_critiques`.
        min_risk: Lowest hallucination risk to include: `low`, `medium` or `high`.
        max_risk: Highest hallucination risk to include.
        limit: Number of drafts to refine, most urgent first; None for all.
        resume: Whether to keep existing outcomes, unless the draft or its critique has changed. If False,
            existing files are moved to `….previous.jsonl`.
        retry_errors: Whether to retry failed drafts; requires `resume`.
        validate: A function that checks the rewritten output and returns its findings as JSON data, which
            become the contract in the record and in the next critique. An exception marks the output as
            invalid, and a model is asked again. Replaces the check that no top-level keys are lost.
        max_calls: See `generate_critiques`. Finished rounds of drafts in progress are kept.
        max_cost: See `generate_critiques`.

    Raises:
        ArgumentError: If the arguments are invalid or cannot be combined, or if `max_cost` is set and the
            price of a model is unknown.
        FileError: If a file cannot be read or is empty.
        RunLockedError: If another process is writing to the folder.
    """
    return run_sync(
        refine_async(
            critiques_path,
            drafts_path,
            out_dir,
            teacher,
            max_rounds=max_rounds,
            config=config,
            schema=schema,
            template=template,
            rewrite=rewrite,
            rubric=rubric,
            threshold=threshold,
            min_risk=min_risk,
            max_risk=max_risk,
            limit=limit,
            resume=resume,
            retry_errors=retry_errors,
            validate=validate,
            max_calls=max_calls,
            max_cost=max_cost,
        )
    )


async def refine_async(  # noqa: PLR0913 - the public contract
    critiques_path: str | Path,
    drafts_path: str | Path,
    out_dir: str | Path,
    teacher: Any,
    *,
    max_rounds: int = 3,
    config: Mapping[str, Json] | None = None,
    schema: Mapping[str, Json] | str | Path | None = None,
    template: str | Path | None = None,
    rewrite: str | Path | None = None,
    rubric: Rubric | str | Path | None = None,
    threshold: float | None = None,
    min_risk: Risk | None = None,
    max_risk: Risk | None = None,
    limit: int | None = None,
    resume: bool = False,
    retry_errors: bool = False,
    validate: Callable[[Json], Json] | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> dict[str, Json]:
    """Rewrite the drafts whose verdict is revise; the asynchronous version of `refine`."""
    if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 1:
        raise ArgumentError(f"max_rounds must be a positive integer; got {max_rounds!r}")
    check_going_on(limit, resume=resume, retry_errors=retry_errors)
    if validate is not None and not callable(validate):
        raise ArgumentError(f"validate must be a function of the output; got {shortened(validate)}")
    for name, level in (("min_risk", min_risk), ("max_risk", max_risk)):
        if level is not None and level not in RANKS:
            raise ArgumentError(f"{name} must be low, medium or high; got {level!r}")
    writer = teacher_of(teacher, config)
    checked = CritiqueSchema.of(schema)
    critic = critic_of(
        teacher, config=config, schema=checked, template=template, rubric=rubric, threshold=threshold
    )
    rewriting = rewrite_template(rewrite)
    refiner = Refiner(
        teacher=writer, critic=critic, template=rewriting, max_rounds=max_rounds, validate=validate
    )
    risk = RiskRange(least=min_risk, most=max_risk)
    inputs = {"critiques": Path(critiques_path), "drafts": Path(drafts_path)}
    check_apart(inputs, Path(out_dir), [*OUTPUTS.values(), UNFINISHED])
    try:
        models = (*writer.models, *critic.models)
        budget = spending_limit(models, max_calls=max_calls, max_cost=max_cost)
        setup = Setup.of(
            inputs=inputs,
            critic=critic,
            schema=checked if rubric is None else None,
            config=config,
            options={
                "limit": limit,
                "max_rounds": max_rounds,
                "min_risk": min_risk,
                "max_risk": max_risk,
                "rewrite_hash": digest_of(template_text(rewriting)),
            },
        )
        jobs = Jobs(Path(critiques_path), Path(drafts_path), risk)
        work = RefinementPass(
            setup=setup,
            jobs=jobs,
            refiner=refiner,
            out_dir=Path(out_dir),
            limit=limit,
            retry_errors=retry_errors,
            unfinished=Unfinished(Path(out_dir) / UNFINISHED, setup.basis),
        )
        with spending_within(budget) if budget.is_set else nullcontext():
            return await work.run(resume)
    finally:
        await writer.aclose()
        await critic.aclose()
