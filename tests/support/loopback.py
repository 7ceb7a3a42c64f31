"""A server of one file on this machine that can fail in every way servers do."""

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Server:
    """What the server sends, how it fails, and what it was asked."""

    address: str = ""
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"ETag": '"one"'})
    status: list[int] = field(default_factory=list)  # of the next answers; then 200 or 206
    # bytes after which the next answers break off; then none
    cut: list[int] = field(default_factory=list)
    ranges: bool = True
    if_range: bool = True
    length: bool = True
    pause: float = 0.0  # seconds before each 4096 bytes
    asked: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Server = self.server.state
        server.asked.append(
            {"path": self.path, **{name.lower(): value for name, value in self.headers.items()}}
        )
        status = server.status.pop(0) if server.status else 200
        if status != 200:
            self.send_error(status)
            return
        start, wanted = 0, self.headers.get("Range")
        known = self.headers.get("If-Range") in (
            None,
            server.headers.get("ETag"),
            server.headers.get("Last-Modified"),
        )
        if wanted and server.ranges and (known or not server.if_range):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start else 200)
        if start:
            last = len(server.content) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(server.content)}")
        for name, value in server.headers.items():
            self.send_header(name, value)
        if server.length:
            self.send_header("Content-Length", str(len(server.content) - start))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        body = (
            server.content[start : start + server.cut.pop(0)]
            if server.cut
            else server.content[start:]
        )
        try:
            for begin in range(0, len(body), 4096):
                time.sleep(server.pause)
                self.wfile.write(body[begin : begin + 4096])
                server.sent += len(body[begin : begin + 4096])
        except OSError:
            pass
        if len(body) < len(server.content) - start:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(content: bytes) -> Iterator[Server]:
    """A running server of `content`, at every path."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        running.state = Server(f"http://127.0.0.1:{running.server_address[1]}", content)
        threading.Thread(
            target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        yield running.state
        running.shutdown()
