"""Run stages on hostile input as a user would; check that each ends in one helpful line and leaves
nothing behind."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from hostile import PAYLOAD

from specialized_heads import stage


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of a test, empty."""
    path = tmp_path / "work"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """`run("parsing.relations", "--settings", ...)`: the exit status of a stage, and its stderr."""

    def command(module: str, *arguments: str) -> tuple[int, str]:
        main = import_module(f"specialized_heads.{module}").main
        capsys.readouterr()
        status = 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", [module, *arguments])
            try:
                stage.run(main)
            except SystemExit as end:
                status = end.code
        return status, capsys.readouterr().err

    return command


@pytest.fixture
def refused(folder: Path, tmp_path: Path) -> Callable[..., None]:
    """`refused(outcome, "pairs.tsv: line 2")`: exit status 2 and one error line with all this; no
    output, no payload."""

    def check(outcome: tuple[int, str], *said: str) -> None:
        status, printed = outcome
        [line] = [line for line in printed.splitlines() if line.startswith("error: ")]
        assert status == 2
        assert printed.endswith(f"{line}\n") and "Traceback" not in printed
        for words in said:
            assert words in line
        assert len(line) < 1000 and line.isprintable()
        assert list(tmp_path.iterdir()) == [folder]
        assert not [
            path for path in folder.rglob("*") if path.name == PAYLOAD or path.match("out/*")
        ]

    return check
