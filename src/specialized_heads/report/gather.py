"""Stages: gather what an experiment has measured into one of five tidy tables, or write its
configuration.

docs/heads.md describes every column. All tables begin with the same ones, `KEYS`, so that they can
be joined, and those of several experiments concatenated. The configuration is the validated one
with all defaults: given to Snakemake as `--configfile`, it reproduces the same results.
"""

import json
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import yaml

from specialized_heads import stage
from specialized_heads.corpus.readers.archives import lines
from specialized_heads.experiment.file import load
from specialized_heads.experiment.names import CERTAINTY, TRAINED, columns
from specialized_heads.heads.functions import BY_NAME, LEAST_ARCS, SYNTACTIC
from specialized_heads.model.architecture import KINDS
from specialized_heads.tables import read_table, write_table

KEYS = dict.fromkeys(("experiment", "corpus", "title", "kind", "model", "scope"), "string")
KEYS |= {
    "lam": "float64",
    "target_heads": "Int64",
    "criterion": "string",
    "seed": "Int64",
    "update": "Int64",
}
# Columns that a table has even if nothing in it was measured, such as those of one kind of
# ablation.
COLUMNS = {
    "ablation": [
        "what", "type", "layer", "head", "removed", "heads", "share", "bleu", "bleu_low",
        "bleu_high", "bleu_full", "delta", "delta_low", "delta_high", "p_value", "sentences",
        "measured_on", "systematic", "metric",
    ],
    "heads": ["type", "layer", "head", "functions"],
    "relations": ["relation", "direction"],
}  # fmt: skip
COMMENT = (
    "# The configuration of this experiment with all defaults. To repeat it: `snakemake "
    "--configfile`.\n"
)
# Columns that are the same in all rows of a table: when a head is syntactic.
SAME = {"relations": {"least_arcs": LEAST_ARCS, "syntactic_margin": BY_NAME[SYNTACTIC].threshold}}
BLEU = "BLEU"  # the score of translation; that of a classification task is in the same columns


class Settings(stage.Section):
    table: Literal["models", "heads", "logs", "ablation", "relations"]
    experiment: str
    # Columns that are the same in all rows of a corpus, such as its title.
    corpora: dict[str, dict[str, str | int | float | None]]
    # by pattern below the experiment's folder: corpus, model and seed
    files: dict[str, list[tuple[str, str, int]]]
    by_rule: list[str] = []  # corpora whose tables name the rules of relevance


def model(folder: Path, *, baselines: Path, kind: str, update: int | None) -> pd.DataFrame:
    """The row of a model: its description, its scores and, if it has a log, its last development
    loss.

    `baselines`: what a classification task compares its models with.
    """
    described = stage.read_json(folder / "model.json")
    score = stage.read_json(folder / "score.json")
    architecture, training = described["architecture"], described["training"]
    row = {"metric": BLEU} | (score if "bleu" in score else task_score(score, baselines))
    row |= {f"{kind}_heads": sum(map(len, architecture.get(kind, ()))) for kind in KINDS}
    row["total_heads"] = sum(row[f"{kind}_heads"] for kind in KINDS)
    row |= {
        f"{kind}_layers": [len(layer) for layer in architecture.get(kind, ())] for kind in KINDS
    }
    row |= {f"gates_{key}": training.get("gates", {}).get(key) for key in CERTAINTY}
    row["fixed_patterns"] = bool(architecture.get("fixed_patterns"))
    row["parameters"] = described["parameters"]
    if "target_vocabulary" in architecture:
        # Embedding matrices of the target, besides the source's.
        matrices = {"all": 0, "output": 1}.get(architecture.get("tied"), 2)
        pieces = architecture["source_vocabulary"] + matrices * architecture["target_vocabulary"]
        row["parameters_without_embeddings"] = row["parameters"] - architecture["width"] * pieces
    # 0: an imported model; before: those of a control whose training has two parts
    row["updates"] = update or training.get("before", 0) + training.get("training", {}).get(
        "updates", 0
    )
    row["own_seed"] = training.get("seed") if kind in TRAINED else None
    if training.get("gate_seed") is not None:
        row["gate_seed"] = training["gate_seed"]
    records = log(folder / "log.jsonl") if kind in TRAINED else pd.DataFrame()
    row["dev_loss"] = records["dev_loss"].dropna().iloc[-1] if "dev_loss" in records else None
    if kind == "cut":
        row |= {
            "dev_loss": training["cut"]["dev_loss"],
            "random_dev_losses": training["cut"].get("dev_losses"),
        }
    return pd.DataFrame([row])


