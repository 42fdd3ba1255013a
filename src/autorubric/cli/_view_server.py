"""A small HTTP server that serves one page on loopback, protected by a token."""

from __future__ import annotations

import hmac
import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from autorubric.errors import AutorubricError

if TYPE_CHECKING:
    from autorubric.cli._view_page import RunPage

HOST: Final = "127.0.0.1"
_MOST_BYTES: Final = 1 << 20
"""Maximum size of a request body in bytes; a label is far smaller."""


class ViewServer(ThreadingHTTPServer):
    """An HTTP server for a single page.

    Every request path must contain the token. Requests with a foreign `Host` are rejected, so that a domain
    that resolves to the loopback address cannot read the page. A POST request must have this server's
    `Origin`, so that other pages cannot save labels.

    Args:
        viewed: The content to show.
        port: The port number; 0 for any free port.

    Raises:
        OSError: If the port is in use.
    """

    daemon_threads = True

    def __init__(self, viewed: RunPage, port: int) -> None:
        self.viewed = viewed
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), _Handler)
        names = (HOST, "localhost")
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in names)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)

    @property
    def url(self) -> str:
        """The page's URL, including the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    # A connection that sends nothing would keep its thread for ever.
    timeout = 30

    def do_GET(self) -> None:
        match self._asked():
            case "":
                self._answer(self.server.viewed.html)
            case "state":
                self._answer(self.server.viewed.state)
            case str():
                self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        asked = self._asked()
        if asked is None:
            return
        if self.headers.get("Origin") not in self.server.origins:
            self._refuse(HTTPStatus.FORBIDDEN)
        elif asked != "labels":
            self._refuse(HTTPStatus.NOT_FOUND)
        elif (body := self._body()) is not None:
            self._answer(lambda: self.server.viewed.label(body))

    def _asked(self) -> str | None:
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
            status, found = HTTPStatus.BAD_REQUEST, {"error": str(error)}
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
