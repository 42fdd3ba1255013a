"""Calibrated text classifiers: features, training, calibration and prediction."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import sklearn
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix, hstack, vstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from autorubric.criteria.base import BaseCriterion
from autorubric.judges.lexical import LOOKED_AT, weigh

Floats = npt.NDArray[np.float64]

LIBRARY_VERSION: Final[str] = sklearn.__version__

_FOLDS = 5
_ENOUGH_TO_CALIBRATE = 10
_TEMPERATURES = (0.25, 10.0)
_INVERSE_PENALTY = 30.0
_LEXICAL_SCALE = 2.0  # large next to rows of unit length, for small training sets
_MOST_TERMS = 50_000
_VECTORS_KEPT = 32


class TrainingExample(NamedTuple):
    text: str
    criterion: BaseCriterion
    code: str


class Prediction(NamedTuple):
    code: str
    probability: float
    # By label; None if the training data had more possible answers than the criterion.
    probabilities: Mapping[str, float] | None
    # Words of the text with the greatest weight for the answer, in descending order.
    terms: tuple[str, ...] = ()
    lexical: bool = False


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """TF-IDF features of words, word pairs and parts of words; rows of recent texts are cached."""

    words: Any
    pieces: Any  # vectorizer of sequences of three to five characters within words
    terms: tuple[str, ...]
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)  # the last used one last

    def row(self, text: str) -> Any:
        """Return the text's sparse feature row, of shape `(1, n_terms + n_pieces)`."""
        text = text[:LOOKED_AT]
        row = self._kept.pop(text, None)
        self._kept[text] = self.make_row(text) if row is None else row
        if len(self._kept) > _VECTORS_KEPT:
            del self._kept[next(iter(self._kept))]
        return self._kept[text]

    def make_row(self, text: str) -> Any:
        return hstack([self.words.transform([text]), self.pieces.transform([text])]).tocsr()


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionModel:
    codes: tuple[str, ...]
    n_train: int
    n_answers: int
    # The fitted logistic regression; None if only one code was seen.
    regression: Any = field(default=None, repr=False)
    temperature: float = 1.0
    lexical_means: tuple[float, ...] = ()
    seen: frozenset[str] = field(default=frozenset(), repr=False)

    def predict(self, features: TextFeatures, criterion: BaseCriterion, text: str) -> Prediction:
        """Return the most probable answer, its probability and the evidence for it."""
        if self.regression is None:
            return Prediction(self.codes[0], self._smooth(1.0), self._by_label(criterion, np.ones(1)))
        row = _full_row(features.row(text), criterion, text, self.codes)
        odds = _softmax(_logits(self.regression, row)[0] / self.temperature)
        best = int(np.argmax(odds))
        probability, probabilities = self._smooth(float(odds[best])), self._by_label(criterion, odds)
        evidence = self._evidence(features.terms, row, best)
        return Prediction(self.codes[best], probability, probabilities, *evidence)

    def _by_label(self, criterion: BaseCriterion, odds: Floats) -> Mapping[str, float] | None:
        """Return the smoothed probabilities of all answers; those that did not occur have the least."""
        answers, seen = criterion.answers(), dict(zip(self.codes, map(float, odds), strict=True))
        if len(answers) != self.n_answers or not seen.keys() <= {str(one.code) for one in answers}:
            return None
        return {str(one.label): self._smooth(seen.get(str(one.code), 0.0)) for one in answers}

    def has_seen(self, text: str) -> bool:
        """Return whether the text is in the training data, ignoring case and white space."""
        return _digest(text) in self.seen

    def _smooth(self, probability: float) -> float:
        """Apply Laplace's rule: `n` texts allow a probability of at most `(n + 1) / (n + answers)`."""
        return (self.n_train * probability + 1) / (self.n_train + self.n_answers)

    def _evidence(self, names: Sequence[str], row: Any, best: int) -> tuple[tuple[str, ...], bool]:
        coefficients = self.regression.coef_
        towards = coefficients[best] if len(coefficients) > 1 else coefficients[0] * (1 if best else -1)
        gains = {int(i): float(towards[i] * x) for i, x in zip(row.indices, row.data, strict=True)}
        # Lexical evidence is never zero, so only its difference from the training mean counts.
        usual = zip(towards[-len(self.codes) :], self.lexical_means, strict=True)
        columns = range(len(towards) - len(self.codes), len(towards))
        lexical = sum(gains.get(i, 0.0) for i in columns) - sum(float(t) * mean for t, mean in usual)
        ranked = sorted((i for i in gains if i < len(names) and gains[i] > 0), key=lambda i: (-gains[i], i))
        terms: list[str] = []
        for term in (names[i] for i in ranked[:12]):
            if not any(f" {term} " in f" {other} " or f" {other} " in f" {term} " for other in terms):
                terms.append(term)
        strongest = gains[ranked[0]] if ranked else 0.0
        return tuple(terms[:3]), lexical > strongest


