"""Keys that litellm's providers need before a request, and litellm's errors about keys and connections."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from autorubric.llm._names import owner_of, prefix_of

OWN_ADDRESS: Final = frozenset(
    {
        # A resource, workspace or deployment of the customer has its own address and the provider's key.
        *("azure", "azure_ai", "azure_text", "databricks", "datarobot"),
        *("snowflake", "watsonx", "watsonx_text"),
        # The address is a private endpoint; most requests are signed, or have a short-lived token.
        *("bedrock", "bedrock_mantle", "oci", "sagemaker", "sagemaker_chat", "sagemaker_nova", "sap"),
        *("vertex_ai", "vertex_ai_beta"),
    }
)
"""Providers whose key in the environment also belongs to an address that the user sets."""
TAKES_OPENAI_KEY: Final = frozenset({"aiohttp_openai", "custom_openai", "openai", "text-completion-openai"})
_OTHER_WAYS: Final = frozenset(
    {
        *("azure", "azure_text", "bedrock", "sagemaker", "vertex_ai", "ollama", "ollama_chat", "datarobot"),
        *("github_copilot", "chatgpt"),
    }
)
"""Providers that also work without litellm's variables: through roles, sign-in or a local server."""
_UNLISTED: Final = {
    **{name: f"{name.upper()}_API_KEY" for name in ("clarifai", "compactifai", "minimax", "predibase")},
    "cohere_chat": "COHERE_API_KEY",
    "cometapi": "COMETAPI_KEY",
}
"""Variables of providers that litellm calls without a key and names no variable for."""
_AWS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("bedrock_mantle", "sagemaker_chat", "sagemaker_nova"), _AWS),
    **dict.fromkeys(("custom_openai", "text-completion-openai"), ("OPENAI_API_KEY",)),
    "anthropic_text": ("ANTHROPIC_API_KEY",),
    "watsonx_text": ("WATSONX_API_KEY",),
}
"""Variables of providers that share those of another provider."""
_PREFIXES: Final = {"gemini": "GOOGLE_", "huggingface": "HF_", "openrouter": "OR_"} | dict.fromkeys(
    ("cohere", "cohere_chat"), "CO_"
)
"""Additional prefixes of the variables that litellm reads for a provider."""
_ONE_KEY: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (f"{name.upper()}_API_KEY",) for name in ("anthropic", "cerebras", "cohere", "deepseek")},
    **{name: (f"{name.upper()}_API_KEY",) for name in ("groq", "mistral", "openai", "openrouter", "xai")},
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY",),
}
"""Variables of providers that accept nothing but a key."""
_SECRET: Final = re.compile(r"(?:KEY|TOKEN|JWT)$")
_NO_KEY: Final = re.compile(
    r"missing credentials|no credentials found|unable to locate credentials|no usable .{0,20}credentials|"
    r"(?:missing|not set|is not set|required|no)\b.{0,40}\b(?:api[ _]?key|jwt key|api token|token)\b|"
    r"\b(?:api[ _]?key|token)\b.{0,40}\b(?:missing|not set|required|must be|not found|not provided)|"
    r"api key are not set|missing \w+ tenant id",
    re.IGNORECASE,
)
_NOT_CONNECTED: Final = frozenset(
    {
        *("ConnectError", "ConnectTimeout", "ClientConnectorError", "ClientConnectorDNSError"),
        *("ConnectionRefusedError", "gaierror", "EndpointConnectionError"),
    }
)
_CLIENTS: Final = frozenset({"aiohttp", "anthropic", "botocore", "h11", "httpcore", "httpx", "openai"})
_NO_CONNECTION: Final = re.compile(
    r"cannot connect to host|connection refused|name resolution|name or service not known|"
    r"nodename nor servname|all connection attempts failed",
    re.IGNORECASE,
)


def missing_variables(litellm: Any, model: str, provider: str) -> tuple[str, ...]:
    """Return the environment variables of missing keys; empty if no key is known to be missing.

    No request is sent. A key that litellm gets from elsewhere, such as a secret manager, or from another
    variable whose name begins with the provider's name, is not missing.

    Args:
        litellm: The litellm module.
        model: The model's name for litellm, with the provider prefix.
        provider: The provider's name.
    """
    if provider in _OTHER_WAYS or litellm.secret_manager_client is not None or litellm.api_key:
        return ()
    if any(_SECRET.search(name) and os.environ[name] for name in _variables_of(provider)):
        return ()
    return tuple(name for name in named_variables(litellm, model, provider) if _SECRET.search(name))


def advice_before_import(model: str) -> str:
    """Return advice if a hosted model's key is certainly missing; empty otherwise.

    litellm takes seconds to import. Once it is imported, or if it may read a `.env` file, a key may come from
    elsewhere.
    """
    # `claude-…@…` and `claude-…:…` are names at Google and Amazon.
    is_bare = re.fullmatch(r"(?:claude|gpt)-[\w.-]+", model)
    provider = owner_of(model) if is_bare else prefix_of(model)
    names = _ONE_KEY.get(provider, ())
    spec = find_spec("litellm") if names and "litellm" not in sys.modules else None
    if spec is None or any(os.environ[name] for name in _variables_of(provider)):
        return ""
    folders = (*Path(spec.origin or "").parents, Path.cwd(), *Path.cwd().parents)
    return "" if any((one / ".env").exists() for one in folders) else key_advice(provider, names)


def _variables_of(provider: str) -> list[str]:
    """Return the environment variables whose names begin with the provider's name."""
    stem = re.sub(r"_ai$|_chat$", "", provider).replace("-", "_").upper()
    prefixes = (stem, stem.replace("_", ""), _PREFIXES.get(provider, stem))
    return [name for name in os.environ if name.startswith(prefixes)]


def key_advice(provider: str, names: Sequence[str]) -> str:
    """Return advice for a missing key, with the environment variable to set."""
    names = _ALIASES.get(provider, ()) or names
    secret = [name for name in names if _SECRET.search(name) or name.startswith("AWS_")]
    shown = secret or names or (f"{re.sub(r'[^A-Z0-9]', '_', provider.upper())}_API_KEY",)
    both = " and " if shown[0].startswith("AWS_") else " or "
    return (
        f"no key for {provider}; set {both.join(shown)} in the environment, or use --api-key-env NAME "
        "(api_key_env in an LLMConfig)"
    )


def says_key_is_missing(text: str) -> bool:
    """Return whether an error of litellm reports that a key is missing."""
    return _NO_KEY.search(text) is not None


def never_connected(error: BaseException) -> bool:
    """Return whether the error or one of its causes reports that no connection could be established."""
    chain = list(_chain(error))
    return any(type(one).__name__ in _NOT_CONNECTED for one in chain) or any(
        _NO_CONNECTION.search(str(one)) for one in chain
    )


def was_sent(error: BaseException) -> bool:
    """Return whether the error came from a network client and not from litellm's own preparation."""
    return any(
        isinstance(one, OSError | EOFError) or type(one).__module__.partition(".")[0] in _CLIENTS
        for one in _chain(error)
    )


def named_variables(litellm: Any, model: str, provider: str) -> tuple[str, ...]:
    """Return the provider's variables, from litellm or the tables here; empty if neither names any."""
    if provider in _UNLISTED:
        return (_UNLISTED[provider],)
    if provider in ("github_copilot", "chatgpt"):
        # litellm signs in over the network to answer.
        return ()
    return tuple(litellm.validate_environment(model=model)["missing_keys"])


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
