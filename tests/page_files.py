"""What the pages of the documentation take for granted: programs that make it, by page."""

from __future__ import annotations

from typing import Final

_ESSAYS: Final = """
from autorubric import RubricDataset
_essays = RubricDataset(
    name="essays",
    rubric=[{"name": "capital", "requirement": "The text names Paris as the capital of France."}],
    items=[
        {"id": "a", "submission": "Paris is the capital of France.", "ground_truth": {"capital": "MET"}},
        {"id": "b", "submission": "It is Lyon.", "ground_truth": {"capital": "UNMET"}},
    ],
)
"""
_RUN: Final = """
from autorubric import CriterionGrader, LexicalJudge, evaluate_sync
def _run(name, dataset):
    grader = CriterionGrader(judges=[LexicalJudge()])
    evaluate_sync(dataset, grader, experiment_name=name, show_progress=False)
"""

MADE_BEFORE: Final[dict[str, str]] = {
    # Of its first command all but the installation, which is `.ci/run`'s.
    "README.md": "from tests.pages import shell\nshell('autorubric demo')\n",
    "docs/how-to/critique-tool.md": """
import os
from pathlib import Path
from tests.pages import shell
Path("fetch.py").write_text("import urllib\\n", encoding="utf-8")
# A server of the tests stands for the models of the page's table.
_server = os.environ["AUTORUBRIC_DOCS_SERVER"]
_table = f"providers: {{gpt4: {{model: hosted_vllm/m1, api_base: '{_server}'}}}}"
Path("providers.yaml").write_text(_table, encoding="utf-8")
shell("git init --quiet . && git add --intent-to-add fetch.py")
""",
    "docs/how-to/decision-models.md": """
import os
from autorubric.demo import demo_dataset
# A server of the tests stands for the reader's own.
os.environ["DECISION_API_BASE"] = os.environ["AUTORUBRIC_DOCS_SERVER"]
demo_dataset().subset(range(20)).to_file("demo.json")
""",
    "docs/how-to/look-at-a-run.md": _RUN
    + """
from autorubric.demo import demo_dataset
for _name in ("before", "after"):
    _run(_name, demo_dataset().subset(range(8)))
demo_dataset().rubric.to_file("reweighted.yaml")
""",
    "docs/how-to/local-model.md": _ESSAYS
    + """
from pathlib import Path
_essays.rubric.to_file("rubric.yaml")
Path("replies.csv").write_text("submission\\nParis is the capital of France.\\n", encoding="utf-8")
""",
    "docs/how-to/providers.md": _ESSAYS
    + """
from pathlib import Path
_essays.rubric.to_file("rubric.yaml")
Path("replies.csv").write_text("submission\\nParis is the capital of France.\\n", encoding="utf-8")
""",
    "docs/how-to/red-team.md": _ESSAYS + "_essays.to_file('essays.json')\n",
    "docs/how-to/report.md": _ESSAYS + _RUN + "for _n in (1, 2):\n    _run(f'essays-{_n}', _essays)\n",
    # The array's other jobs, and the number by which Slurm tells a job which one it is.
    "docs/how-to/running-on-a-cluster.md": _ESSAYS
    + """
import os
from tests.pages import shell
_more = [{"id": str(n), "submission": "It is Paris."} for n in range(64)]
RubricDataset(name="essays", rubric=_essays.rubric, items=_more).to_file("essays.jsonl")
for _job in range(1, 64):
    shell(f"autorubric eval essays.jsonl --judge lexical --name essays --shard {_job}/64 --no-progress")
os.environ["SLURM_ARRAY_TASK_ID"] = "0"
""",
    "docs/how-to/what-a-run-costs.md": _ESSAYS + "_essays.to_file('essays.json')\n",
}
