"""Everything that reads what others wrote, each with small valid files to begin from."""

from __future__ import annotations

import io
import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import yaml

from autorubric import (
    CriterionGrader,
    EvalResult,
    LexicalJudge,
    LLMConfig,
    RecordedJudge,
    Rubric,
    RubricDataset,
    evaluate_sync,
    from_healthbench,
    from_paperbench,
    from_promptfoo,
    load_critique_schema,
    merge_labels,
)
from autorubric.apps.drafts.drafts import read_drafts
from autorubric.apps.drafts.records import RecordFile
from autorubric.apps.drafts.refinement import Jobs, RiskRange
from autorubric.apps.redteam.attacks import attacks_of
from autorubric.apps.tool import ProviderTable, critique_evaluate_sync
from autorubric.apps.tool.request import read_request
from autorubric.errors import ArgumentError, AutorubricError, FileError, ReplyError
from autorubric.llm import ModelReply
from autorubric.llm.cache import ReplyCache
from autorubric.llm.reply_json import parse_reply, parse_reply_json
from autorubric.metrics.core.label_table import table_of
from autorubric.runs import merge_runs
from autorubric.support.read import read_structured

RUBRIC: Final[dict[str, Any]] = {
    "format": 1,
    "guidelines": "Be strict.",
    "criteria": [
        {"name": "capital", "requirement": "The text names Paris.", "weight": 4},
        {
            "name": "form",
            "requirement": "How long is it?",
            "weight": -2.5,
            "scale_type": "ordinal",
            "options": [{"label": "short", "value": 0.0}, {"label": "long", "value": 1.0}],
        },
        {
            "type": "likert",
            "name": "tone",
            "requirement": "Is it kind?",
            "scale": [{"val": 1, "description": "no"}, {"val": 5, "description": "yes"}],
        },
    ],
}
ITEMS: Final[list[dict[str, Any]]] = [
    {"id": "a", "submission": "Paris it is.", "ground_truth": {"capital": "MET", "form": "short"}},
    {"id": "b", "submission": {"thinking": "hm", "output": "Lyon."}, "metadata": {"k": [1, None]}},
    {"submission": [{"role": "user", "content": "Hello"}], "ratings": {"r1": {"capital": "UNMET"}}},
]
DATASET: Final[dict[str, Any]] = {"format": 1, "name": "d", "rubric": RUBRIC, "items": ITEMS}
CONFIG: Final[dict[str, Any]] = {
    "model": "openai/m",
    "temperature": 0.5,
    "max_tokens": 20,
    "fallbacks": ["other"],
    "thinking": {"level": "low"},
    "extra_headers": {"X-A": "b"},
    "extra_params": {"top_k": 3},
}
PROVIDERS: Final[dict[str, Any]] = {
    "format": 1,
    "audit_path": "audit.jsonl",
    "providers": {"gpt4": "openai/m", "local_fm": {"model": "m", "api_base": "http://127.0.0.1:1/v1"}},
}
REQUEST: Final[dict[str, Any]] = {
    "content": "def f():\n    return 1\n",
    "content_type": "code",
    "criteria": ["quality", "mine"],
    "scoring_scale": "letter",
    "max_issues": 3,
}
DRAFT: Final[dict[str, Any]] = {
    "id": "d1",
    "prompt": "Say hello.",
    "output": {"text": "Hello"},
    "contract": None,
}
RECORD: Final[dict[str, Any]] = {
    "id": "d1",
    "critique": {
        "verdict": "revise",
        "scores": {"accuracy": 5},
        "issues": [{"severity": "low"}],
        "hallucination": {"risk_level": "low"},
    },
    "error": None,
}
ATTACKS: Final[dict[str, Any]] = {
    "format": 1,
    "attacks": [{"id": "a", "family": "f", "text": "x {payload}", "payload": "y", "encoding": "hex"}],
}
HEALTHBENCH: Final[dict[str, Any]] = {
    "prompt_id": "p",
    "prompt": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Yes?"}],
    "rubrics": [{"criterion": "It greets.", "points": 3, "tags": ["axis:tone"]}],
    "ideal_completions_data": {"ideal_completion": "Good day."},
}
PAPERBENCH: Final[dict[str, Any]] = {
    "id": "a",
    "requirements": "All.",
    "weight": 1,
    "sub_tasks": [
        {"id": "b", "requirements": "Some.", "weight": 2, "sub_tasks": [], "task_category": "Code"},
        {"id": "c", "requirements": "More.", "weight": 1.5, "sub_tasks": []},
    ],
}
PROMPTFOO: Final[dict[str, Any]] = {
    "prompts": ["Say {{word}}."],
    "defaultTest": {"assert": [{"type": "llm-rubric", "value": "Is kind"}]},
    "tests": [
        {
            "description": "one",
            "vars": {"word": "hello"},
            "assert": [
                {
                    "type": "llm-rubric",
                    "value": "Says {{word}}",
                    "weight": 2,
                    "threshold": 0.5,
                    "metric": "m",
                },
                {"type": "assert-set", "assert": [{"type": "contains", "value": "x"}]},
            ],
        }
    ],
}
TABLES: Final = (
    '[judge]\nmodel = "m"\n\n[[criterion]]\nname = "a"\ndescription = "x"\ntype = "likert"\npoints = 5\n\n'
    '[[criterion]]\ndescription = "y"\ntype = "numeric"\nmin = 0\nmax = 2\nweight = 3\n'
)
CHOICES: Final[list[dict[str, Any]]] = [
    {"name": "a", "text": "How?", "weight": 2, "choices": ["bad", "good"]},
    {"name": "b", "text": "So?", "choices": {"no": 0, "yes": 1}},
]
LABELS: Final[list[dict[str, Any]]] = [
    {"format": 1, "kind": "labels", "rater": "r"},
    {"item_id": "a", "criterion": "capital", "rater": "r", "value": "MET", "time": "2026-01-01T00:00:00Z"},
    {"item_id": "b", "criterion": "tone", "rater": "r", "value": 4, "sha256": "", "reason": "so"},
]
VOTES_CSV: Final = (
    "item_id,criterion,rater,rater_type,value,sample,confidence\n"
    "a,capital,r1,llm,MET,0,0.5\n"
    'b,capital,r1,llm,"UN""MET",0,\n'
    "a,form,r2,human,short,0,1\n"
)
ITEMS_CSV: Final = 'id,submission,truth.capital,meta.k\na,"Paris, it is.",MET,1\nb,Lyon.,,\n'
REPLY: Final = (
    'I think.\n```json\n{"verdict": "MET", "reason": "It says {so}.", "n": [1, 2.5, null,]}\n```\nDone.'
)


