"""Run files: a dataset, a rubric, judges and their settings in one YAML file."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.run_file._content import Budget, DataSource, FewShotSource, JudgeEntry, RunFile
    from autorubric.run_file._read import is_run_file, read_run_file
    from autorubric.run_file._schema import run_file_schema
    from autorubric.run_file._setup import RunSetup, load_run, set_up

__all__ = [
    "Budget", "DataSource", "FewShotSource", "JudgeEntry", "RunFile", "RunSetup", "is_run_file",
    "load_run", "read_run_file", "run_file_schema", "set_up",
]  # fmt: skip

_HOMES = {
    "_content": ("Budget", "DataSource", "FewShotSource", "JudgeEntry", "RunFile"),
    "_setup": ("RunSetup", "load_run", "set_up"),
    "_read": ("is_run_file", "read_run_file"),
    "_schema": ("run_file_schema",),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