def task_score(score: dict[str, Any], baselines: Path) -> dict[str, Any]:
    """The scores of a classifier, in the columns of BLEU, and of what it is compared with;
    `second_`: on the second test set."""
    others = stage.read_json(baselines)
    row = {"metric": score["metric"]}
    for name, start in (("test", ""), ("second", "second_")):
        if name in score:
            bag = others[name]["bag_of_words"].items()
            own = {
                key.replace("score", "bleu").replace("delta", "difference"): v
                for key, v in score[name].items()
            }
            own |= {
                key.replace("score", "bag_of_words"): v for key, v in bag if key.startswith("score")
            }
            own["majority"] = others[name]["majority"]
            row |= {f"{start}{key}": value for key, value in own.items()}
    return row


def log(path: Path) -> pd.DataFrame:
    """Records of a training; `open_<type>`: by layer, the probability that each head's gate is
    open."""
    try:
        records = [json.loads(line) for line in lines(path) if line]
    except ValueError as error:
        raise stage.UserError(f"{path}: damaged ({error}); delete it and run again") from None
    for record in records:
        for name, probabilities in record.pop("open", {}).items():  # in the order of the layers
            kind, layer = name.split(".")
            layers = record.setdefault(f"open_{kind}", [])
            layers += [[]] * (int(layer) - 1 - len(layers)) + [probabilities]
    return pd.DataFrame(records)


def with_rules(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The heads of a baseline with `relevance_<rule>`, its standard error `relevance_<rule>_error`,
    and how often the `halves_<rule>` of a set agree on a layer's top head.
    """
    rules = (
        read_table(path)
        .to_pandas()
        .set_index(["type", "layer", "head"])
        .add_prefix("relevance_")
        .reset_index()
    )
    for rule, layers in stage.read_json(path.with_suffix(".json"))["stability"].items():
        agreement = {
            (kind, each["layer"]): each["top_head"]
            for kind, rows in layers.items()
            for each in rows
        }
        rules[f"halves_{rule}"] = [
            agreement.get(layer) for layer in zip(rules["type"], rules["layer"])
        ]
    return table.merge(rules, on=["type", "layer", "head"], how="left")


def ablation(path: Path) -> pd.DataFrame:
    """Scores without single heads or with one alone in its layer, or as heads go in order of
    importance."""
    scores = {f"score{end}": f"bleu{end}" for end in ("", "_low", "_high", "_full")}
    rows = read_table(path).to_pandas().rename(columns=scores | {"pruned": "what"})
    rows = rows.assign(
        measured_on="second" if ".second." in path.name else "test", systematic="share" in rows
    )
    return rows if "metric" in rows else rows.assign(metric=BLEU)


def rows_of(
    settings: Settings, results: Path, pattern: str, owner: tuple[str, str, int]
) -> pd.DataFrame:
    """The rows of a table from one file, or of the table of models from one folder, with their
    keys."""
    corpus, name, seed = owner
    of_model = columns(name, seed) if "{model}" in pattern else {}
    path = results / pattern.format(corpus=corpus, model=name, seed=seed)
    match settings.table:
        case "models":
            others = results / corpus / "baselines.json"
            frame = model(path, baselines=others, kind=of_model["kind"], update=of_model["update"])
        case "logs":
            frame = log(path)
        case "ablation":
            frame = ablation(path)
        case _:
            frame = read_table(path).to_pandas()
    if settings.table == "heads" and name == "baseline" and corpus in settings.by_rule:
        frame = with_rules(frame, results / corpus / "relevance" / name / f"seed{seed}.parquet")
    keys = (
        {"experiment": settings.experiment, "corpus": corpus}
        | settings.corpora[corpus]
        | SAME.get(settings.table, {})
        | of_model
    )
    # A record of a training has its own update.
    return frame.assign(**{key: value for key, value in keys.items() if key not in frame})


def gather(settings: Settings, results: Path) -> pd.DataFrame:
    """The table, from the files below `results`, the folder of the experiment."""
    files = [(pattern, owner) for pattern, owners in settings.files.items() for owner in owners]
    frames = [rows_of(settings, results, *file) for file in files]
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    table = table.reindex(
        columns=list(dict.fromkeys([*KEYS, *table, *COLUMNS.get(settings.table, ())]))
    ).astype(KEYS)
    unknown = [column for column in table if column not in KEYS and table[column].isna().all()]
    return table.astype(dict.fromkeys(unknown, float))


@stage.command("output", settings=Settings)
def table(files: stage.Files, settings: Settings) -> None:
    frame = gather(settings, files.output.parents[1])
    write_table(files.output, pa.Table.from_pandas(frame, preserve_index=False))
    stage.log.info("%s: %d rows, %d columns", settings.table, *frame.shape)


@stage.command("output")
def configuration(files: stage.Files) -> None:
    values = load(files.settings, origin="settings").model_dump(mode="json")
    stage.write_file(
        files.output,
        COMMENT + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120),
    )


stage.no_stage(__name__)