@dataclass(frozen=True)
class Loader:
    """Something that reads a file.

    Attributes:
        name: The file's name; its suffix says the format where there are several.
        read: Reads the file in the folder of that name.
        made: Makes valid contents.
        allowed: The errors that it may raise.
    """

    name: str
    read: Callable[[Path], object]
    made: Callable[[], tuple[bytes, ...]]
    allowed: tuple[type[Exception], ...] = (AutorubricError,)

    @property
    def seeds(self) -> tuple[bytes, ...]:
        """Valid contents."""
        return self.made()

    def __call__(self, content: bytes, folder: Path) -> bool:
        """Whether the content is read; False where it is refused as it may be."""
        path = folder / self.name.partition(":")[2]
        path.write_bytes(content)
        try:
            self.read(path)
        except self.allowed:
            return False
        return True


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1).encode("utf-8")


def _yaml(content: Any) -> bytes:
    return yaml.safe_dump(content, sort_keys=False).encode("utf-8")


def _lines(*contents: Any) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in contents).encode("utf-8")


def _toml() -> bytes:
    import tomli_w

    return tomli_w.dumps(RUBRIC).encode("utf-8")


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": ["a", "b"], "submission": ["Paris.", None], "truth.capital": ["MET", None]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


@cache
def _run() -> Path:
    """A small finished run."""
    folder = Path(mkdtemp(prefix="autorubric-fuzz-"))
    dataset, grader = _dataset_of_run(), _grader()
    evaluate_sync(dataset, grader, experiment_name="run", experiments_dir=folder, show_progress=False)
    return folder / "run"


def _dataset_of_run() -> RubricDataset:
    items = [{"id": "a", "submission": "Paris it is."}, {"id": "b", "submission": "Lyon."}]
    return RubricDataset.from_dict({"rubric": {"criteria": RUBRIC["criteria"][:2]}, "items": items})


def _grader() -> CriterionGrader:
    return CriterionGrader(judges=[LexicalJudge()])


def _reopened(path: Path) -> object:
    for other in _run().iterdir():
        if other.is_file() and other.name not in (path.name, "lock"):
            shutil.copyfile(other, path.parent / other.name)
    result = EvalResult.from_experiment(path.parent)
    return result.summary(), result.get_scores(), result.errors, result.total_token_usage


def _resumed(path: Path) -> object:
    """The run, gone on with from a copy of its folder."""
    folder = path.parent / "resumed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_run(), folder)
    shutil.copyfile(path, folder / path.name)
    grader, dataset = _grader(), _dataset_of_run()
    options: dict[str, Any] = {"experiments_dir": path.parent, "show_progress": False}
    return evaluate_sync(dataset, grader, experiment_name="resumed", **options).get_scores()


