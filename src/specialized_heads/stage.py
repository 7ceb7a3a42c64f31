"""What every pipeline stage shares: its command line, its errors, its log, its progress bar and its way of writing files.

A stage is a module with a `main()` that Snakemake calls as `python -m specialized_heads.<package>.<module>`. Files are
named arguments; everything else that affects the result comes as one JSON object, `--settings`, validated by a pydantic
model. A mistake of the user ends in one line on stderr and exit code 2; anything else is a defect and shows its traceback.
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
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pydantic
from tqdm import tqdm

log = logging.getLogger("specialized_heads")

NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EFBIG: "larger than files may be here (`ulimit -f`)",
}
LONGEST_MESSAGE = 1000  # characters
LARGEST_INTEGER = 2**63 - 1  # what arrays and generators of random numbers can hold


class Section(pydantic.BaseModel):
    """Settings: immutable, closed to unknown keys, and to numbers that are none."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _plain_values(cls, values: Any) -> Any:
        """Refuse true and false where numbers or text are wanted (true would count as 1), and integers beyond 64 bits."""
        given = values.items() if isinstance(values, dict) else ()
        for name, value in ((name, value) for name, value in given if name in cls.model_fields):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, bool) and "bool" not in str(cls.model_fields[name].annotation):
                    raise ValueError(
                        f"{name} must not be {str(one).lower()}; without quotes, YAML reads yes, no, on and off so"
                    )
                if isinstance(one, int) and abs(one) > LARGEST_INTEGER:
                    raise ValueError(f"{name}: a number is too large; it must fit into 64 bits")
        return values


class UserError(Exception):
    """A mistake in the configuration or the data. The message says what is wrong, where, and what to do."""


def arguments(
    description: str | None, *, files: Iterable[str], optional: Iterable[str] = (), many: Iterable[str] = ()
) -> argparse.Namespace:
    """Parse a stage's command line.

    Args:
        description: the stage's docstring; its first line is shown by `--help`.
        files: names of required path arguments (`--name PATH`).
        optional: names of path arguments that may be absent (None).
        many: names of arguments that take any number of paths, also none.

    Returns:
        a namespace with one `Path` (or list of them) per name, and `settings`, the decoded JSON object.
    """
    parser = argparse.ArgumentParser(description=(description or "").strip().split("\n")[0], allow_abbrev=False)
    for name in files:
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in optional:
        parser.add_argument(f"--{name}", type=Path)
    for name in many:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON object with the stage's settings")
    known = {"-h", "--help", "--settings", *(f"--{name}" for name in (*files, *optional, *many))}
    # A path may begin with a dash too; "./" keeps it from being taken for an option and is not part of the Path.
    own = sys.argv[1:]
    return parser.parse_args([f"./{text}" if text[:1] == "-" and text not in known else text for text in own])


def run(main: Callable[[], None]) -> None:
    """Run a stage's `main`; turn a `UserError` into one line on stderr and exit code 2."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    log.setLevel(logging.INFO)  # ours alone: others say at this level what nobody asked for
    try:
        main()
    except UserError as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        sys.exit(2)
    except pydantic.ValidationError as error:
        print(f"error: settings: {one_line(first_line(error))}", file=sys.stderr)
        sys.exit(2)
    except PermissionError as error:
        if error.filename is None:
            raise
        print(f"error: {one_line(error.filename)}: permission denied; change its rights and run again", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        sys.exit(130)


def one_line(message: object) -> str:
    """A message on one line that can be read: text out of files may hold line feeds, commands to a terminal, or megabytes."""
    text = str(message)
    text = text if len(text) <= LONGEST_MESSAGE else f"{text[:600]} ... {text[-300:]}"  # what and where; what to do
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def first_line(error: pydantic.ValidationError) -> str:
    """The first problem of a validation error, as `key.path: what is wrong`."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])


def progress(items: Iterable[Any], *, what: str, total: int | None = None, unit: str = "it") -> Iterable[Any]:
    """A progress bar over `items` on stderr, shown on a terminal only (`disable=None`)."""
    return tqdm(items, desc=what, total=total, unit=unit, disable=None, leave=False)


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` and move it there when the block succeeds, so no half-written file is seen.

    The bytes are on the disk before the file has its name: after a power failure it is whole, or not there.

    Raises:
        UserError: the folder cannot be written, or the disk is full.
    """
    with disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(path)
            prefix = f".{path.name}.{socket.gethostname()}.{os.getpid()}."
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix)
        except PermissionError:
            raise UserError(f"{path}: cannot be written; make its folder writable and run again") from None
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, 0o644)
            with open(temporary, "rb") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except UserError as error:  # about the file under its temporary name
            raise UserError(str(error).replace(str(temporary), str(path))) from error
        finally:
            temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` that a process of this machine has left because it was killed."""
    prefix = f".{path.name}.{socket.gethostname()}."
    for file in path.parent.iterdir():
        process = file.name.removeprefix(prefix).partition(".")[0]
        if file.name.startswith(prefix) and process.isdigit() and not _alive(int(process)):
            file.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(process, 0)  # which does nothing to it
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        return True
    return True


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the system says where a disk takes no more into a `UserError`, also from behind the error of a library."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            quoted = re.search(r"\(os error (\d+)\)", str(cause))  # by safetensors, which does not pass it on
            code = cause.errno if isinstance(cause, OSError) else int(quoted[1]) if quoted else None
            if code in NO_ROOM:
                raise UserError(f"{path}: {NO_ROOM[code]}; free some space and run again") from error
            cause = cause.__cause__ or cause.__context__
        raise


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically, keys in the given order."""
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file; a missing or broken one is a `UserError` that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); if the pipeline made it, delete it and run again") from None


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def code_hash(*packages: str) -> str:
    """SHA-256 of the source files of these packages of the project: work in progress of other code is not gone on with."""
    digest = hashlib.sha256()
    for package in packages:
        for file in sorted((Path(__file__).parent / package).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
