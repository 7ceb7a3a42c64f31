"""Stage raw: bring a source of parallel text into one parquet file, as it is.

Nothing is filtered here. What is decided is the document of a pair: the file's own, or empty where pairs shall be grouped
by their sentences (which the clean stage does). A limit draws the same pairs in every run, and keeps their order.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from specialized_heads.config import Embedded, Local, Section
from specialized_heads.corpus.pairs import Pairs, read_pairs, write_pairs
from specialized_heads.stage import UserError, arguments, log, run

# The corpus is shared by the models of all seeds, so the drawn pairs must not depend on one of them.
LIMIT_SEED = 1


class Settings(Section):
    """What affects the result: the source, as in the configuration."""

    source: Annotated[Embedded | Local, Field(discriminator="kind")]


def read_tsv(path: Path, *, group_by: str) -> Pairs:
    """Read a UTF-8 file of source TAB target, optionally TAB document, plain or gzip (by its `.gz` suffix).

    Args:
        path: the file. White lines are skipped.
        group_by: `document` needs the third column; `sentence` leaves the documents empty.

    Raises:
        UserError: no file, no pair in it, not UTF-8 or not gzip, or a line without the columns it needs (with its number).
    """
    pairs = Pairs([], [], [])
    for number, line in _lines(path):
        columns = line.split("\t")
        if len(columns) < 2:
            raise UserError(f"{path}: line {number}: no tab; each line must be source TAB target (TAB document)")
        if group_by == "document" and (len(columns) < 3 or not columns[2].strip()):
            raise UserError(
                f"{path}: line {number}: no document in the third column; add it, or set group_by to 'sentence'"
            )
        pairs.source.append(columns[0])
        pairs.target.append(columns[1])
        pairs.document.append(columns[2].strip() if group_by == "document" else "")
    if not len(pairs):
        raise UserError(f"{path}: the file is empty; each line must be source TAB target (TAB document)")
    return pairs


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that hold more than white space, with their numbers from 1."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; check the source's path in the configuration")
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as stream:
            for number, line in enumerate(stream, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if text.strip():
                    yield number, text
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: not a complete gzip file ({error})") from None


def draw(pairs: Pairs, *, limit: int) -> Pairs:
    """At most `limit` pairs, drawn without replacement, in their original order."""
    if len(pairs) <= limit:
        return pairs
    rows = np.random.default_rng(LIMIT_SEED).choice(len(pairs), limit, replace=False)
    return pairs.take(sorted(rows.tolist()))


def main() -> None:
    """Read `--resource` (an embedded corpus.parquet, or a TSV file) and write `--output`."""
    files = arguments(__doc__, files=["resource", "output"])
    source = Settings.model_validate(files.settings).source
    if source.kind == "embedded":
        pairs = read_pairs(files.resource)
    else:
        pairs = read_tsv(files.resource, group_by=source.group_by)
        if source.limit is not None:
            pairs = draw(pairs, limit=source.limit)
    write_pairs(files.output, pairs)
    log.info("raw: %d pairs from %s", len(pairs), files.resource)


if __name__ == "__main__":
    run(main)
