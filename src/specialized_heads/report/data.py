"""The five tables of an experiment, from which all figures, tables and claims are computed
(docs/heads.md has their columns).

Here a corpus is called by its title. Scores of classification tasks are in the columns of BLEU;
`metric` says what they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from specialized_heads.experiment.names import MIN_DECIDED, Name, Target
from specialized_heads.model.architecture import KINDS
from specialized_heads.parsing.relations import DIRECTIONS
from specialized_heads.report.gather import BLEU, KEYS
from specialized_heads.stage import UserError
from specialized_heads.tables import read_table

# Columns that identify a model.
MODEL = ["corpus", "kind", "scope", "lam", "target_heads", "criterion", "seed", "update"]
# A column by which each table is known.
FIRST = {
    "models": "metric",
    "heads": "functions",
    "logs": "update",
    "ablation": "what",
    "relations": "direction",
}


TOTALS = [f"{kind}_heads" for kind in KINDS]
RULES = {"z_plus": "z⁺", "alpha_beta": "αβ", "epsilon": "ε"}  # of relevance
SAMPLES = "_samples"  # ending of columns with differences on resampled sentences


class Tables(NamedTuple):
    """A row per model, head of an analysed model, record of a training, removed set of heads, and
    relation of a corpus."""

    models: pd.DataFrame
    heads: pd.DataFrame
    logs: pd.DataFrame
    ablation: pd.DataFrame
    relations: pd.DataFrame

    def translation(self) -> pd.DataFrame:
        """The models of the corpora, without those of classification tasks."""
        return self.models[self.models["metric"] == BLEU]

    def pruned(self) -> pd.DataFrame:
        models = self.translation()
        return models[models["corpus"].isin(models.loc[models["kind"] != "baseline", "corpus"])]

    def tasks(self) -> pd.DataFrame:
        return self.models[self.models["metric"] != BLEU]

    def corpora(self) -> list[str]:
        """The corpora in the order of the experiment."""
        return list(self.translation()["corpus"].unique())

    def swept(self, *scopes: str) -> str:
        """The corpus that a figure about pruning shows: the first with models pruned in one of
        these scopes, or the first."""
        models = self.translation()
        pruned = models.loc[(models["kind"] == "pruned") & models["scope"].isin(scopes), "corpus"]
        return [*pruned, *self.corpora(), ""][0]

    def analysed(self, corpus: str, *kinds: str) -> pd.DataFrame:
        """The heads of the models of these kinds and a corpus."""
        return self.heads[(self.heads["corpus"] == corpus) & self.heads["kind"].isin(kinds)]

    def each(self, corpus: str, *scopes: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
        """The baseline of the first seed and its pruned models of these scopes, a row each, with
        their heads."""
        models = self.models[
            (self.models["corpus"] == corpus) & self.models["kind"].isin(["baseline", "pruned"])
        ]
        models = first_seed(models[(models["kind"] == "baseline") | models["scope"].isin(scopes)])
        for model in models.to_dict("records"):
            lam, heads = (
                None if pd.isna(model[key]) else model[key] for key in ("lam", "target_heads")
            )
            name = Name(
                model["kind"], model["scope"], Target(lam, None if heads is None else int(heads))
            )
            same = [
                self.heads[key].isna() if pd.isna(model[key]) else self.heads[key] == model[key]
                for key in MODEL
            ]
            yield (
                model | {"model": f"{name}/seed{model['seed']}"},
                self.heads[np.logical_and.reduce(same)],
            )

    def of(self, corpus: str) -> "Tables":
        """The rows of a corpus; of the heads, without the columns of relations that only others
        have."""
        own = Tables(*(table[table["corpus"] == corpus] for table in self))
        foreign = set(self.relations["relation"]) - set(own.relations["relation"])
        starts = tuple(f"{relation}_{end}" for relation in foreign for end in ("arcs", *DIRECTIONS))
        drop = [column for column in own.heads if column.startswith(starts)]
        return own._replace(heads=own.heads.drop(columns=drop))


def load(folders: Sequence[Path]) -> Tables:
    """The tables in these folders, `results/<experiment>/data`, of one experiment or several."""
    frames = {}
    for name in Tables._fields:
        parts = [read_table(folder / f"{name}.parquet").to_pandas() for folder in folders]
        for folder, part in zip(folders, parts, strict=True):
            if missing := {*KEYS, FIRST[name]} - {*part, "model"}:  # which older tables do not have
                raise UserError(
                    f"{folder / name}.parquet: not the table of {name}: it has no column "
                    f"{min(missing)}"
                )
        frame = pd.concat(parts, ignore_index=True)
        frames[name] = frame.assign(corpus=frame["title"]).astype({"target_heads": float})
    return Tables(**frames)


def joined(paths: dict[str, Path], columns: Sequence[str]) -> pd.DataFrame:
    """These columns of several files, one below the other; the column `task` has the title of each
    file's task."""
    frames = [
        read_table(path, columns=columns).to_pandas().assign(task=title)
        for title, path in paths.items()
    ]
    return stack(frames, ["task", *columns])


