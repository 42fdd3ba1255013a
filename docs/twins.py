"""Synchronous twins in the API reference: as functions, with a link to the async function."""

from __future__ import annotations

import re
from typing import Any, Final

from griffe import Attribute, Class, Docstring, ExprCall, Extension, Function, Module

_LEAD: Final = re.compile(r"Call `(\w+)` from synchronous code")


class SynchronousTwins(Extension):
    """Shows `x_sync = sync_twin(x)` as a function, as `help` does, and links each twin to its function."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Change the twins of a package."""
        _change_twins(pkg)


def _change_twins(scope: Module | Class) -> None:
    for name, member in list(scope.members.items()):
        if isinstance(member, Module | Class):
            _change_twins(member)
        elif isinstance(member, Attribute) and (function := _twinned(member)):
            scope.set_member(name, _twin(member, function))
        elif isinstance(member, Function) and member.docstring:
            text = member.docstring.value
            member.docstring.value = _LEAD.sub(
                lambda found: _link(scope, found[1]), text
            )


def _twinned(attribute: Attribute) -> Function | None:
    """Return the async function that an attribute is the twin of."""
    value = attribute.value
    makers = ("sync_twin", "sync_method")
    if not isinstance(value, ExprCall) or str(value.function) not in makers:
        return None
    function = attribute.parent[str(value.arguments[0])]
    assert isinstance(function, Function)
    return function


def _twin(attribute: Attribute, function: Function) -> Function:
    twin = Function(
        attribute.name,
        lineno=attribute.lineno,
        endlineno=attribute.endlineno,
        parameters=function.parameters,
        returns=function.returns,
    )
    found = function.docstring
    lead = f"{_link(attribute.parent, function.name)}, even inside a running event loop.\n\n"
    twin.docstring = Docstring(
        lead + (found.value if found else ""),
        parent=twin,
        parser=found and found.parser,
        parser_options=found and found.parser_options,
    )
    return twin


def _link(scope: Module | Class, name: str) -> str:
    return f"Call [`{name}`][{scope.path}.{name}] from synchronous code"
