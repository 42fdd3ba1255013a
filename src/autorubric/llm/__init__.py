"""Language models: configs, the transport interface, and the client that sends questions to them.

A request passes through `Cache(Retry(Spend(Limit(Provider))))`: a cache hit costs nothing and takes no slot,
and a retry holds no slot while it waits. No heavy module is imported and no connection is opened before the
first request is sent.
"""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
