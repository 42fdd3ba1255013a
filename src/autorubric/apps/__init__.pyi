from . import drafts as drafts, redteam as redteam, strategy as strategy, tool as tool

__all__: list[str]
