"""The page of `autorubric view`: a run with its labels, served on the loopback interface."""

from __future__ import annotations

import hmac
import json
import secrets
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.fields import FieldMap
from autorubric.datasets.labels import DISPUTED, check_savable, merge_labels, save_truth
from autorubric.errors import ArgumentError, AutorubricError, FileError, ReplyError
from autorubric.reports.labelling import form_of
from autorubric.reports.page import report_html
from autorubric.runs.result import EvalResult
from autorubric.support.objects import Json

LABELS: Final = "labels.jsonl"


class StaleLabelError(ArgumentError):
    """A label would overwrite one that was saved after its page was loaded."""


_RUN_FILES: Final = "*.jsonl"
_BUSY: Final = 4.0
"""Minimum time between two reads of a growing run, in multiples of the time that one read takes."""


class RunPage:
    """A run's page, with the labels entered on it."""

    def __init__(self, run: Path, file: Path | None, fields: FieldMap, rater: str) -> None:
        if not rater.strip():
            raise ArgumentError("--rater must not be empty; pass a name")
        self._run, self._file, self._rater = run, file, rater
        self._lock = threading.Lock()
        self._version = 0
        self._seen: Mapping[str, int] = {}
        self._read_at = self._took = 0.0
        self.n_saved = 0
        self._result = self._read()
        self._dataset = self._result.dataset
        self._fields: FieldMap = {}
        self._content = b""
        if file is not None:
            self._open(file, fields)
        elif fields:
            raise ArgumentError("column options require --dataset FILE, the table whose columns they name")
        self._page: str | None = None

    @property
    def saved_to(self) -> str:
        """Description of the files that labels are saved to."""
        own = str(self._run / LABELS)
        return own if self._file is None else f"{self._file} and {own}"

    def html(self) -> str:
        """Return the page, rendering it again if the run has new results or labels."""
        with self._lock:
            self._refresh()
            if self._page is None:
                started, stored = time.monotonic(), _labels_in(self._run)
                labelled = self._dataset
                # A dataset file has the labels; those of a run alone are in its folder.
                if self._file is None:
                    named: dict[str, set[str]] = {}
                    for label in stored:
                        named.setdefault(label["item_id"], set()).add(label["criterion"])
                    labelled = self._with_labels(named)
                result = replace(self._result, dataset=labelled)
                self._page = report_html(result, live={"version": self._version, "labels": len(stored)})
                self._took += time.monotonic() - started
            return self._page

    def state(self) -> dict[str, Any]:
        """Return the progress of the run."""
        with self._lock:
            self._refresh()
            result = self._result
            return {
                "version": self._version,
                "done": result.total_items,
                "total": len(result.dataset),
                "cost": result.total_completion_cost,
                "failed": result.failed_items,
                "saved": self.n_saved,
            }

    def label(self, body: dict[str, Any]) -> dict[str, Any]:
        """Save the label in `body`: `item` (the item's id), `criterion`, `value`, and `labels`.

        One that overwrites any but the first `labels` in the run's folder is refused with `StaleLabelError`.
        """
        with self._lock:
            item_id, name, value = body.get("item"), body.get("criterion"), body.get("value")
            data = self._dataset
            place = next((at for at, known in enumerate(data.item_ids()) if known == item_id), None)
            if place is None:
                raise ArgumentError(f"the dataset has no item {item_id!r}")
            rubric = data.get_item_rubric(place)
            if name not in rubric.names:
                raise ArgumentError(f"unknown criterion {name!r}; available: {', '.join(rubric.names)}")
            criterion = rubric.by_name(name).bind(Submission.parse(data[place].submission))
            _demand_label(criterion, value)
            stored = _labels_in(self._run)
            self._page = None
            for one in stored[known if isinstance(known := body.get("labels"), int) else len(stored) :]:
                if (one["item_id"], one["criterion"]) == (item_id, name) and one.get("value") != value:
                    shown = f"{one.get('value')} by {one.get('rater')}"
                    raise StaleLabelError(f"a newer label was saved ({shown}); reload the page")
            label = {
                "item_id": item_id,
                "criterion": name,
                "rater": self._rater,
                "value": value,
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "sha256": data.item_fingerprint(place),
            }
            path = self._run / LABELS
            try:
                with path.open("a", encoding="utf-8", newline="\n") as file:
                    file.write(json.dumps(label, ensure_ascii=False) + "\n")
            except OSError as error:
                raise FileError.whole(path, f"{error.strerror}; the label was not saved") from None
            if self._file is not None:
                # No edit of another program may be lost.
                if not self._file.is_file() or self._file.read_bytes() != self._content:
                    raise ArgumentError(
                        f"{self._file} was changed by another program; the label was saved only to {path}. "
                        "Start autorubric view again."
                    )
                labelled = self._with_labels({str(item_id): {str(name)}})
                save_truth(labelled, self._file, {place: {name: value}}, self._fields)
                self._dataset, self._content = labelled, self._file.read_bytes()
            self.n_saved += 1
            return {"saved": self.n_saved, "label": value, "labels": len(stored) + 1}

    def _refresh(self) -> None:
        """Read the run again if its files have grown."""
        grown = self._sizes() != self._seen
        if grown and time.monotonic() - self._read_at >= _BUSY * self._took:
            self._result = self._read()
            if self._file is None:
                self._dataset = self._result.dataset
            self._version += 1
            self._page = None

    def _read(self) -> EvalResult:
        started = time.monotonic()
        self._seen = self._sizes()
        result = EvalResult.from_experiment(self._run)
        self._read_at = time.monotonic()
        self._took = self._read_at - started
        return result

    def _sizes(self) -> Mapping[str, int]:
        return {path.name: path.stat().st_size for path in self._run.glob(_RUN_FILES) if path.name != LABELS}

    def _open(self, file: Path, fields: FieldMap) -> None:
        graded = self._result.dataset
        content = file.read_bytes() if file.is_file() else b""
        own_rubric = file.suffix.lower() in (".json", ".yaml", ".yml")
        found = RubricDataset.from_file(file, rubric=None if own_rubric else graded.rubric, **fields)
        check_savable(found, file)
        same = len(found) == len(graded) and all(
            found.item_fingerprint(at) == graded.item_fingerprint(at) for at in range(len(graded))
        )
        if not same:
            raise ArgumentError(f"{file} does not match {self._run}; pass the dataset that was graded")
        self._content = content
        self._fields = {**fields, **(found.field_map or {})}
        if file.suffix.lower() in (".csv", ".tsv"):
            # The ids of a table depend on the chosen columns, whereas the ids of the run are known.
            labels = ({"ground_truth": one.ground_truth} if one.ground_truth else {} for one in found)
            items = [item.model_copy(update=own) for item, own in zip(graded, labels, strict=True)]
            found = graded.with_items(items)
        self._dataset = found

    def _with_labels(self, named: Mapping[str, set[str]]) -> RubricDataset:
        """Return the dataset with the last label entered on the page for each of these criteria."""
        places = [at for at, item_id in enumerate(self._dataset.item_ids()) if item_id in named]
        if not places:
            return self._dataset
        part = self._dataset.subset(places)
        decided = [
            item.model_copy(update={"metadata": {DISPUTED: self._answers(place, named[part.item_id(at)])}})
            for at, (place, item) in enumerate(zip(places, part, strict=True))
        ]
        path, disputed = self._run / LABELS, part.with_items(decided)
        return merge_labels(self._dataset, [path], disputed=disputed, latest=True).dataset

    def _answers(self, place: int, names: set[str]) -> dict[str, Any]:
        """Return the panel's answers on some criteria of an item."""
        reports = (one.report for one in self._result.item_results if one.item_idx == place)
        found = {
            one.name: one.final_answer for report in reports if report is not None for one in report.report
        }
        return {name: {"panel": found.get(name)} for name in sorted(names)}


