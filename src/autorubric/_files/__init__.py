"""Files with structured text: data with line numbers, collected errors, atomic writing, and locks."""

from autorubric._files._compact import compact_json, read_compact
from autorubric._files._faults import Faults, nearest_key, retyped, shortened
from autorubric._files._json import parse_json
from autorubric._files._lock import FileLock
from autorubric._files._paths import FilePath, SyntaxFault, path_text
from autorubric._files._pyarrow import load_pyarrow
from autorubric._files._read import (
    FORMATS,
    MAX_LINE_BYTES,
    Document,
    bounded_lines,
    dump_structured,
    format_fault,
    format_of,
    parse_line,
    parse_structured,
    read_bounded,
    read_structured,
    read_text,
    reading,
    text_or_path,
)
from autorubric._files._write import (
    remove_abandoned,
    write_bytes_atomic,
    write_parts_atomic,
    write_text_atomic,
)

__all__ = [
    "FORMATS",
    "MAX_LINE_BYTES",
    "Document",
    "Faults",
    "FileLock",
    "FilePath",
    "SyntaxFault",
    "bounded_lines",
    "compact_json",
    "dump_structured",
    "format_fault",
    "format_of",
    "load_pyarrow",
    "nearest_key",
    "parse_json",
    "parse_line",
    "parse_structured",
    "path_text",
    "read_bounded",
    "read_compact",
    "read_structured",
    "read_text",
    "reading",
    "remove_abandoned",
    "retyped",
    "shortened",
    "text_or_path",
    "write_bytes_atomic",
    "write_parts_atomic",
    "write_text_atomic",
]
