"""Importers that read files of other tools as datasets."""

from autorubric.dataset._importers._healthbench import from_healthbench
from autorubric.dataset._importers._paperbench import from_paperbench
from autorubric.dataset._importers._promptfoo import from_promptfoo

__all__ = ["from_healthbench", "from_paperbench", "from_promptfoo"]