def _demand_label(criterion: BaseCriterion, value: Json) -> None:
    """Raise an error unless the value is a label in text or of the type that the page saves."""
    # Other values that a criterion reads, such as `true` for MET, would be saved as they are.
    answer = None
    with suppress(ReplyError):
        answer = criterion.parse_truth(value)
    types = {type(value), type(answer and answer.code)}
    if answer is not None and (isinstance(value, str) or len(types) == 1 or types == {int, float}):
        return
    allowed = "the labels of its kind"
    match form_of(criterion, {}):
        case {"kind": "choice", "choices": list(choices)}:
            allowed = ", ".join(json.dumps(one["code"], ensure_ascii=False) for one in choices)
        case {"kind": "number", "min": low, "max": high}:
            allowed = f"numbers from {low} to {high}"
    raise ArgumentError(f"{criterion.name}: {json.dumps(value)} is not a label; allowed: {allowed}")


def _labels_in(run: Path) -> list[dict[str, Any]]:
    """Return the valid labels in the run's folder; `merge_labels` reports the invalid lines."""
    path, labels = run / LABELS, []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and all(
                isinstance(found.get(key), str) for key in ("item_id", "criterion")
            ):
                labels.append(found)
    return labels


HOST: Final = "127.0.0.1"
_MOST_BYTES: Final = 1 << 20
"""Maximum size of a request body in bytes; a label is far smaller."""