def with_ends(*columns: str) -> list[str]:
    """Each of these columns, and those with the ends of its interval or range, `_low` and
    `_high`."""
    return [f"{column}{end}" for column in columns for end in ("", "_low", "_high")]


INTERVAL = with_ends("difference")  # from the baseline
COUNTERPART = with_ends("counterpart_difference")  # from a second model (`evaluation.py`)


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Read a CSV table of the report; a `UserError` if it is missing or damaged."""
    try:
        return pd.read_csv(path, **options)
    except (OSError, ValueError) as error:  # those of pandas are ValueErrors
        said = f"not a CSV table, or a damaged one ({error}); delete it and run again"
        raise UserError(f"{path}: {said}") from None


def has_samples(rows: pd.DataFrame, name: str) -> bool:
    """Whether all rows have the differences on resampled sentences; older tables do not."""
    return name in rows and rows[name].notna().all()


def mean_of_samples(rows: pd.DataFrame, name: str) -> np.ndarray:
    """The mean over rows of the differences on each resample."""
    return np.mean(np.stack(rows[name].to_list()), axis=0)


def mean_interval(same: pd.DataFrame, name: str) -> np.ndarray:
    """The 95% interval of a mean difference over seeds: of one bootstrap, whose resamples of
    sentences are those of all seeds.

    Older tables do not have the resamples: there it is the mean of the seeds' intervals, which is
    at least as wide.
    """
    samples = name + SAMPLES
    if has_samples(same, samples):
        return np.quantile(mean_of_samples(same, samples), (0.025, 0.975))
    return same[[f"{name}_low", f"{name}_high"]].mean().to_numpy()


def is_decided(models: pd.DataFrame) -> pd.Series:
    """Which models have nothing undecided: those with decided gates or none (λ 0), and those with a
    number of heads as target.

    But not where the order of log α alone chose the heads: then the gates had not come near that
    number.
    """
    by_order = models["gates_by_order"].astype(float).eq(1) if "gates_by_order" in models else False
    asked = models["target_heads"].notna() & ~by_order
    return (
        (models["gates_decided"] >= MIN_DECIDED) & models["target_heads"].isna()
        | asked
        | (models["lam"] == 0)
    )


def without_penalty(models: pd.DataFrame) -> pd.DataFrame:
    """Of models pruned with gates, those with λ 0 and as many updates as the others, by seed."""
    return models[(models["lam"] == 0) & (models["updates"] == models["updates"].max())].set_index(
        "seed"
    )


def first_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first seed: heads of different seeds do not correspond."""
    return rows[rows["seed"] == rows["seed"].iloc[0]] if len(rows) else rows


def stack(frames: Iterable[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """These columns of the frames that have rows, one below the other; an empty table with them
    where none has."""
    filled = [frame.reindex(columns=columns) for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def encoder_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """The encoder rows of a per-head table, with `functions` as text: names joined by "; ", or
    "other"."""
    rows = heads[heads["type"] == "encoder"]
    return rows.assign(
        functions=["; ".join(functions) or "other" for functions in rows["functions"]]
    )


def removed(tables: Tables, what: str, *, measured_on: str = "test") -> pd.DataFrame:
    """The scores of baselines without each single head, or with it alone in its layer."""
    rows = tables.ablation
    return rows[(rows["what"] == what) & (rows["measured_on"] == measured_on)]


def in_order_of_importance(tables: Tables) -> pd.DataFrame:
    """The scores as heads of all types or of one (`what`) go in order of importance; without models
    that have no such heads."""
    rows = tables.ablation
    return rows[rows["systematic"].astype(bool) & (rows["heads"] > 0)]


def score_name(rows: pd.DataFrame) -> str:
    """What the score in the columns of BLEU is called."""
    names = [*rows["metric"].unique()] or [BLEU]
    return names[0] if len(names) == 1 else "score"


def renamed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with columns called `score` in place of `bleu` where all are of classification
    tasks."""
    ours = "metric" in rows and len(rows) and BLEU not in set(rows["metric"])
    return rows.rename(columns=lambda name: name.replace("bleu", "score")) if ours else rows


def parted(name: str) -> tuple[str, str]:
    """The relation and the direction of a name such as nsubj_head_to_dependent."""
    return next(
        (name.removesuffix(f"_{end}"), end) for end in DIRECTIONS if name.endswith(f"_{end}")
    )


def spearman(first: pd.Series, second: pd.Series) -> float:
    """Rank correlation over the heads that have both values; NaN for fewer than two, or without
    variation."""
    return float(pd.concat([first, second], axis=1).corr("spearman").iloc[0, 1])
