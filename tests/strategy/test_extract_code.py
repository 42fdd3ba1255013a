"""The code extractor: fenced blocks out of a text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from autorubric.apps.strategy import extract_code

ANSWER = """Here it is:

```python
def add(a, b):
    return a + b
```

and in another language

~~~js
const add = (a, b) => a + b
~~~
"""


def test_the_first_block_is_taken() -> None:
    """Without a language the first block counts, its fences left out."""
    assert extract_code(ANSWER) == "def add(a, b):\n    return a + b"


@pytest.mark.parametrize("language", ["javascript", "js", "JS"])
def test_a_language_takes_its_first_block(language: str) -> None:
    """A language by any of its names takes the first block of it."""
    assert extract_code(ANSWER, language) == "const add = (a, b) => a + b"


def test_a_language_falls_back_on_a_block_without_one() -> None:
    """Where no block is of the language, one that names none is taken."""
    assert extract_code("```rust\na\n```\n```\nb\n```", "python") == "b"


@pytest.mark.parametrize("text", ["no block", "", "inline ```code``` only", "a ``b`` c"])
def test_without_a_block_the_whole_text_is_taken(text: str) -> None:
    """A text without a fenced block is given back as it is."""
    assert extract_code(text) == text


def test_without_a_block_of_the_language_the_whole_text_is_taken() -> None:
    """Blocks of other languages are not taken for it."""
    text = "```rust\nfn main() {}\n```"
    assert extract_code(text, "python") == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```py\nx = 1", "x = 1"),
        ("````md\n```py\nx\n```\n````", "```py\nx\n```"),
        ("- so:\n  ```py\n  if x:\n      y\n  ```", "if x:\n    y"),
        ("```py\r\nx = 1\r\n```\r\n", "x = 1"),
        ("```\n```", ""),
        ("```{.python}\nx\n```", "x"),
    ],
)
def test_fences_are_read_as_markdown_has_them(text: str, code: str) -> None:
    """Open ends, longer fences, blocks within lists, and line ends of either kind."""
    assert extract_code(text) == code


@given(code=st.text(alphabet=st.characters(blacklist_characters="`~\r\n", blacklist_categories=["Cs"])))
def test_what_is_fenced_comes_back(code: str) -> None:
    """One line of code in a fence, with prose around it, comes back as it was."""
    assert extract_code(f"Sure:\n```python\n{code}\n```\nDone.", "python") == code


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"])
def test_what_is_no_line_end_of_code_stays(mark: str) -> None:
    """Characters that split a text in Python, and no line of code, are kept as they are."""
    assert extract_code(f'```py\nx = "a{mark}b"\n```') == f'x = "a{mark}b"'


def test_fences_in_a_docstring_are_code() -> None:
    """A fence that is indented further than that of the block does not close it."""
    code = 'def f():\n    """Doc.\n\n    ```\n    f()\n    ```\n    """\n    return 1'
    assert extract_code(f"So:\n```python\n{code}\n```\nDone.") == code
    assert extract_code("- so:\n  ```py\n  x\n   ```\nnot this") == "x"
