"""JSON schema of run files for editors, generated from the models and including the schema of rubrics."""

from __future__ import annotations

from autorubric.rubric import Rubric
from autorubric.run_file._content import RunFile
from autorubric.values import Json


def run_file_schema() -> dict[str, Json]:
    """Return the JSON schema (2020-12) of run files."""
    rubric = Rubric.json_schema()
    schema = RunFile.model_json_schema()
    schema["properties"]["rubric"] = {
        "description": schema["properties"]["rubric"]["description"],
        "anyOf": [{"type": "string"}, *rubric["anyOf"]],
    }
    definitions = {**rubric["$defs"], **schema["$defs"]}
    return {**schema, "$schema": rubric["$schema"], "title": "autorubric run file", "$defs": definitions}
