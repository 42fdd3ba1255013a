from .client import LLMClient as LLMClient, generate as generate, generate_sync as generate_sync
from .config import LLMConfig as LLMConfig, ThinkingConfig as ThinkingConfig, ThinkingLevel as ThinkingLevel
from .transport import (
    ModelReply as ModelReply,
    ModelRequest as ModelRequest,
    ReplySchema as ReplySchema,
    Transport as Transport,
)

__all__: list[str]
