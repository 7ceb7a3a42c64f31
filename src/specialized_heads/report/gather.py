"""Stage: gather what an experiment has measured into a tidy table, one of five (docs/tables.md describes every column).

All tables begin with the same columns, `KEYS`, so that they can be joined, and those of several experiments concatenated:

    models      a row per model: heads left, scores, size
    heads       a row per head of an analysed model
    logs        a row per record of a training
    ablation    a row per removed set of heads
    relations   a row per syntactic relation and direction of a corpus
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa

from specialized_heads import stage
from specialized_heads.corpus.readers.archives import lines
from specialized_heads.model.architecture import KINDS
from specialized_heads.planning.models import columns
from specialized_heads.tables import read_table, write_table

KEYS = {
    **dict.fromkeys(("experiment", "corpus", "title", "kind", "scope"), "string"),
    "lam": "float64",
    "target_heads": "Int64",
    "criterion": "string",
    "seed": "Int64",
    "update": "Int64",
}
RENAMED = {"asked": "target_heads", "moment": "update"}


class Part(stage.Section):
    """A file that rows come from."""

    path: str  # below the folder of the experiment
    corpus: str
    title: str
    model: str | None  # None: the rows are those of a corpus
    seed: int | None


class Settings(stage.Section):
    table: Literal["models", "heads", "logs", "ablation", "relations"]
    experiment: str
    parts: list[Part]


def read(path: Path) -> pd.DataFrame:
    return read_table(path).to_pandas()


def models(path: Path) -> pd.DataFrame:
    """The models of a corpus, as `evaluation.gather` has them, with heads left by type (`encoder_heads`) and layer."""
    layers = {f"{kind}_heads": f"{kind}_layers" for kind in KINDS}
    totals = {f"{kind}_total": f"{kind}_heads" for kind in KINDS}
    return read(path).rename(columns=RENAMED | layers | totals)


def log(path: Path) -> pd.DataFrame:
    """Records of a training, with the expected number of open heads in each layer, by attention type."""
    records = [json.loads(line) for line in lines(path) if line]
    for record in records:
        for layer, probabilities in record.pop("open", {}).items():  # in the order of the layers
            record.setdefault(f"open_{layer.partition('.')[0]}", []).append(sum(probabilities))
    return pd.DataFrame(records)


def ablation(path: Path) -> pd.DataFrame:
    """Scores without single heads or with one alone in its layer, or as heads go in order of importance."""
    rows = read(path).rename(columns={"pruned": "what"})
    return rows.assign(measured_on="second" if ".second." in path.name else "test", systematic="share" in rows)


READ: dict[str, Callable[[Path], pd.DataFrame]] = {
    "models": models,
    "heads": read,
    "logs": log,
    "ablation": ablation,
    "relations": read,
}


def gather(settings: Settings, results: Path) -> pd.DataFrame:
    """The table, from the files below `results`, the folder of the experiment."""
    frames = []
    for part in settings.parts:
        frame = READ[settings.table](results / part.path)
        keys = {"experiment": settings.experiment, "corpus": part.corpus, "title": part.title, "seed": part.seed}
        keys |= (
            {RENAMED.get(key, key): value for key, value in columns(part.model, part.seed).items()}
            if part.model
            else {}
        )
        # A record of a training has its own update, and a table of models all keys of each.
        frames.append(frame.assign(**{key: value for key, value in keys.items() if key not in frame}))
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    rest = [column for column in table if column not in KEYS]
    return table.reindex(columns=[*KEYS, *rest]).astype(KEYS)


@stage.command("output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    table = gather(settings, files.output.parents[1])
    write_table(files.output, pa.Table.from_pandas(table, preserve_index=False))
    stage.log.info("%s: %d rows, %d columns", settings.table, *table.shape)
