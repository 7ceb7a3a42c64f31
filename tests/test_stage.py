"""What every stage promises: mistakes of the user in one line, defects with their traceback, no
half-written files.

Of tables, what was written comes back, damage does not pass for other numbers, and what is missing
is named.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small import ENVIRONMENT
from workflows import wait_for

from specialized_heads import stage
from specialized_heads.model.checkpoint import write_tensors
from specialized_heads.stage import (
    UserError,
    arguments,
    atomic,
    one_line,
    optional,
    warnings_in,
)
from specialized_heads.tables import read_table, write_table

STAGE = '''"""Stage: a made-up one."""
import logging
from specialized_heads import stage

class Settings(stage.Section):
    number: int

@stage.command("input", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    number = settings.number
    if number < 0:
        raise stage.UserError(f"{files.input}: a number below zero; give a positive one")
    stage.log.info("number %d", number)
    for _ in range(2 * (number % 2)):
        stage.log.warning("%d is odd,\\nas is 3", number)
    logging.getLogger("fontTools.subset").info("glyphs")
    logging.getLogger("fontTools.subset").warning("no such glyph")
    print(1 / number)
'''


@pytest.fixture
def run_stage(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the made-up stage above, or the code of others, with some settings."""

    def run(*arguments: str, code: str = STAGE) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "made_up.py"
        script.write_text(code, encoding="utf-8")
        command = [sys.executable, str(script), *arguments]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)

    return run


def test_a_stage_that_succeeds(run_stage) -> None:
    done = run_stage("--input", "x.tsv", "--settings", '{"number": 4}')
    assert (done.returncode, done.stdout) == (0, "0.25\n")
    # Of libraries, only warnings are logged.
    expected = ["number 4", "no such glyph"]
    assert [line.split(" ", 1)[1] for line in done.stderr.splitlines()] == expected


def test_one_of_several_stages_is_called_by_its_name(run_stage) -> None:
    several = STAGE.replace("def main(", "def divide(")
    several += (
        '@stage.command("input")\ndef show(files: stage.Files) -> None:\n    print(files.input)\n'
    )
    arguments = ("--input", "x.tsv", "--settings", '{"number": 4}')
    assert run_stage("divide", *arguments, code=several).stdout == "0.25\n"
    assert run_stage("show", *arguments[:2], code=several).stdout == "x.tsv\n"
    done = run_stage("shown", *arguments, code=several + "stage.no_stage(__name__)\n")
    assert done.returncode == 2 and "no stage of this module" in done.stderr


def test_a_mistake_of_the_user_is_one_line(run_stage) -> None:
    mistakes = {'{"number": -1}': "x.tsv: a number below zero; give a positive one"}
    mistakes |= {'{"number": 1, "digit": 2}': "settings: digit: Extra inputs are not permitted"}
    for settings, said in mistakes.items():
        done = run_stage("--input", "x.tsv", "--settings", settings)
        assert (done.returncode, done.stderr) == (2, f"error: {said}\n")


def test_a_defect_shows_its_traceback(run_stage) -> None:
    done = run_stage("--input", "x.tsv", "--settings", '{"number": 0}')
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["stage", "--input", "-a", "--models", "--b", "-c d", "--scores"]
    given += ["--settings", '{"λ": 0.1}']  # a path may look like an option
    monkeypatch.setattr(sys, "argv", given)
    args = arguments(None, files=["input"], optional=["like"], many=["models", "scores", "heads"])
    assert (args.input, args.like) == (Path("-a"), None)
    assert (args.models, args.scores, args.heads) == ([Path("--b"), Path("-c d")], [], [])
    assert args.settings == {"λ": 0.1}


def test_a_message_is_one_line_that_can_be_read() -> None:
    assert one_line("a\nb\x1b[2J é λ") == r"a\nb\x1b[2J é λ"
    long = one_line("x.tsv: " + "y" * 10_000 + "; fetch it again")
    assert len(long) < 1000
    assert long.startswith("x.tsv: y")
    assert long.endswith("y; fetch it again")


