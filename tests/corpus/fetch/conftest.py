"""A server on this machine, and the stage download that asks it for a file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from downloads import DATA, card_of
from loopback import Server, serving

from specialized_heads.corpus.fetch import download
from specialized_heads.corpus.fetch.download import Wanted, fetch


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download, "PAUSES", (0.001, 0.01))
    monkeypatch.setattr(download, "ATTEMPTS", 3)
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(DATA) as running:
        yield running


@pytest.fixture
def get(server: Server, tmp_path: Path) -> Callable[..., Path]:
    """`get("x.bin", sha256=...)`: fetch this file of the server, three tries; returns its path, whether or not it came."""

    def run(name: str = "x.bin", *, mirrors: dict[str, str] | None = None, **wanted: object) -> Path:
        output = tmp_path / "data" / name
        settings = {"url": server.url(name)} | wanted
        settings["downloads"] = {"mirrors": mirrors or {}}
        fetch(output, card=card_of(output), wanted=Wanted.model_validate(settings))
        return output

    return run