def _combined(path: Path) -> object:
    """A run that is damaged, merged with the whole one of the same items; then what was asked in it."""
    part, out = path.parent / "part", path.parent / "out"
    for folder in (part, out):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_run(), part)
    shutil.copyfile(path, part / path.name)
    merged = merge_runs([_run(), part], out)
    return merged.get_scores(), [merged.exchanges(item_id) for item_id in ("a", "b")]


def _asked(path: Path) -> object:
    _reopened(path)
    return EvalResult.from_experiment(path.parent).exchanges("a")


def _streamed(path: Path) -> object:
    """The items twice: in order, and then each by its place, last first."""
    dataset = RubricDataset.stream(path)
    return list(dataset), [dataset.item_truth(at) for at in reversed(range(len(dataset)))]


@cache
def _cache() -> bytes:
    """A reply cache with one reply."""
    folder = Path(mkdtemp(prefix="autorubric-fuzz-"))
    cache = ReplyCache(folder)
    cache.put("key", ModelReply(text="yes", model="m"))
    cache.close()
    return cache.path.read_bytes()


def _cached(path: Path) -> object:
    """Never raises: a cache that cannot be used is a warning."""
    cache = ReplyCache(path.parent)
    assert cache.path == path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = cache.get("key"), cache.stats()
            cache.put("other", ModelReply(text="no", model="m"))
            return *found, cache.get("other"), cache.clear()
        finally:
            cache.close()


def _records(path: Path) -> object:
    records = RecordFile(path)
    records.read()
    return [records.find(record["id"]) for record in records.records()]


def _jobs(path: Path) -> object:
    """The critiques that are to be refined."""
    drafts = path.parent / "drafts.jsonl"
    drafts.write_bytes(_lines(DRAFT))
    return list(Jobs(path, drafts, RiskRange(least="low")))


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _request(path: Path) -> object:
    return read_request(read_structured(path).data)


def _critiqued(path: Path) -> object:
    """Never raises, whatever the content is."""
    reply = {"verdict": "MET", "score": 5, "reason": "So.", "issues": [], "summary": "Fine."}
    answer = critique_evaluate_sync(
        {"content": _text(path), "criteria": ["quality"]},
        providers={"custom:f": lambda prompt: json.dumps(reply)},
    )
    assert answer.ok in (True, False)
    return answer.model_dump_json()


def _labels(path: Path) -> object:
    rows = read_structured(path).data
    return table_of(rows)


def _rated(path: Path) -> object:
    return RubricDataset.from_dict(DATASET).with_ratings(path)


def _mapped(path: Path) -> object:
    """Rows of other people's making, by their own names."""
    return RubricDataset.from_file(
        path, rubric=Rubric.from_dict(RUBRIC), submission="text", id="key", truth={"capital": "gold"}
    )


def _quietly(read: Callable[[Path], object]) -> Callable[[Path], object]:
    """The importer without its warnings of what is left out."""

    def quiet(path: Path) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(path)

    return quiet


def _merged(path: Path) -> object:
    dataset = RubricDataset.from_dict(DATASET)
    said = {"capital": {"people": {"x": "MET"}}, "tone": {}}
    items = [{**ITEMS[0], "metadata": {"disputed": said}}, {**ITEMS[1], "metadata": {"disputed": said}}]
    disputed = RubricDataset.from_dict({**DATASET, "items": items})
    return merge_labels(dataset, [path]), merge_labels(dataset, [path], disputed=disputed)


def _exchange() -> tuple[bytes, ...]:
    head = {"criterion": "capital", "judge_id": "j", "sample": 0}
    sent = {"messages": [{"role": "user", "content": "Is it?"}], "replies": ["{}"], "dropped_params": []}
    return (_lines({"item": "a", **head, **sent}, {"item": "b", **head, "shared_with": "form"}),)


def _run_seed(name: str) -> tuple[bytes, ...]:
    return ((_run() / name).read_bytes(),)


