"""A zero-shot judge that compares words: a baseline for real judges."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar, Final, NamedTuple

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer
from autorubric.errors import JudgeError
from autorubric.judges.base import JudgeReply, JudgeRequest
from autorubric.support.objects import Json

LOOKED_AT: Final = 100_000
"""Maximum number of characters read of a text; replies about longer texts are marked as truncated."""

_LONGEST_SENTENCE, _LONGEST_QUOTE = 1_000, 120
_HALF, _SLOPE = 0.5, 4.0  # the curve from strength to probability
_TOPICAL, _ABSENT = 0.1, 4.0  # strength below which a matter is not spoken of; NA's odds then
_SPREAD, _PULL = 0.35, 1.5  # how sharply places on a scale, and option words, tell options apart
_HOPE = 0.7  # exponent of what can be hoped for in one sentence
_ALIKE, _NEGATED, _REACH = 0.6, 0.3, 5  # similar spelling; share of a negated word; words a negation reaches

_STOP_WORDS = """a about above after again all also an and any are as at be because been before being below
    between both but by can could did do does down during either else even every few for from further get had
    has have he her here him his how however i if in into is it its itself just least less let like many may
    me might more most much must my nor of off on once one only or other our out over same she should since so
    some something such than that the their them then there these they thing this those though through to too
    under until up us very was we were what when where whether which while who whose why will with within
    would yet you your not no never none neither cannot without answer article author call clear clearly
    contain cover criterion describe discuss essay explain express far give identify include indicate letter
    mention name output paragraph provide refer reply report require requirement response say sentence show
    speak specific state story student submission summary tell text well word write writer"""
_NEGATORS = frozenset(("not", "no", "never", "none", "neither", "nor", "cannot", "without", "hardly"))
_INVERTING = re.compile(r"\b(avoids?|lacks|without|never|no|(is|are|do|does|must) not)\b|n['’]t\b", re.I)
_EXCLUDING = re.compile(r"\bnot (count|applicable|suffice|qualify|enough)|\bn/a\b|\bignored?\b", re.I)
_IRREGULARS = """sent:send paid:pay told:tell said:say gave:give given:give made:make bought:buy found:find
    kept:keep left:leave wrote:write written:write took:take taken:take brought:bring thought:think held:hold
    came:come went:go gone:go knew:know known:know two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9"""
_SUFFIXES = """izations isations ization isation ations ation itions ition ments ment ators ator ities ness
    ances ance ences ence able ible ally ying ious ized ised izes ises ize ise ies ied ings ing ions ion ive
    ity ful ous ers est ed er es ly al s y e"""

# Things that a requirement names but a text shows by their form: "weekday" appears as "Monday".
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?)"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_FORMS = {
    "date": rf"\b(?:\d+[-/.]\d+[-/.]\d+|\d+(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d+|tomorrow|{_DAY})\b",
    "weekday": rf"\b{_DAY}\b",
    "year": r"\b(?:1[5-9]|20)\d\d\b",
    "hour": r"\b(?:\d\d?[:.]\d\d|\d\d? ?[ap]\.?m\b|\d\d? o'clock|noon|midnight)",
    "number": r"\b(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred)\b",
    "percentage": r"\d ?(?:%|per ?cent)",
    "price": r"[$€£¥] ?\d|\d ?(?:[$€£¥]|dollars?|euros?|pounds?)",
    "link": r"https?://\S{0,40}|\bwww\.\S{0,40}",
    "question": r"\w*\?",
    "greeting": r"^\W*(?:hello|hi|dear|good (?:morning|afternoon|evening)|greetings)\b",
    "polite": r"\b(?:please|kindly|thank you|thanks|dear|regards|sincerely)\b",
    "example": r"\b(?:for example|for instance|e\.g\.|such as)",
}

# Scripts without spaces between words are split into pairs of characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+(?:['’][^\W_{_UNSPACED}]+)*"
_QUOTED = re.compile(r"[\"“„«`]([^\"”“»`]{2,80})[\"”“»`]")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"”')\]]*\s+|(?<=[。！？])|\n+")
_CLAUSE_END = re.compile(r"[,;:.]\s")


class _Reading(NamedTuple):
    """A text split into sentences; `places` has, by stem and sentence, the word and whether it is negated."""

    sentences: tuple[str, ...]
    places: Mapping[str, Mapping[int, tuple[str, bool]]]


class _Cue(NamedTuple):
    """Something to look for: a stem, or the pattern in `form`."""

    stem: str
    weight: float = 1.0
    form: re.Pattern[str] | None = None


class _Finding(NamedTuple):
    """The sentence that matches most cues; a strength of 0 is no match, 1 the best match expected."""

    strength: float = 0.0
    sentence: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    odds: tuple[float, ...]  # probabilities of the declared answers, in order; they sum to 1
    best: int | None  # position of the most probable answer; None if no answer has more evidence than another
    strength: float  # share of the requirement that the best sentence matches, in [0, 1]
    reason: str


@dataclass(frozen=True, slots=True)
class LexicalJudge:
    """A judge that compares words and needs no training, model or network access.

    It works on any criterion with declared answers. It finds the sentence that has the most in common with
    the requirement: word stems, similar spellings, quoted phrases, and patterns for things that a requirement
    names (a date, a price, a link). On an ordered scale, the answer depends on the strength of this match and
    on the words that distinguish the options; an NA option is chosen if almost nothing matches. For unordered
    options, the judge abstains if no word distinguishes them. The confidence is computed with a
    fixed formula, not fitted to data; it ranks answers but is not calibrated.

    Use it as a baseline that a real judge must beat. It does not recognise synonyms or irony, accepts claims
    as facts, detects negation only near a word, and is fooled by text that repeats the requirement.

    Attributes:
        judge_id: Name of the judge in votes and metrics.
    """

    is_offline: ClassVar[bool] = True

    judge_id: str = "lexical"

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the answer with the most evidence; the reason quotes the matching words and their sentence.

        Raises:
            JudgeError: If there is no text, or the criterion has no declared answers.
        """
        criterion, text = request.criterion, request.submission.text
        if text is None:
            raise JudgeError(f"{criterion.name}: the submission has no text to compare words with")
        weighing = weigh(criterion, text)
        best, cut = weighing.best, len(text) > LOOKED_AT
        if best is None:
            return JudgeReply(answer=None, reason=weighing.reason, truncated=cut)
        answer, confidence = criterion.answers()[best], weighing.odds[best]
        return JudgeReply(answer=answer, reason=weighing.reason, confidence=confidence, truncated=cut)

    def describe(self) -> dict[str, Json]:
        """Return the judge's manifest entry; its version increases whenever answers can change."""
        return {"judge": "lexical", "version": 1}


