"""What figures and tables read, and the one `main` that most of them share.

Settings name the contents of the files, in their order, which is also the order in which they are shown: the title of each
file's corpus (`Titles`), the name of each file's model (`Named`), or corpus, seed and training step (`Runs`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads import tables
from specialized_heads.report.output import save_figure, save_table
from specialized_heads.stage import Section, UserError, arguments

HEAD_COLUMNS = ("type", "layer", "head", "relevance", "confidence", "functions", "relations")
RELATION_COLUMNS = (
    "relation", "direction", "arcs", "baseline_offset", "baseline_accuracy", "offsets", "counts",
)  # fmt: skip
SCORE_COLUMNS = (
    "kind", "scope", "lam", "asked", "seed", "bleu", "bleu_low", "bleu_high", "p_value", "difference", "bleu_tokenised",
    "sentences", "encoder_heads", "decoder_heads", "cross_heads", "encoder_total", "decoder_total", "cross_total",
)  # fmt: skip

T = TypeVar("T")
Columns = Iterable[str]
Reader = Callable[[Path], Any]


class Titles(Section):
    """Settings of most figures and tables: the title of each file's corpus."""

    titles: list[str]

    def read(self, paths: list[Path], reader: Callable[[Path], T]) -> dict[str, T]:
        """Each file's contents by the title of its corpus."""
        return read_named(paths, self.titles, reader)


class Named(Section):
    """Settings of figures on pruned models of one corpus: the model of each file, as in paths, and the corpus's title."""

    names: list[str]
    title: str

    def read(self, paths: list[Path], reader: Callable[[Path], T]) -> dict[str, T]:
        """Each file's contents by the name of its model."""
        return read_named(paths, self.names, reader, what="names")


def figure(
    description: str | None,
    numbers: Callable[..., pd.DataFrame],
    draw: Callable[..., Figure],
    *,
    settings: type[Titles | Named] = Titles,
    given: Sequence[str] = (),
    **inputs: Columns | Reader,
) -> None:
    """The `main` of a figure: read the files, collect the numbers, draw them, and write both.

    Args:
        description: the module's docstring.
        numbers: makes the table of what is plotted from the contents of the options, in their order.
        draw: draws that table.
        settings: the model of `--settings`, with a method `read(paths, reader)`.
        given: the settings that `draw` takes as keyword arguments.
        inputs: options that take any number of files; for each, the columns that its parquet tables must have, or a function
            that reads one file.
    """
    output, known, contents = _read(description, settings, inputs)
    rows = numbers(*contents)
    save_figure(output, rows, lambda: draw(rows, **{name: getattr(known, name) for name in given}))


def table(
    description: str | None,
    numbers: Callable[..., pd.DataFrame],
    shown: Callable[[pd.DataFrame], pd.DataFrame],
    caption: str | Callable[[pd.DataFrame], str],
    *,
    settings: type[Titles | Named] = Titles,
    **inputs: Columns | Reader,
) -> None:
    """The `main` of a table, as `figure`; `shown` makes the text of its cells from the numbers."""
    output, _, contents = _read(description, settings, inputs)
    rows = numbers(*contents)
    save_table(output, rows, shown(rows), caption=caption if isinstance(caption, str) else caption(rows))


def _read(
    description: str | None, settings: type[Titles | Named], inputs: Mapping[str, Columns | Reader]
) -> tuple[Path, Titles | Named, list[Any]]:
    """The output path, the settings, and the contents of each option's files."""
    args = arguments(description, files=["output"], many=list(inputs))
    known = settings.model_validate(args.settings)
    contents = []
    for option, needed in inputs.items():
        # A function that reads a file, or the columns of a parquet table.
        reader = needed if callable(needed) else lambda path, columns=needed: read_table(path, columns)
        contents.append(known.read(getattr(args, option), reader))
    return args.output, known, contents


def one_per_file(what: str, values: Sequence[object], paths: Sequence[Path]) -> None:
    """Check that a setting has one value per file.

    Raises:
        UserError: it has fewer or more.
    """
    if len(values) != len(paths):
        raise UserError(f"settings: {what}: {len(values)} {what} for {len(paths)} files; give one per file")


def read_named(
    paths: list[Path], names: list[str], reader: Callable[[Path], T], *, what: str = "titles"
) -> dict[str, T]:
    """The contents of each file by its name.

    Raises:
        UserError: paths and names differ in number, a name is given twice, or a file cannot be read.
    """
    one_per_file(what, names, paths)
    if len(set(names)) != len(names):
        raise UserError(
            f"settings: {what}: two are the same, so figures could not tell them apart; make them different"
        )
    return {name: reader(path) for name, path in zip(names, paths, strict=True)}


def read_all(paths: list[Path], titles: list[str], *, columns: Columns) -> dict[str, pd.DataFrame]:
    """Parquet tables by title, with at least these columns; errors as for `read_named` and `read_table`."""
    return read_named(paths, titles, lambda path: read_table(path, columns))


def read_table(path: Path, columns: Columns = ()) -> pd.DataFrame:
    """A parquet table with at least these columns; a `UserError` where it is missing, damaged or lacks one."""
    frame = tables.read_table(path).to_pandas()
    if missing := [column for column in columns if column not in frame]:
        raise UserError(f"{path}: column {missing[0]} is missing")
    return frame


def read_log(path: Path, *, column: str) -> pd.DataFrame:
    """The log of a training run, one row per record, which must have `update` and another column.

    Raises:
        UserError: it is missing, damaged, or lacks them.
    """
    try:
        records = pd.read_json(path, lines=True)
    except (FileNotFoundError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({error}); delete it and run again") from None
    if not {"update", column} <= set(records):
        raise UserError(f"{path}: has no column {column}; it is the log of something else; delete it and run again")
    return records


def stack(frames: Iterable[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """These columns of the frames that have rows, one below the other; an empty table with them where none has."""
    filled = [frame.reindex(columns=columns) for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def encoder_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """The encoder rows of a per-head table, with `functions` as text: names joined by "; ", or "other"."""
    rows = heads[heads["type"] == "encoder"].copy()
    rows["functions"] = ["; ".join(functions) if len(functions) else "other" for functions in rows["functions"]]
    return rows
