"""The tool `critique.evaluate`, with which agents and people get a critique of their work.

    response = await critique_evaluate({"content": code, "criteria": ["correctness", "security"]})
    response.one_line()                                   # ✓ 8.5/10 · 3 issues · 2 suggestions

Errors in requests are returned as `{"ok": false, "error": ...}`.
"""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