def chooses(criterion: BaseCriterion) -> bool:
    """Return whether a criterion is answered with one of several declared answers."""
    return criterion.level in ("binary", "ordinal", "nominal") and bool(criterion.answers())


def weigh(criterion: BaseCriterion, text: str) -> Weighing:
    """Return the evidence in a text for the answers of a criterion."""
    if not chooses(criterion):
        what = f"{criterion.name}: a {type(criterion).__name__} ({criterion.level}) has no declared answers"
        raise JudgeError(f"{what} to compare words with; use a model or a function as the judge")
    answers, reading = criterion.answers(), _read(text[:LOOKED_AT])
    requirement = criterion.requirement or criterion.name or ""
    finding = _find(*_requirement_cues(requirement), reading)
    shown = 1 / (1 + math.exp(-_SLOPE * (finding.strength - _HALF)))
    # Requirements such as "contains no jargon" ask for an absence.
    if _INVERTING.search(" ".join(_QUOTED.sub(" ", requirement).split()[:6])):
        shown = 1 - shown
    if criterion.level == "binary":
        weights = [shown if answer.value else 1 - shown for answer in answers]
        return _make_weighing(weights, finding.strength, finding)
    labels = tuple(str(answer.label) for answer in answers)
    own = [_find(cues, 1.0, reading) for cues in _option_cues(requirement, labels)]
    places = _closeness(answers, shown) if criterion.level == "ordinal" else [1.0] * len(answers)
    weights = [place * math.exp(_PULL * min(f.strength, 2.0)) for place, f in zip(places, own, strict=True)]
    absent = _ABSENT * sum(weights) if finding.strength < _TOPICAL else 0.0
    weights = [absent if answer.na else weight for answer, weight in zip(answers, weights, strict=True)]
    best = weights.index(max(weights))
    distinguished = own[best].words and not answers[best].na
    return _make_weighing(weights, finding.strength, own[best] if distinguished else finding)


