"""A chat server on the loopback in a separate process, with a constant answer after a fixed time."""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import cast

from autorubric.support.concurrency import run_sync

_PATH = b"/v1/chat/completions"
_JUDGMENT = {"reason": "The text says so in its second sentence: “a measured account”.", "verdict": "MET"}
_COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "judge",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": json.dumps(_JUDGMENT)},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 600, "completion_tokens": 30, "total_tokens": 630},
}


def _response(status: str, content: object) -> bytes:
    body = json.dumps(content).encode("utf-8")
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


_ANSWER = _response("200 OK", _COMPLETION)
_NOT_FOUND = _response("404 Not Found", {"error": {"message": f"post to {_PATH.decode('ascii')}"}})


class _Chat(asyncio.Protocol):
    """A protocol that reads requests with a `Content-Length` and answers them in order."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (answer := self._next()) is not None:
            if self._latency:
                asyncio.get_running_loop().call_later(self._latency, self._write, answer)
            else:
                self._write(answer)

    def _next(self) -> bytes | None:
        """Return the answer to the first complete request; None if there is none yet."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._received[:end])
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        size = end + 4 + length
        if len(self._received) < size:
            return None
        del self._received[:size]
        return _ANSWER if head.startswith(b"POST " + _PATH + b" ") else _NOT_FOUND

    def _write(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)


async def _serve(latency: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Chat(latency), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def run_server(latency_ms: float) -> Iterator[str]:
    """Yield the `api_base` of a server that answers after this latency in milliseconds."""
    call = [sys.executable, "-m", "benchmarks.throughput._server", str(latency_ms)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("latency_ms", type=float)
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        run_sync(_serve(given.latency_ms / 1000))


if __name__ == "__main__":
    main()
