from .budget import (
    Budget as Budget,
    Spending as Spending,
    SpendingLimit as SpendingLimit,
    SpendingLimitName as SpendingLimitName,
    budget_in_force as budget_in_force,
    one_call as one_call,
    spending_within as spending_within,
)
from .cache import CacheStats as CacheStats, ReplyCache as ReplyCache
from .client import LLMClient as LLMClient, generate as generate, generate_sync as generate_sync
from .config import (
    LLMConfig as LLMConfig,
    ThinkingConfig as ThinkingConfig,
    ThinkingLevel as ThinkingLevel,
    TransportName as TransportName,
    TruncatePolicy as TruncatePolicy,
)
from .names import owner_of as owner_of, prefix_of as prefix_of, unset_variable as unset_variable
from .prices import (
    CHARACTERS_PER_TOKEN as CHARACTERS_PER_TOKEN,
    PRICE_IT as PRICE_IT,
    Price as Price,
    Pricing as Pricing,
    prompt_tokens as prompt_tokens,
)
from .rate_limits import (
    WINDOW_SECONDS as WINDOW_SECONDS,
    Authority as Authority,
    Limiter as Limiter,
    RequestGate as RequestGate,
    RequestLimits as RequestLimits,
    Slot as Slot,
    Traffic as Traffic,
    limiter_for as limiter_for,
    local_limiter as local_limiter,
    set_authority as set_authority,
)
from .reply_json import (
    parse_json as parse_json,
    parse_json_list as parse_json_list,
    parse_reply as parse_reply,
    without_thinking as without_thinking,
)
from .retry import listen_to_retries as listen_to_retries, without_retries as without_retries
from .route import (
    pricings_of as pricings_of,
    spending_limit as spending_limit,
    unknown_prices as unknown_prices,
)
from .specs import holds_secret as holds_secret
from .transport import (
    Exchange as Exchange,
    Message as Message,
    ModelReply as ModelReply,
    ModelRequest as ModelRequest,
    ReplySchema as ReplySchema,
    Role as Role,
    Transport as Transport,
)

__all__: list[str]