def test_atomic_writes_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with atomic(path) as temporary:
        temporary.write_text("old", encoding="utf-8")
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "old"
    with pytest.raises(ZeroDivisionError), atomic(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise ZeroDivisionError
    assert path.read_text(encoding="utf-8") == "old"
    assert list(path.parent.iterdir()) == [path]


def test_permissions_of_new_files_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    stage.write_file(tmp_path / "file.txt", "text")
    write_tensors(tmp_path / "file.safetensors", {})  # whose library has permissions of its own
    os.umask(before)
    for name in ("file.txt", "file.safetensors"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o640


def test_a_full_disk_is_said_of_the_file_whatever_a_library_makes_of_it(tmp_path: Path) -> None:
    """safetensors quotes the system, torch raises an error of its own over it."""
    path = tmp_path / "x.bin"
    full = OSError(errno.ENOSPC, "No space left on device")
    for raised in (
        full,
        ValueError("I/O error: No space left on device (os error 28)"),
        RuntimeError("write failed"),
    ):
        raised.__context__ = full if isinstance(raised, RuntimeError) else None
        with (
            pytest.raises(
                UserError, match=r"x\.bin: the disk is full; free some space and run again"
            ),
            atomic(path),
        ):
            raise raised
    with pytest.raises(ValueError, match="something else"), atomic(path):
        raise ValueError("something else")
    # Said of the temporary file of a temporary file, too.
    with (
        pytest.raises(UserError, match=r"/x\.bin: the disk is full"),
        atomic(path) as outer,
        atomic(outer),
    ):
        raise full
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_has_left_is_removed_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    killed = "import os, sys, pathlib; from specialized_heads.stage import atomic\n"
    killed += "with atomic(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    path = tmp_path / "x.json"
    assert subprocess.run([sys.executable, "-c", killed, path], env=ENVIRONMENT).returncode == -9
    [left] = tmp_path.iterdir()
    with atomic(path) as own:
        assert not left.exists()
        own.write_text("1")
        with atomic(path) as other:
            other.write_text("2")
        assert own.exists()
    assert (path.read_text(), list(tmp_path.iterdir())) == ("1", [path])


WRITER = '''"""Stage: waits for a file and writes."""
import time
from specialized_heads import stage

class Settings(stage.Section):
    text: str
    waits: bool = False

@stage.command("input", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    files.input.with_name(f"{settings.text} began").touch()
    while settings.waits and not files.input.with_name("go on").exists():
        time.sleep(0.01)
    stage.write_file(files.output, settings.text)
'''


@pytest.mark.parametrize("first", ["old", "new"])
def test_the_stage_of_a_killed_run_does_not_replace_what_a_newer_one_makes(
    first: str, tmp_path: Path
) -> None:
    """Whichever of the two ends first."""
    script, source, output = (tmp_path / name for name in ("writer.py", "input", "output"))
    script.write_text(WRITER, encoding="utf-8")
    source.touch()

    def start(text: str, *, waits: bool) -> subprocess.Popen:
        settings = json.dumps({"text": text, "waits": waits})
        command = [sys.executable, script, "--input", source, "--output", output]
        options = {"env": ENVIRONMENT, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([*command, "--settings", settings], **options)
        wait_for((tmp_path / f"{text} began").exists)
        return process

    old, new = start("old", waits=True), start("new", waits=first == "old")
    if first == "new":
        assert new.wait() == 0
    (tmp_path / "go on").touch()
    _, said = old.communicate()
    assert old.returncode == 2 and "output: a newer process makes this file; this one stops" in said
    assert new.wait() == 0 and output.read_text() == "new"
    assert not list(tmp_path.glob(".*"))


def test_a_missing_optional_package_names_the_extra_that_brings_it() -> None:
    with pytest.raises(UserError, match="no_such_package.*EXTRAS=models"), optional("models"):
        import no_such_package  # noqa: F401


# Tables.

ROWS = [{"head": n, "share": n / 7, "said": [f"a{n}"]} for n in range(200)]
TABLE = pa.Table.from_pylist(ROWS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_table(tmp_path / "heads.parquet", TABLE)
    return tmp_path / "heads.parquet"


def test_what_is_written_is_read(path: Path) -> None:
    assert read_table(path) == TABLE
    assert read_table(path, columns=["said", "head"]) == TABLE.select(["said", "head"])
    assert read_table(path, schema=TABLE.schema) == TABLE


def test_a_damaged_page_is_an_error_and_never_another_number(path: Path) -> None:
    whole = path.read_bytes()
    pages, noticed = len(whole) - pq.read_metadata(path).serialized_size - 8, 0
    for place in range(4, pages, 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert read_table(path) == TABLE  # some bits in the header of a page say nothing
        except UserError as error:
            assert str(error).startswith(f"{path}: not a parquet file of a table, or a damaged one")
            assert "\n" not in str(error)
            noticed += 1
    assert noticed > 0.8 * pages / 5


@pytest.mark.parametrize("size", [0, 3, 100, -1])
def test_a_cut_file(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"heads\.parquet: .*damaged.*; delete it and run again"):
        read_table(path)


def test_what_is_missing_is_named(path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.parquet: no such file"):
        read_table(path.with_name("none.parquet"))
    with pytest.raises(UserError, match=r"heads\.parquet: column layer is missing"):
        read_table(path, columns=["head", "layer"])


def test_a_warning_is_a_line_of_the_log_that_is_found_again(run_stage, tmp_path: Path) -> None:
    log = tmp_path / "stage.log"
    done = run_stage("--input", "x", "--settings", '{"number": 5}')
    log.write_text(done.stderr, encoding="utf-8")
    # Once, though the stage says it twice; the library's is not the stage's.
    assert warnings_in(log) == ["5 is odd,\\nas is 3"]
    assert warnings_in(tmp_path / "none.log") == []
