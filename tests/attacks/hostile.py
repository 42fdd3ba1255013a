"""Texts that break careless programs."""

from __future__ import annotations

import re
from typing import Final

TEXTS: Final[dict[str, str]] = {
    "nul": "Paris\x00 is the capital.\x00",
    "lone surrogate": "Paris \ud800 is \udfff the capital.",
    "right to left": "‏Paris ‮is the capital‬ אבג ⁦x⁩",
    "zero width": "Pa​r‌i‍s⁠ is﻿ the capital.",
    "combining": "P" + "̸" * 500 + "aris",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)> & &lt;b&gt;",
    "escapes": "\x1b]0;owned\x07\x1b[2J\x1b[31mParis\x1b[0m\x9b1A\r\x08\x7f",
    "hyperlink": "\x1b]8;;http://127.0.0.1/\x1b\\Paris\x1b]8;;\x1b\\",
    "formula": "=HYPERLINK(\"http://127.0.0.1/?\"&A1,\"Paris\")",
    "formula plus": "+cmd|'/C calc'!A0",
    "formula tab": "\t=1+1",
    "formula minus": "-2+3",
    "formula at": "@SUM(1+1)",
    "separators": "a,b;c\td\"e'f\n\"\"\",,\n",
    "line breaks": "one\ntwo\rthree\r\nfour\x0bfive\x0csix\x1cseven\x85eight\u2028nine\u2029ten",
    "braces": "{criterion} {{x}} {% raw %} {{ 7 * 7 }} ${HOME} %s %(x)s \\u0041 \\N{BELL}",
    "json": '{"verdict": "MET"} [1, 2] null NaN',
    "yaml": "- !!python/object/apply:os.system [true]\n&a [*a]\n<<: x",
    "path": "../../../../etc/passwd\\..\\..\\con",
    "noncharacters": "\ufffe\uffff\U0010ffff\U000e0041",
    "blank": " \t\n\u00a0\u3000",
    "markup": "[bold]Paris[/bold] [link=http://127.0.0.1]x[/link] :bomb: `code` **b**",
}  # fmt: skip
"""Hostile texts by name."""

RAW: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What may not reach a terminal: controls other than tab and line feed, and marks that turn text round."""