class ViewServer(ThreadingHTTPServer):
    """An HTTP server for a single page; every request path must contain the token."""

    daemon_threads = True

    def __init__(self, viewed: RunPage, port: int) -> None:
        self.viewed = viewed
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), _Handler)
        names = (HOST, "localhost")
        # A domain that resolves to the loopback address cannot read the page, and other pages save no labels.
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in names)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)

    @property
    def url(self) -> str:
        """The page's URL, including the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of an error, unless the client has disconnected."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    # A connection that sends nothing would keep its thread for ever.
    timeout = 30

    def do_GET(self) -> None:
        match self._read_path():
            case "":
                self._answer(self.server.viewed.html)
            case "state":
                self._answer(self.server.viewed.state)
            case str():
                self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        path = self._read_path()
        if path is None:
            return
        if self.headers.get("Origin") not in self.server.origins:
            self._refuse(HTTPStatus.FORBIDDEN)
        elif path != "labels":
            self._refuse(HTTPStatus.NOT_FOUND)
        elif (body := self._body()) is not None:
            self._answer(lambda: self.server.viewed.label(body))

    def _read_path(self) -> str | None:
        """Return the path behind the token; None if the request was refused."""
        if self.headers.get("Host") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        token, slash, rest = self.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return rest

    def _body(self) -> dict[str, Any] | None:
        """Return the JSON object in the request; None if the request was refused."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json" or not length.isdecimal():
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            return None
        if len(length) > len(str(_MOST_BYTES)) or int(length) > _MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return None
        try:
            found = json.loads(self.rfile.read(int(length)))
            # Unpaired surrogates cannot be saved.
            json.dumps(found, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return None
        return found

    def _answer(self, ask: Any) -> None:
        try:
            status, found = HTTPStatus.OK, ask()
        except (AutorubricError, OSError) as error:
            status = HTTPStatus.CONFLICT if isinstance(error, StaleLabelError) else HTTPStatus.BAD_REQUEST
            found = {"error": str(error)}
        if isinstance(found, str):
            self._send(status, "text/html; charset=utf-8", found)
        else:
            self._send(status, "application/json", json.dumps(found))

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, "text/plain; charset=utf-8", status.phrase)

    def _send(self, status: HTTPStatus, content_type: str, text: str) -> None:
        content = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress logging, because the path contains the token."""
