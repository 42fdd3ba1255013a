"""Names that look alike: by other alphabets, compatibility forms, digits, signs, case and gaps."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from autorubric.cli.files import similar_names

LOOKALIKES = {
    "a": "CYRILLIC SMALL LETTER A, GREEK SMALL LETTER ALPHA, LATIN SMALL LETTER ALPHA",
    "c": "CYRILLIC SMALL LETTER ES, GREEK LUNATE SIGMA SYMBOL, ROMAN NUMERAL ONE HUNDRED",
    "d": "CYRILLIC SMALL LETTER KOMI DE, SMALL ROMAN NUMERAL FIVE HUNDRED, DOUBLE-STRUCK ITALIC SMALL D",
    "e": "CYRILLIC SMALL LETTER IE, SCRIPT SMALL E, LATIN LETTER SMALL CAPITAL E",
    "g": "LATIN SMALL LETTER SCRIPT G, ARMENIAN SMALL LETTER CO",
    "h": "CYRILLIC SMALL LETTER SHHA, ARMENIAN SMALL LETTER HO, PLANCK CONSTANT",
    "i": "CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I, GREEK SMALL LETTER IOTA, CHEROKEE LETTER V",
    "j": "CYRILLIC SMALL LETTER JE, GREEK LETTER YOT, LATIN SMALL LETTER DOTLESS J",
    "k": "GREEK SMALL LETTER KAPPA, KELVIN SIGN, FULLWIDTH LATIN SMALL LETTER K",
    "n": "ARMENIAN SMALL LETTER VO, GREEK SMALL LETTER ETA, MATHEMATICAL BOLD SMALL N",
    "o": "CYRILLIC SMALL LETTER O, GREEK SMALL LETTER OMICRON, ARMENIAN SMALL LETTER OH, LAO DIGIT ZERO",
    "p": "CYRILLIC SMALL LETTER ER, GREEK SMALL LETTER RHO, MATHEMATICAL FRAKTUR SMALL P",
    "s": "CYRILLIC SMALL LETTER DZE, LATIN SMALL LETTER LONG S, LATIN LETTER SMALL CAPITAL S",
    "u": "ARMENIAN SMALL LETTER SEH, GREEK SMALL LETTER UPSILON",
    "v": "CYRILLIC SMALL LETTER IZHITSA, GREEK SMALL LETTER NU, SMALL ROMAN NUMERAL FIVE",
    "x": "CYRILLIC SMALL LETTER HA, GREEK SMALL LETTER CHI, ROMAN NUMERAL TEN",
    "y": "CYRILLIC SMALL LETTER U, GREEK SMALL LETTER GAMMA, FULLWIDTH LATIN CAPITAL LETTER Y",
    "A": "GREEK CAPITAL LETTER ALPHA, CHEROKEE LETTER GO, LISU LETTER A, COPTIC CAPITAL LETTER ALFA",
    "E": "CYRILLIC CAPITAL LETTER IE, CHEROKEE LETTER GV, CHEROKEE SMALL LETTER GV",
    "H": "CYRILLIC CAPITAL LETTER EN, GREEK CAPITAL LETTER ETA, CHEROKEE LETTER MI",
    "S": "ARMENIAN CAPITAL LETTER TIWN, CYRILLIC CAPITAL LETTER DZE, CHEROKEE LETTER DU",
    "W": "CHEROKEE LETTER LA, CYRILLIC CAPITAL LETTER WE, LISU LETTER WA",
    "Z": "GREEK CAPITAL LETTER ZETA, CHEROKEE LETTER NO, DOUBLE-STRUCK CAPITAL Z",
    "3": "CYRILLIC SMALL LETTER ZE, MATHEMATICAL DOUBLE-STRUCK DIGIT THREE, SUPERSCRIPT THREE",
    "l": "DIGIT ONE, LATIN CAPITAL LETTER I, VERTICAL LINE, CYRILLIC LETTER PALOCHKA, ROMAN NUMERAL ONE",
    "O": "DIGIT ZERO, ARMENIAN CAPITAL LETTER OH, FULLWIDTH DIGIT ZERO",
    "-": "EN DASH, EM DASH, MINUS SIGN, NON-BREAKING HYPHEN, FULLWIDTH HYPHEN-MINUS",
    "'": "RIGHT SINGLE QUOTATION MARK, PRIME, ACUTE ACCENT, FULLWIDTH APOSTROPHE",
    '"': "LEFT DOUBLE QUOTATION MARK, DOUBLE PRIME, FULLWIDTH QUOTATION MARK",
    " ": "NO-BREAK SPACE, IDEOGRAPHIC SPACE, ZERO WIDTH SPACE, SOFT HYPHEN, BRAILLE PATTERN BLANK",
}
TWINS = {
    letter: [unicodedata.lookup(name) for name in names.split(", ")] for letter, names in LOOKALIKES.items()
}
DISTINCT = "abcdefghjkmnpqrstuvwxyz2345679 "
"""Characters of which none looks like another."""


@pytest.mark.parametrize(
    ("letter", "twin"), [(letter, twin) for letter, twins in TWINS.items() for twin in twins]
)
def test_each_lookalike_is_found(letter: str, twin: str) -> None:
    """In the middle of a name, whichever of the two comes first."""
    one, other = f"is {letter} fine", f"is {twin} fine"
    assert similar_names([one, "tone", other]) == [(one, other)]
    assert similar_names([other, one]) == [(other, one)]


@given(st.data())
def test_names_with_characters_replaced_by_lookalikes_are_found(data: st.DataObject) -> None:
    """However many characters are replaced, and by whatever, the names look alike."""
    letters = data.draw(st.lists(st.sampled_from(sorted(TWINS)), min_size=1, max_size=12))
    name = "x".join(letters)
    twin = "x".join(data.draw(st.sampled_from([letter, *TWINS[letter]])) for letter in letters)
    assert similar_names([name, twin]) == ([] if name == twin else [(name, twin)])


@given(st.text(DISTINCT, max_size=10), st.text(DISTINCT, max_size=10))
def test_other_names_are_told_apart(one: str, other: str) -> None:
    """Names of letters and digits that do not look alike differ, unless by blanks alone."""
    is_similar = one != other and one.replace(" ", "") == other.replace(" ", "")
    assert similar_names([one, other]) == ([(one, other)] if is_similar else [])
