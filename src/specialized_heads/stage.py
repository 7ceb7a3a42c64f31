"""Shared by all stages: command line, errors, log, progress bars, and reading and writing files.

A stage is the function `main` of a module, which Snakemake runs as
`python -m specialized_heads.<package>.<module>`, or in a module of several stages a function whose
name follows. Files are named arguments; everything else that affects the result is one JSON object,
`--settings`, validated by a pydantic model. A user error ends in one line on stderr and exit code
2; any other exception is a bug and shows its traceback.
"""

import argparse
import errno
import hashlib
import json
import logging
import os
import re
import socket
import sys
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pydantic
from tqdm import tqdm

log = logging.getLogger("specialized_heads")

DISK_ERRORS = {
    errno.ENOSPC: "the disk is full; free some space and run again",
    errno.EDQUOT: "the disk quota is exhausted; free some space and run again",
    errno.EFBIG: "the file would exceed the size limit (`ulimit -f`); raise it and run again",
    errno.EROFS: "the file system is read-only; make it writable and run again",
}
NO_MPS = "Apple's GPU (mps) is not supported; set cpu or auto"
LONGEST_MESSAGE = 1000  # characters
LARGEST_INTEGER = 2**63 - 1  # fits into arrays and random generators
WARNING = re.compile(r"^\d\d:\d\d:\d\d warning: (.+)$", re.MULTILINE)


class Section(pydantic.BaseModel):
    """Immutable settings; rejects unknown keys, NaN and infinity."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _plain_values(cls, values: Any) -> Any:
        """Reject booleans in place of numbers or text (pydantic would read true as 1), and integers
        beyond 64 bits."""
        given = values if isinstance(values, dict) else {}
        for name in [name for name in given if name in cls.model_fields]:
            allowed = "bool" in str(cls.model_fields[name].annotation)
            for item in given[name] if isinstance(given[name], list) else [given[name]]:
                if isinstance(item, bool) and not allowed:
                    raise ValueError(
                        f"{name} must not be {str(item).lower()}; YAML reads unquoted yes, no, on "
                        f"and off as booleans"
                    )
                if isinstance(item, int) and abs(item) > LARGEST_INTEGER:
                    raise ValueError(f"{name}: a number is too large; it must fit into 64 bits")
        return values


class UserError(Exception):
    """A mistake in the configuration or the data: what is wrong, where, and what to do."""


Files = argparse.Namespace  # the files of a stage, and its settings


def arguments(
    description: str | None,
    *,
    files: Iterable[str],
    optional: Iterable[str] = (),
    many: Iterable[str] = (),
) -> Files:
    """Parse a stage's command line: a `Path` for each name (None for an `optional` one, a list for
    one of `many`) and `settings`.

    `--help` shows the first line of the description.
    """
    first = (description or "").strip().split("\n")[0]
    parser = argparse.ArgumentParser(description=first, allow_abbrev=False)
    for name in files:
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in optional:
        parser.add_argument(f"--{name}", type=Path)
    for name in many:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    parser.add_argument(
        "--settings", type=json.loads, default={}, help="JSON object with the stage's settings"
    )
    known = {"-h", "--help", "--settings", *(f"--{name}" for name in (*files, *optional, *many))}
    # A path may start with a dash; argparse would take it for an option without "./", which Path
    # removes.
    texts = sys.argv[1:]
    return parser.parse_args(
        [f"./{text}" if text[:1] == "-" and text not in known else text for text in texts]
    )


def run(main: Callable[[], None]) -> None:
    """Run a stage's `main`; an error ends the process as `report` says."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_mark)
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", handlers=[handler])
    log.setLevel(logging.INFO)  # only this logger; libraries are too verbose at this level
    try:
        main()
    except (Exception, KeyboardInterrupt) as error:
        sys.exit(report(error))


def report(error: BaseException) -> int:
    """Print an error to stderr: one line, or the traceback of what must be a bug. Returns the exit
    code of the process."""
    if isinstance(error, KeyboardInterrupt):
        print("interrupted; run the same command again to continue", file=sys.stderr)
        return 130
    if isinstance(error, PermissionError) and error.filename is not None:
        said = f"{one_line(error.filename)}: permission denied; change its permissions"
        said += " and run again"
    elif isinstance(error, UserError):
        said = one_line(error)
    else:
        traceback.print_exception(error)
        return 1
    print(f"error: {said}", file=sys.stderr)
    return 2


def _mark(record: logging.LogRecord) -> bool:
    """Make a stage's own warning one line of its log that `warnings_in` recognises."""
    if record.name == log.name and record.levelno >= logging.WARNING:
        record.msg, record.args = f"warning: {one_line(record.getMessage())}", None
    return True


def warnings_in(path: Path) -> list[str]:
    """The warnings in the log of a stage, each once."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return list(dict.fromkeys(WARNING.findall(text)))


def command(
    *files: str,
    optional: Iterable[str] = (),
    many: Iterable[str] = (),
    settings: type[Section] | None = None,
    shared: bool = False,
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make `main(files)` or `main(files, settings)` a stage: `python -m` runs it with its command
    line (`arguments`).

    A function that is not `main` runs if its name is the first argument; what it uses must be
    defined above it. A module of such functions ends with `no_stage(__name__)`. Of a stage that is
    `shared`, such as a download, several processes may make the same files; others own theirs.
    """

    def decorate(main: Callable[..., None]) -> Callable[[], None]:
        def stage() -> None:
            about = main.__globals__["__doc__"]
            given = arguments(about, files=files, optional=optional, many=many)
            try:
                validated = [settings.model_validate(given.settings)] if settings else []
            except pydantic.ValidationError as error:
                raise UserError(f"settings: {first_line(error)}") from None
            paths = [path for path in vars(given).values() if isinstance(path, Path)]
            with owning([] if shared else paths):
                main(given, *validated)

        stage.settings = settings
        if main.__module__ == "__main__" and main.__name__ in ("main", *sys.argv[1:2]):
            del sys.argv[1 : 1 + (main.__name__ != "main")]
            run(stage)
            sys.exit()
        return stage

    return decorate


