"""Derives the provider, the wire name and the address from a model's name and endpoint."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

OPENAI_COMPATIBLE: Final = frozenset(
    {
        *("custom_openai", "hosted_vllm", "litellm_proxy", "llama_cpp", "llamafile", "lm_studio", "ollama"),
        *("ollama_chat", "openai", "openai_compatible", "openai_like", "sglang", "vllm"),
    }
)
"""Prefixes of model names whose servers use the OpenAI chat protocol."""

_OTHER_PROVIDERS: Final = frozenset({
    "ai21", "ai21_chat", "aiml", "aiohttp_openai", "amazon_nova", "anthropic", "anthropic_text", "azure",
    "azure_ai", "azure_text", "baseten", "bedrock", "bedrock_mantle", "bytez", "cerebras", "chatgpt",
    "chutes", "clarifai", "cloudflare", "codestral", "cohere", "cohere_chat", "cometapi", "compactifai",
    "dashscope", "databricks", "datarobot", "deepinfra", "deepseek", "docker_model_runner", "edenai",
    "featherless_ai", "fireworks_ai", "friendliai", "gemini", "gigachat", "github", "github_copilot",
    "groq", "helicone", "heroku", "huggingface", "hyperbolic", "inception", "lambda_ai", "lemonade",
    "maritalk", "meta", "meta_llama", "minimax", "mistral", "modelscope", "moonshot", "morph", "nebius",
    "nlp_cloud", "novita", "nscale", "nvidia_nim", "oci", "oobabooga", "openrouter", "ovhcloud",
    "perplexity", "poe", "predibase", "publicai", "reka", "replicate", "sagemaker", "sagemaker_chat",
    "sagemaker_nova", "sambanova", "sap", "scaleway", "snowflake", "tencent", "text-completion-codestral",
    "text-completion-openai", "together_ai", "triton", "v0", "vercel_ai_gateway", "vertex_ai",
    "vertex_ai_beta", "volcengine", "wandb", "watsonx", "watsonx_text", "xai", "xinference", "zai",
})  # fmt: skip
"""Prefixes of the other providers that litellm calls; a list, because importing litellm takes seconds."""

_FAMILIES: Final = {"chatgpt": "openai", "claude": "anthropic", "gpt": "openai", "o": "openai"}
"""Providers of models without a prefix, by the letters that their names begin with."""

UNKNOWN_TO_LITELLM: Final = frozenset({"llama_cpp", "openai_compatible", "openai_like", "sglang", "vllm"})
"""Prefixes of servers that litellm has another name for, or none."""

_OWN_SERVERS: Final = OPENAI_COMPATIBLE - {"llamafile", "ollama", "ollama_chat", "openai"} | {"xinference"}
_LOCAL_SERVERS: Final = OPENAI_COMPATIBLE - {"custom_openai", "litellm_proxy", "openai"} - {
    *("openai_compatible", "openai_like")
} | {"docker_model_runner", "lemonade", "oobabooga", "xinference"}
"""Prefixes of servers that users run themselves."""
_BARE_HOST_SERVERS: Final = frozenset({"lm_studio", "ollama", "ollama_chat"})
_OPENAI_HOST: Final = "api.openai.com"
_LONGEST_NAME: Final = 40


def prefix_of(model: str) -> str:
    """Return the provider prefix of a model name (`openai` in `openai/gpt-6-luna`), or an empty string."""
    prefix, slash, _ = model.partition("/")
    return prefix if slash else ""


def owner_of(model: str) -> str:
    """Return the provider that a model's key belongs to; for unknown names without a prefix, their family."""
    family = re.split(r"[^a-z]", model.lower(), maxsplit=1)[0]
    return prefix_of(model) or _FAMILIES.get(family, family)


def needs_address(model: str) -> bool:
    """Return whether litellm knows no address of the user's own server, and would send requests to OpenAI."""
    prefix = prefix_of(model)
    is_set = bool(os.environ.get(f"{prefix.upper()}_API_BASE")) and prefix not in UNKNOWN_TO_LITELLM
    return prefix in _OWN_SERVERS and not is_set


def wire_name(model: str) -> str:
    """Return the model's name for an OpenAI-compatible server, without the provider prefix."""
    return model.partition("/")[2] if prefix_of(model) in OPENAI_COMPATIBLE else model


def speaks_openai(model: str) -> bool:
    """Return whether the name has the prefix of an OpenAI-compatible server, or none of a provider."""
    # Servers such as vLLM use names like `Qwen/Qwen3-8B`, whose first part is not a provider.
    return prefix_of(model) not in _OTHER_PROVIDERS


def completions_url(api_base: str, model: str) -> str:
    """Return the URL for chat completions; `/v1` is added for servers that are usually given as a host."""
    base = api_base.rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    if prefix_of(model) in _BARE_HOST_SERVERS and not urlsplit(base).path:
        base += "/v1"
    return f"{base}/chat/completions"


def is_openai_itself(api_base: str) -> bool:
    """Return whether the endpoint is OpenAI's own, over TLS, where `OPENAI_API_KEY` is the default key."""
    parts = urlsplit(api_base)
    return parts.scheme == "https" and parts.hostname == _OPENAI_HOST and parts.port in (None, 443)


def is_local(model: str, api_base: str | None) -> bool:
    """Return whether a model is served by the user's own server, by its prefix or a loopback address."""
    host = (urlsplit(api_base).hostname if api_base else None) or ""
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost" or host.endswith(".localhost")
    return is_loopback or prefix_of(model) in _LOCAL_SERVERS


def provider_of(model: str, api_base: str | None) -> str:
    """Return the name under which limits are shared: the endpoint, or the provider if none is set."""
    return api_base.rstrip("/") if api_base else prefix_of(model) or "openai"


def unset_variable(option: str, name: str) -> str:
    """Return the message for a variable that is not set; a name that may be a key is not shown."""
    if name.isupper() and len(name) <= _LONGEST_NAME and not name.startswith("SK"):
        return f"{option} {name}: the environment variable is not set or is empty"
    return (
        f"{option} must be the NAME of an environment variable that is set, such as MY_API_KEY. If you "
        "passed the key itself, store it in a variable and pass the variable's name"
    )