def loaders() -> dict[str, Loader]:
    """Every loader by name."""
    rows = [
        {"item_id": "a", "criterion": "c", "rater": "r", "rater_type": "llm", "value": "MET", "sample": 0},
        {"item_id": "b", "criterion": "c", "rater": "h", "rater_type": "human", "value": 1},
    ]
    found = [
        Loader("rubric:r.yaml", Rubric.from_file, lambda: (_yaml(RUBRIC),)),
        Loader("rubric:r.json", Rubric.from_file, lambda: (_json(RUBRIC),)),
        Loader("rubric:r.toml", Rubric.from_file, lambda: (_toml(),)),
        Loader("dataset:d.json", RubricDataset.from_file, lambda: (_json(DATASET), _json(ITEMS))),
        Loader(
            "dataset:d.jsonl",
            RubricDataset.from_file,
            lambda: (_lines({"format": 1, "rubric": RUBRIC}, *ITEMS),),
        ),
        Loader("dataset:d.yaml", RubricDataset.from_file, lambda: (_yaml(DATASET),)),
        Loader("dataset:d.csv", RubricDataset.from_file, lambda: (ITEMS_CSV.encode("utf-8"),)),
        Loader("dataset:d.parquet", RubricDataset.from_file, lambda: (_parquet(),)),
        Loader("stream:d.jsonl", _streamed, lambda: (_lines({"format": 1, "rubric": RUBRIC}, *ITEMS),)),
        Loader("stream:d.parquet", _streamed, lambda: (_parquet(),)),
        Loader(
            "mapped:m.jsonl", _mapped, lambda: (_lines({"key": 1, "text": "a", "gold": "MET", "k": [1]}),)
        ),
        Loader("mapped:m.csv", _mapped, lambda: (b"key,text,gold,k\n1,Paris.,MET,2\n2,Lyon.,,\n",)),
        Loader("healthbench:h.jsonl", from_healthbench, lambda: (_lines(HEALTHBENCH),)),
        Loader("paperbench:p.json", from_paperbench, lambda: (_json(PAPERBENCH),)),
        Loader("promptfoo:p.yaml", _quietly(from_promptfoo), lambda: (_yaml(PROMPTFOO),)),
        Loader("tables:t.toml", _quietly(Rubric.from_file), lambda: (TABLES.encode("utf-8"),)),
        Loader("choices:c.json", Rubric.from_file, lambda: (_json(CHOICES),)),
        Loader("merged:l.jsonl", _merged, lambda: (_lines(*LABELS),)),
        Loader("config:c.yaml", LLMConfig.from_yaml, lambda: (_yaml(CONFIG),)),
        Loader("providers:p.yaml", ProviderTable.from_file, lambda: (_yaml(PROVIDERS),)),
        Loader("providers:p.toml", ProviderTable.from_file, lambda: (b'[providers]\ngpt4 = "openai/m"\n',)),
        Loader("run:manifest.json", _reopened, lambda: _run_seed("manifest.json")),
        Loader("run:dataset.jsonl", _reopened, lambda: _run_seed("dataset.jsonl")),
        Loader("run:votes.jsonl", _reopened, lambda: _run_seed("votes.jsonl")),
        Loader("run:items.jsonl", _reopened, lambda: _run_seed("items.jsonl")),
        Loader("resume:votes.jsonl", _resumed, lambda: _run_seed("votes.jsonl")),
        Loader("resume:items.jsonl", _resumed, lambda: _run_seed("items.jsonl")),
        Loader("combined:manifest.json", _combined, lambda: _run_seed("manifest.json")),
        Loader("combined:votes.jsonl", _combined, lambda: _run_seed("votes.jsonl")),
        Loader("combined:items.jsonl", _combined, lambda: _run_seed("items.jsonl")),
        Loader("combined:prompts.jsonl", _combined, _exchange),
        Loader("asked:prompts.jsonl", _asked, _exchange),
        Loader("cache:replies.v1.sqlite3", _cached, lambda: (_cache(),), ()),
        Loader("recorded:v.csv", RecordedJudge.panel_from_csv, lambda: (VOTES_CSV.encode("utf-8"),)),
        Loader("labels:l.json", _labels, lambda: (_json(rows),)),
        Loader("ratings:v.csv", _rated, lambda: (VOTES_CSV.encode("utf-8"),)),
        Loader("drafts:d.jsonl", lambda path: list(read_drafts(path)), lambda: (_lines(DRAFT),)),
        Loader("records:r.jsonl", _records, lambda: (_lines(RECORD),)),
        Loader("jobs:r.jsonl", _jobs, lambda: (_lines(RECORD),)),
        Loader("schema:s.json", load_critique_schema, lambda: (_json(load_critique_schema()),)),
        Loader("attacks:a.yaml", lambda path: attacks_of(read_structured(path)), lambda: (_yaml(ATTACKS),)),
        Loader("request:r.json", _request, lambda: (_json(REQUEST),), (ArgumentError, FileError)),
        Loader(
            "reply:object.txt",
            lambda path: parse_reply_json(_text(path)),
            lambda: (REPLY.encode(),),
            (ReplyError,),
        ),
        Loader(
            "reply:word.txt",
            lambda path: parse_reply(_text(path), bare=True),
            lambda: (b"**MET.**",),
            (ReplyError,),
        ),
        Loader("content:c.txt", _critiqued, lambda: (b"def f():\n    return 1\n",), ()),
    ]
    return {loader.name: loader for loader in found}


__all__ = ["Loader", "loaders"]
