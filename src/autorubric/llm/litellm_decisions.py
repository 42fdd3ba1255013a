"""Decision models of hosted providers, through litellm's `systemone` and `decisions`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from autorubric.errors import MissingDependencyError
from autorubric.llm.decision_wire import CONTRACTS, decisions_in
from autorubric.llm.litellm_transport import LiteLLMTransport
from autorubric.llm.transport import ModelReply, ModelRequest

FLOOR: Final = "1.105"
"""The first version of litellm with decision models."""


class LiteLLMDecisions(LiteLLMTransport):
    """A transport for decision models of any provider that litellm supports."""

    expected = "an answer of a decision model"

    def _fixed_arguments(self, litellm: Any) -> dict[str, Any]:
        if not hasattr(litellm, self._function):
            raise MissingDependencyError(
                f"decision models require litellm {FLOOR} or later; run `pip install -U litellm`, or set "
                "api_base to reach a server directly"
            )
        return super()._fixed_arguments(litellm)

    @property
    def _function(self) -> str:
        return "asystemone" if CONTRACTS[self._config.transport] == "systemone" else "adecisions"

    async def _call(self, litellm: Any, arguments: Mapping[str, Any]) -> Any:
        return await getattr(litellm, self._function)(**arguments)

    def _arguments(
        self, request: ModelRequest, fixed: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        return {**request.params, **json.loads(request.messages[0].content), **fixed}, ()

    def _reply_in(self, response: Any, model: str) -> ModelReply | None:
        return decisions_in(response.model_dump(mode="json"), model)
