"""Rendering of pages from the templates, styles and scripts of this package."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, TemplateNotFound
from markupsafe import Markup

from autorubric.report._encode import script_json


def page(
    *,
    title: str,
    scripts: Iterable[str],
    data: dict[str, Any],
    section: Markup,
    template: str,
    connects: bool = False,
) -> str:
    """Render a page whose content security policy allows only its own styles and scripts, by digest.

    With `connects`, the page may also send requests to its own server.
    """
    style = _asset("report.css")
    script = "\n".join(_asset(name) for name in scripts)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n' if script else ""
    policy = [
        "default-src 'none'",
        f"script-src {_digest(script) if script else chr(39) + 'none' + chr(39)}",
        f"style-src {_digest(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        *(["connect-src 'self'"] if connects else []),
    ]
    return (
        environment()
        .get_template(template)
        .render(
            title=title,
            policy="; ".join(policy),
            # Own files, and JSON in which nothing is markup: the only texts that are not escaped.
            style=Markup(style),
            script=Markup(script),
            data={name: Markup(script_json(one)) for name, one in data.items()},
            section=section,
        )
    )


def environment() -> Environment:
    """Return the template environment of this package, with autoescaping."""
    return Environment(loader=_Assets(), autoescape=True, trim_blocks=True, lstrip_blocks=True)


class _Assets(BaseLoader):
    """A loader of the templates in this package."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, None, None]:
        try:
            return _asset(f"{template}.j2"), None, None
        except OSError:
            raise TemplateNotFound(template) from None


def _asset(name: str) -> str:
    return (files("autorubric.report") / "_assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