def no_stage(module: str) -> None:
    """End a process that has come to the end of this module without a stage."""
    if module == "__main__":
        said = "the first argument is no stage of this module; workflow/rules names them"
        sys.exit(report(UserError(said)))


@contextmanager
def optional(extra: str) -> Iterator[None]:
    """Import packages of an optional extra within this block; a `UserError` says how to install one
    that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        said = f"{error.name} is not installed; run `make install EXTRAS={extra}`"
        raise UserError(said) from None


def one_line(message: object) -> str:
    """Make a message fit on one readable line: text from files may contain line feeds, terminal
    escapes or megabytes."""
    text = str(message)
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[:600]} ... {text[-300:]}"  # keeps what and where, and what to do
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def first_line(error: pydantic.ValidationError) -> str:
    """The first problem of a validation error, as `key.path: what is wrong`."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])


def heads_text(number: int) -> str:
    return "1 head" if number == 1 else f"{number} heads"


def progress(
    items: Iterable[Any], *, what: str, total: int | None = None, unit: str = "it"
) -> Iterable[Any]:
    """Iterate over `items` with a progress bar on stderr, shown only on a terminal
    (`disable=None`)."""
    return tqdm(items, desc=what, total=total, unit=unit, disable=None, leave=False)


_owned: set[Path] = set()  # files that this process is to make


@contextmanager
def owning(paths: Iterable[Path]) -> Iterator[None]:
    """Make this process the owner of those files that it is to make: the missing ones, and those
    that a killed process has owned. `atomic` writes them only as long as no newer process has taken
    them over.

    The stages of a killed Snakemake live on. One that ends late must not replace what a newer one
    has made with other settings. Of the processes of `torchrun`, the first owns the files.
    """
    for path in paths if os.environ.get("RANK", "0") == "0" else ():
        with suppress(OSError):  # `atomic` will say what is wrong with the folder
            if not path.exists() or _owner(path).exists():
                _owner(path).write_text(this_process(), encoding="utf-8")
                _owned.add(path)
    try:
        yield
    finally:
        for path in _owned:
            if _is_owned(path):
                _owner(path).unlink()
        _owned.clear()


def _owner(path: Path) -> Path:
    return path.with_name(f".{path.name}.owner")


def _is_owned(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return _owner(path).read_text(encoding="utf-8") == this_process()
    return False


@cache
def this_process() -> str:
    """A name unique to this process, on any machine and at any time."""
    return f"process {os.getpid()} on {socket.gethostname()}, {uuid.uuid4().hex}"


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` and move it to `path` when the block succeeds.

    The data is flushed to disk before the move, so even after a power failure the file is complete
    or absent. A folder that is not writable, a full disk, or a newer process that makes the file
    (`owning`) is a `UserError`.
    """
    with disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(path)
            name = f".{path.name}.{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
            (temporary := path.with_name(name)).touch(exist_ok=False)
            mode = temporary.stat().st_mode  # by the umask; safetensors has its own
        except (PermissionError, FileNotFoundError, NotADirectoryError, FileExistsError):
            said = "cannot be written; make its folder writable and run again"
            raise UserError(f"{path}: {said}") from None
        try:
            yield temporary
            with open(temporary, "rb") as stream:
                os.fsync(stream.fileno())
            temporary.chmod(mode)
            if any(each in _owned and not _is_owned(each) for each in (path, *path.parents)):
                raise UserError(f"{path}: a newer process makes this file; this one stops")
            os.replace(temporary, path)
        except UserError as error:  # which names the temporary file
            raise UserError(str(error).replace(str(temporary), str(path))) from error
        finally:
            temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` left behind by killed processes of this machine."""
    prefix = f".{path.name}.{socket.gethostname()}."
    for file in path.parent.iterdir():
        process = file.name.removeprefix(prefix).partition(".")[0]
        if file.name.startswith(prefix) and process.isdigit():
            try:
                os.kill(int(process), 0)  # signal 0 only checks for existence
            except ProcessLookupError:
                file.unlink(missing_ok=True)
            except PermissionError:  # it exists, but is another user's
                continue


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of a full or read-only disk into a `UserError`, even wrapped by a library."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            quoted = re.search(r"\(os error (\d+)\)", str(cause))  # by safetensors
            code = cause.errno if isinstance(cause, OSError) else int(quoted[1]) if quoted else None
            if code in DISK_ERRORS:
                raise UserError(f"{path}: {DISK_ERRORS[code]}") from error
            cause = cause.__cause__ or cause.__context__
        raise


def write_file(path: Path, content: str | bytes) -> None:
    with atomic(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically, without sorting keys."""
    write_file(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file; if it is missing or invalid, raise a `UserError` that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path}: not valid JSON ({error}); if the pipeline made it, delete it and run again"
        ) from None


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def code_hash(*packages: str) -> str:
    """SHA-256 of the source files of these packages: saved work of other code is not continued."""
    digest = hashlib.sha256()
    for package in packages:
        for file in sorted((Path(__file__).parent / package).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