def learn(
    examples: Mapping[str, Sequence[TrainingExample]], seed: int
) -> tuple[TextFeatures, dict[str, CriterionModel]]:
    """Fit features and models on examples by criterion name; at least one text must contain a word."""
    texts = list(dict.fromkeys(one.text[:LOOKED_AT] for own in examples.values() for one in own))
    # The vectors are too short to benefit from several threads, and a single thread adds them up in the same
    # order on every machine.
    with threadpool_limits(limits=1):
        words = _fit_tfidf(texts, ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b")
        pieces = _fit_tfidf(texts, ngram_range=(3, 5), analyzer="char_wb")
        features = TextFeatures(words, pieces, tuple(words.get_feature_names_out()))
        rows = {text: features.make_row(text) for text in texts}
        models = {name: _fit_criterion(own, rows, seed) for name, own in examples.items()}
    return features, models


def _fit_tfidf(texts: Sequence[str], **options: Any) -> Any:
    try:
        return TfidfVectorizer(**options, sublinear_tf=True, max_features=_MOST_TERMS, min_df=2).fit(texts)
    except ValueError:
        # A few texts may have no term in common; terms of a single text are used then.
        return TfidfVectorizer(**options, sublinear_tf=True, max_features=_MOST_TERMS).fit(texts)


def _fit_criterion(
    examples: Sequence[TrainingExample], text_rows: Mapping[str, Any], seed: int
) -> CriterionModel:
    """Fit and calibrate a classifier on the examples of one criterion."""
    truth = [example.code for example in examples]
    codes = tuple(sorted(set(truth)))
    regression, temperature = None, 1.0
    means: tuple[float, ...] = ()
    if len(codes) > 1:
        rows = vstack(
            [_full_row(text_rows[one.text[:LOOKED_AT]], one.criterion, one.text, codes) for one in examples]
        ).tocsr()
        numbers = np.array([codes.index(code) for code in truth])
        regression = _fit_regression(rows, numbers)
        temperature = _temperature(rows, numbers, seed)
        means = tuple(float(mean) for mean in rows[:, -len(codes) :].mean(axis=0).A1)
    return CriterionModel(
        codes=codes,
        n_train=len(examples),
        n_answers=max(len(example.criterion.answers()) for example in examples),
        regression=regression,
        temperature=temperature,
        lexical_means=means,
        seen=frozenset(_digest(example.text) for example in examples),
    )


def fingerprint(examples: Mapping[str, Sequence[TrainingExample]]) -> str:
    """Return the SHA-256 of the labelled texts by criterion, in order."""
    digests = [
        (name, example.code, example.criterion.requirement, example.text)
        for name, own in examples.items()
        for example in own
    ]
    return hashlib.sha256(json.dumps(digests).encode("ascii")).hexdigest()


def _digest(text: str) -> str:
    folded = " ".join(text[:LOOKED_AT].casefold().split())
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()


def _full_row(text_row: Any, criterion: BaseCriterion, text: str, codes: Sequence[str]) -> Any:
    """Return the text's features, then the lexical judge's value of each code."""
    declared = [str(answer.code) for answer in criterion.answers()]
    odds = dict(zip(declared, weigh(criterion, text).odds, strict=True))
    lexical = [_LEXICAL_SCALE * odds.get(code, 0.0) for code in codes]
    return hstack([text_row, csr_matrix([lexical])]).tocsr()


def _fit_regression(rows: Any, numbers: npt.NDArray[np.int64]) -> Any:
    regression = LogisticRegression(C=_INVERSE_PENALTY, class_weight="balanced", max_iter=2_000)
    return regression.fit(rows, numbers)


def _logits(regression: Any, rows: Any) -> Floats:
    """Return the logits, of shape `(n_texts, n_codes)`."""
    scores = np.asarray(regression.decision_function(rows), dtype=np.float64)
    return scores if scores.ndim == 2 else np.column_stack([np.zeros_like(scores), scores])


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), dtype=np.float64)


def _temperature(rows: Any, numbers: npt.NDArray[np.int64], seed: int) -> float:
    """Return the temperature with the highest likelihood of held-out labels (Guo et al. 2017, §4.2)."""
    counts = Counter(numbers.tolist())
    # A code that occurs once cannot be held out, so it is learned in every fold.
    held = np.array([i for i, number in enumerate(numbers) if counts[int(number)] > 1], dtype=np.int64)
    if len(held) < _ENOUGH_TO_CALIBRATE:
        return 1.0
    single = np.setdiff1d(np.arange(len(numbers)), held)
    folds = min(_FOLDS, *(count for count in counts.values() if count > 1))
    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    logits = np.zeros((len(numbers), len(counts)))
    for learn, test in splitter.split(held, numbers[held]):
        learnt = np.concatenate([held[learn], single])
        logits[held[test]] = _logits(_fit_regression(rows[learnt], numbers[learnt]), rows[held[test]])

    def loss(log_temperature: float) -> float:
        odds = _softmax(logits[held] / np.exp(log_temperature))
        return -float(np.log(odds[np.arange(len(held)), numbers[held]] + 1e-12).mean())

    low, high = np.log(_TEMPERATURES)
    return float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded").x))
