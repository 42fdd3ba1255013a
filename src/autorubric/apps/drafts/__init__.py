"""The critique pass, in which a teacher critiques drafts and rewrites those that need revision.

    stats = generate_critiques("drafts.jsonl", "out", teacher="gpt-6-luna")
    stats["verdict_distribution"]
    refine("out/critiques_v1.jsonl", "drafts.jsonl", "out", teacher="gpt-6-luna")

Drafts are JSON lines of the form `{"id", "prompt", "output", "contract"}`. The contract is the result of an
automatic check of the output. Records are appended as they arrive, so that an interrupted pass can be
continued with `resume=True`.
"""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
