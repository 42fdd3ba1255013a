"""A judge that learns from labelled items: text classifiers with calibrated confidence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer
from autorubric.datasets.dataset import RubricDataset, labelled_answers
from autorubric.errors import ArgumentError, JudgeError
from autorubric.judges.base import JudgeReply, JudgeRequest
from autorubric.judges.lexical import LOOKED_AT, chooses, quote, weigh
from autorubric.support.objects import Json

if TYPE_CHECKING:
    from autorubric.judges.text_classifier import CriterionModel, Prediction, TextFeatures


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SupervisedJudge:
    """A judge with one classifier per criterion, trained on labelled items; create it with `fit`.

    Each classifier is a logistic regression on TF-IDF features of words and parts of words, and on the
    evidence found by `LexicalJudge`. An NA option is treated like any other answer; CANNOT_ASSESS labels are
    excluded. The probabilities are calibrated by a temperature fitted on held-out predictions, and the
    confidence is that of the chosen answer; Laplace smoothing keeps it low if there are few training texts.
    If a criterion has only one answer in the training data, the judge always gives that answer.

    Use it as a baseline that a real judge must beat: it knows only the words of the training texts. For a
    training text, it repeats the label without a confidence, and the reason begins with "seen in training".

    Attributes:
        judge_id: Name of the judge in votes and metrics.
    """

    is_offline: ClassVar[bool] = True

    judge_id: str = "supervised"
    _features: TextFeatures = field(repr=False)
    _models: Mapping[str, CriterionModel] = field(repr=False)
    _description: Mapping[str, Json] = field(repr=False)

    @classmethod
    def fit(cls, dataset: RubricDataset, *, seed: int | None = None) -> SupervisedJudge:
        """Train a judge on a dataset's labels: the ground truth or, if missing, the majority of the ratings.

        Criteria are matched by name. Criteria without declared answers (numbers, texts, rankings) are
        ignored.

        Args:
            dataset: Labelled items: at least two, but dozens for a useful judge. Exclude the items to be
                judged.
            seed: Seed for the folds used to calibrate the confidence; None means 0.

        Raises:
            ArgumentError: If there are fewer than two different labelled texts, or they contain no words.
        """
        # Imported late, because scikit-learn takes a second to load.
        from autorubric.judges import text_classifier as learning

        examples: dict[str, list[learning.TrainingExample]] = {}
        for _, submission, criterion, answer in labelled_answers(dataset):
            if not answer.cannot_assess and chooses(criterion):
                example = learning.TrainingExample(submission.text or "", criterion, str(answer.code))
                examples.setdefault(criterion.name or "", []).append(example)
        texts = {example.text for own in examples.values() for example in own}
        if len(texts) < 2:
            raise ArgumentError(
                f"SupervisedJudge.fit: got {len(texts)} different labelled texts; at least two are needed, "
                "preferably dozens. Pass items that have a submission and either ground_truth or ratings"
            )
        if not any(re.search(r"\w", text[:LOOKED_AT]) for text in texts):
            raise ArgumentError("SupervisedJudge.fit: the labelled texts contain no words to learn from")
        features, models = learning.learn(examples, seed or 0)
        description = {
            "judge": "supervised",
            "version": 1,
            "scikit_learn": learning.LIBRARY_VERSION,
            "seed": seed or 0,
            "n_train": len(texts),
            "trained_on": learning.fingerprint(examples),
            "criteria": {k: {"n": one.n_train, "answers": list(one.codes)} for k, one in models.items()},
        }
        return cls(_features=features, _models=models, _description=description)

    @property
    def criterion_names(self) -> tuple[str, ...]:
        """Names of the criteria that the judge was trained on."""
        return tuple(self._models)

    def describe(self) -> dict[str, Json]:
        """Return the judge's entry in a run's manifest, with a fingerprint of its training labels."""
        return dict(self._description)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the most probable answer; the reason lists the words with the most weight in its favour.

        Raises:
            JudgeError: If there is no text, the judge was not trained on the criterion, or the learned answer
                is not one of the criterion's answers.
        """
        criterion, text = request.criterion, request.submission.text
        if text is None:
            raise JudgeError(f"{criterion.name}: the submission has no text to classify")
        model = self._models.get(criterion.name or "")
        if model is None or not chooses(criterion):
            what = "the supervised judge was not trained on this criterion"
            raise JudgeError(f"{criterion.name}: {what}, only on {', '.join(self._models)}")
        prediction = model.predict(self._features, criterion, text)
        seen = model.has_seen(text)
        reason = _reason(prediction, model, criterion, text)
        return JudgeReply(
            answer=_answer(criterion, prediction.code),
            reason=f"seen in training, so not an independent judgment; {reason}" if seen else reason,
            confidence=None if seen else prediction.probability,
            probabilities=None if seen else prediction.probabilities,
            probability_source=None if seen else "classifier",
            probability_backend=None if seen else "scikit-learn",
            truncated=len(text) > LOOKED_AT,
        )


def _answer(criterion: BaseCriterion, code: str) -> Answer:
    for answer in criterion.answers():
        if str(answer.code) == code:
            return answer
    allowed = ", ".join(str(answer.code) for answer in criterion.answers())
    raise JudgeError(
        f"{criterion.name}: the supervised judge learned the answer {code!r}, which the criterion does not "
        f"have ({allowed}); train the judge on items with these answers"
    )


def _reason(prediction: Prediction, model: CriterionModel, criterion: BaseCriterion, text: str) -> str:
    size = f"{model.n_train} training texts"
    if len(model.codes) == 1:
        return f"the only answer in training (p = {prediction.probability:.2f}, {size})"
    parts = [weigh(criterion, text).reason] if prediction.lexical else []
    if prediction.terms:
        parts.append(f"relies on {', '.join(quote(term) for term in prediction.terms)}")
    spoken = "; ".join(parts) or "no word of the text favours this answer over the others"
    return f"{spoken} (p = {prediction.probability:.2f}, {size})"
