"""What every pipeline stage shares: its command line, its errors, its log, its progress bar and its way of writing files.

A stage is a module with a `main()` that Snakemake calls as `python -m specialized_heads.<package>.<module>`. Files are
named arguments; everything else that affects the result comes as one JSON object, `--settings`, validated by a pydantic
model. A mistake of the user ends in one line on stderr and exit code 2; anything else is a defect and shows its traceback.
"""

import argparse
import hashlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pydantic
from tqdm import tqdm

log = logging.getLogger("specialized_heads")


class Section(pydantic.BaseModel):
    """Settings: immutable, and closed to unknown keys."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


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
    parser = argparse.ArgumentParser(description=(description or "").strip().split("\n")[0])
    for name in files:
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in optional:
        parser.add_argument(f"--{name}", type=Path)
    for name in many:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON object with the stage's settings")
    return parser.parse_args()


def run(main: Callable[[], None]) -> None:
    """Run a stage's `main`; turn a `UserError` into one line on stderr and exit code 2."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    log.setLevel(logging.INFO)  # ours alone: others say at this level what nobody asked for
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except pydantic.ValidationError as error:
        print(f"error: settings: {first_line(error)}", file=sys.stderr)
        sys.exit(2)


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
    """Yield a temporary path beside `path` and move it there when the block succeeds, so no half-written file is seen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error})") from None


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
