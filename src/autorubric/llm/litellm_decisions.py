"""Decision models of hosted providers, through litellm's `systemone` and `decisions`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autorubric.errors import MissingDependencyError
from autorubric.llm.decision_wire import decisions_in
from autorubric.llm.litellm_transport import LiteLLMTransport
from autorubric.llm.transport import ModelReply, ModelRequest


class LiteLLMDecisions(LiteLLMTransport):
    """A transport for decision models of any provider that litellm supports."""

    expected = "an answer to questions"

    def _fixed_arguments(self, litellm: Any) -> dict[str, Any]:
        if not hasattr(litellm, "asystemone"):
            raise MissingDependencyError(
                "decision models require litellm 1.105; run `pip install -U litellm`, or set api_base"
            )
        return super()._fixed_arguments(litellm)

    async def _call(self, litellm: Any, arguments: Mapping[str, Any]) -> Any:
        return await (litellm.asystemone if "state" in arguments else litellm.adecisions)(**arguments)

    def _arguments(self, request: ModelRequest, fixed: Mapping[str, Any]) -> Any:
        return {**request.params, **json.loads(request.messages[0].content), **fixed}, ()

    def _reply_in(self, response: Any, model: str) -> ModelReply | None:
        return decisions_in(response.model_dump(mode="json"), model)
