"""Run stages on hostile input as a user would; check that each ends in one helpful line and leaves nothing behind."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hostile import PAYLOAD
from small import WORDS

from specialized_heads import stage
from specialized_heads.corpus import tokens
from specialized_heads.corpus.bpe import learn
from specialized_heads.model.checkpoint import save


@dataclass(frozen=True)
class Outcome:
    """The exit status of a stage, and its stderr."""

    status: int
    said: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of a test, empty."""
    path = tmp_path / "work"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`run("corpus.raw", settings={...}, resource=path, ...)`: a stage from its command line to its exit status."""

    def call(module: str, *, settings: dict[str, Any] | None = None, **files: Path | str | list[Path | str]) -> Outcome:
        arguments = [module] + (["--settings", json.dumps(settings)] if settings is not None else [])
        for name, paths in files.items():
            arguments += [f"--{name.replace('_', '-')}", *map(str, paths if isinstance(paths, list) else [paths])]
        return command(module, arguments)

    def command(module: str, arguments: list[str]) -> Outcome:
        main = import_module(f"specialized_heads.{module}").main
        capsys.readouterr()
        status = 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", arguments)
            try:
                stage.run(main)
            except SystemExit as end:
                status = end.code
        return Outcome(status, capsys.readouterr().err)

    call.command = command  # passes its arguments unchanged
    return call


@pytest.fixture
def refused(folder: Path, tmp_path: Path) -> Callable[..., None]:
    """`refused(outcome, "pairs.tsv: line 2")`: exit status 2 and one error line with all this; no output, no payload."""

    def check(outcome: Outcome, *said: str) -> None:
        lines = [line for line in outcome.said.splitlines() if line.startswith("error: ")]
        assert outcome.status == 2
        assert len(lines) == 1
        assert outcome.said.endswith(f"{lines[0]}\n")
        assert "Traceback" not in outcome.said
        for words in said:
            assert words in lines[0]
        assert len(lines[0]) < 1000
        assert lines[0].isprintable()
        untouched(folder, tmp_path)

    return check


def untouched(folder: Path, tmp_path: Path) -> None:
    """Nothing was written beside the folder, no payload into it, and no output."""
    assert list(tmp_path.iterdir()) == [folder]
    assert not [path for path in folder.rglob("*") if path.name == PAYLOAD]
    written = folder / "out"
    assert not [path for path in written.rglob("*") if path.is_file()], "an output was left, or a part of one"


@dataclass(frozen=True)
class Trained:
    """A small model and its files, in `folder`."""

    folder: Path
    bpe: Path

    @property
    def weights(self) -> Path:
        return self.folder / "model.safetensors"

    def tokens(self, texts: list[str]) -> Path:
        """A token file of these sentences, each its own translation."""
        path, bpe = self.folder / "tokens.safetensors", tokens.load_bpe(self.bpe)
        tokens.write_tokens(path, [dict.fromkeys(("source", "target"), tokens.encode(texts, bpe))])
        return path


@pytest.fixture
def trained(folder: Path, tiny_model) -> Trained:
    """A model of two layers with two heads each, and a vocabulary of 40 subwords on either side."""
    (folder / "bpe.model").write_bytes(learn(WORDS, size=40, name="source"))
    save(tiny_model(vocabulary=40), folder / "model.safetensors", training={"data_hash": "of the data"})
    return Trained(folder, folder / "bpe.model")