def _closeness(answers: Sequence[Answer], shown: float) -> list[float]:
    """Return the closeness, on (0, 1], of each answer's place on the scale to the strength shown."""
    ranks = sorted({answer.value or 0.0 for answer in answers if not answer.na})
    steps = [0.0 if a.na else ranks.index(a.value or 0.0) / max(1, len(ranks) - 1) for a in answers]
    return [math.exp(-(((step - shown) / _SPREAD) ** 2) / 2) for step in steps]


def _make_weighing(weights: Sequence[float], strength: float, finding: _Finding) -> Weighing:
    odds = tuple(weight / sum(weights) for weight in weights)
    best = odds.index(max(odds)) if max(odds) > min(odds) else None
    reason = "no word of the text matches the criterion"
    if finding.words:
        only = " only" if finding.strength < _HALF else ""
        words = ", ".join(quote(word) for word in finding.words[:6])
        reason = f"matches the criterion{only} in {words}: {quote(finding.sentence)}"
    return Weighing(odds=odds, best=best, strength=strength, reason=reason)


def quote(text: str) -> str:
    """Return a text in quotes, on one line, shortened and without unprintable characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_QUOTE]).split())
    return f'"{line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1].rstrip() + "…"}"'


@lru_cache(maxsize=1024)
def _requirement_cues(requirement: str) -> tuple[tuple[_Cue, ...], float]:
    """Return the cues to look for, and the largest weight that one sentence is expected to match."""
    # No single sentence matches all details of a long requirement, so the expected weight grows more slowly
    # than the total, and every "or" reduces it.
    kept = " ".join(part for part in _SENTENCE_END.split(requirement) if not _EXCLUDING.search(part))
    cues = _cues(kept or requirement)
    alternatives = 1 + len(re.findall(r"\bor\b", requirement, re.I))
    return cues, math.pow(max(1.0, sum(cue.weight for cue in cues) / alternatives), _HOPE)


def _cues(text: str) -> tuple[_Cue, ...]:
    found: dict[str, _Cue] = {}
    for phrase in filter(str.strip, _QUOTED.findall(text)):
        found[phrase] = _Cue(phrase, 3.0, re.compile(r"\s+".join(map(re.escape, phrase.split())), re.I))
    for _, stem in _words(text):
        if stem in _forms():
            found[stem] = _Cue(stem, 1.0, _forms()[stem])
        elif stem not in _stop_stems():
            found[stem] = _Cue(stem)
    return tuple(found.values())


@lru_cache(maxsize=1024)
def _option_cues(requirement: str, labels: tuple[str, ...]) -> tuple[tuple[_Cue, ...], ...]:
    """Return the distinguishing words of each option, from its label and its gloss in the requirement."""
    # A clause that names a single option, such as "curt is short and without courtesy", and the clauses after
    # it up to the next option are the gloss of that option.
    own = [{stem for _, stem in _words(label)} for label in labels]
    marks = [stems - set().union(*(own[:i] + own[i + 1 :])) for i, stems in enumerate(own)]
    glosses, speaking = list(labels), None
    for clause in _CLAUSE_END.split(requirement):
        stems = {stem for _, stem in _words(clause)}
        named = [index for index, mark in enumerate(marks) if mark and mark <= stems]
        speaking = named[0] if len(named) == 1 else None if named else speaking
        if speaking is not None:
            glosses[speaking] += f" {clause}"
    cues = [_cues(gloss) for gloss in glosses]
    everywhere = [cue.stem for one in cues for cue in one]
    return tuple(tuple(cue for cue in one if everywhere.count(cue.stem) == 1) for one in cues)


def _find(cues: Sequence[_Cue], hoped: float, reading: _Reading) -> _Finding:
    """Return the sentence with the largest sum of cues; a cue in `n` sentences has weight `n ** -0.5`."""
    shown = [_find_matches(cue, reading) for cue in cues]
    sums: dict[int, float] = {}
    for cue, places in zip(cues, shown, strict=True):
        for place, (share, _) in places.items():
            sums[place] = sums.get(place, 0.0) + cue.weight * share / math.sqrt(len(places))
    if not sums:
        return _Finding()
    best = max(sums, key=lambda place: (sums[place], -place))
    words = dict.fromkeys(places[best][1] for places in shown if best in places)
    return _Finding(sums[best] / hoped, reading.sentences[best], tuple(words))


def _find_matches(cue: _Cue, reading: _Reading) -> dict[int, tuple[float, str]]:
    """Return the sentences that match a cue, by position: the strength on (0, 1] and the words."""
    if cue.form is not None:
        matches = ((place, cue.form.search(sentence)) for place, sentence in enumerate(reading.sentences))
        return {place: (1.0, match[0].strip()) for place, match in matches if match}
    found: dict[int, tuple[float, str]] = {}
    for stem, share in _similar(cue.stem, reading.places).items():
        for place, (word, negated) in reading.places[stem].items():
            one = (share * (_NEGATED if negated else 1.0), word)
            found[place] = max(found.get(place, one), one)
    return found


def _similar(stem: str, vocabulary: Mapping[str, object]) -> dict[str, float]:
    """Return the stems of a text that are similar to a stem, by their Dice similarity of trigrams."""
    near = {stem: 1.0} if stem in vocabulary else {}
    if len(stem) < 5:
        return near
    grams = _grams(stem)
    for other in vocabulary:
        if other != stem and len(other) >= 4 and other[:3] == stem[:3]:
            alike = 2 * len(grams & _grams(other)) / (len(grams) + len(_grams(other)))
            if alike >= _ALIKE:
                near[other] = alike
    return near


@lru_cache(maxsize=20_000)
def _grams(stem: str) -> frozenset[str]:
    return frozenset(f" {stem}"[i : i + 3] for i in range(len(stem) - 1))


@lru_cache(maxsize=16)
def _read(text: str) -> _Reading:
    parts = (part for part in _SENTENCE_END.split(text) if part.strip())
    step = _LONGEST_SENTENCE
    sentences = tuple(part[i : i + step] for part in parts for i in range(0, len(part), step))
    places: dict[str, dict[int, tuple[str, bool]]] = {}
    for place, sentence in enumerate(sentences):
        since = _REACH
        for word, stem in _words(sentence):
            since = 0 if word in _NEGATORS or word.endswith(("n't", "n’t")) else since + 1
            places.setdefault(stem, {}).setdefault(place, (word, since < _REACH))
    return _Reading(sentences, places)


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word, in lower case, and its stem."""
    # Compiled at first use and cached by `re`, because compiling it would slow down the import.
    for match in re.finditer(_TOKEN, text.casefold()):
        token = match[0]
        if match[1]:
            yield from ((pair, pair) for pair in (token[i : i + 2] for i in range(max(1, len(token) - 1))))
        else:
            yield token, _stem(token)


_IRREGULAR = dict(pair.split(":") for pair in _IRREGULARS.split())
_ENDINGS = tuple(_SUFFIXES.split())


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    word = re.sub("['’]s?$", "", word)
    word = _IRREGULAR.get(word, word)
    for suffix in _ENDINGS:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4 - (suffix == "s"):
            return word[: -len(suffix)]
    return word


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(map(_stem, _STOP_WORDS.split()))


@cache
def _forms() -> dict[str, re.Pattern[str]]:
    """Return the patterns in `_FORMS` by the stem of their name."""
    return {_stem(kind): re.compile(form, re.I) for kind, form in _FORMS.items()}
