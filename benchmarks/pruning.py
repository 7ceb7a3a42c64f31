"""Pruning recipes compared: how long, how fast and on which batches to train gates, and how stable
the chosen heads are.

    study=results/long_pruning/tatoeba_en_de
    snakemake --cores all $study/models/baseline/seed{1,2}/model.safetensors \
        --configfile config/studies/long_pruning.yaml
    PYTHONPATH=src python -m benchmarks.pruning $study

The recipe `first` prunes encoder heads of the baseline of seed 1 with λ 0.012 for 3000 updates of
3000 tokens in bf16, at the baseline's own rates for the weights (`rate` 1) and at 0.05 for the
gates. The others differ from it in the keys that name them. `seed` draws order, dropout and gate
noise anew. λ 0, where it was trained, shows what the same updates give without pruning. `heads` is
the number that a controller of λ reaches. `further` prunes the baseline after 8000 more updates
without pruning, all weights trained, and compares with that. Heads with a function: those of the
baseline, and in brackets how many would be left by chance, with as many heads per layer. Runs of
300 updates are those of the default experiment. A finished run is a line of pruning.jsonl and is
not repeated; a killed one resumes. Except for λ 0.035, 14 heads, 300 and 8000 updates and rate 0.4,
all lines date from when Muon still changed rows and columns without a gradient
(`training/optimizers.py`); docs/reference/long_pruning/tables/models.md has the earlier λ 0.035,
and later models of all types.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import combinations, groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from specialized_heads.evaluation import compare
from specialized_heads.experiment.sections import Training
from specialized_heads.model.architecture import SCOPES
from specialized_heads.report import data
from specialized_heads.report.claims.evidence import Evidence, evidence_of
from specialized_heads.report.claims.inference import slope

ROOT = Path(__file__).parents[1]
HEADS = ROOT / "docs/reference/long_pruning/data"  # functions of the baselines' heads
OUTPUT = ROOT / "benchmarks" / "pruning"
ABOUT = __doc__.split("\n\n")[-1].strip()
SAMPLES = 1000  # random choices of heads
LANGUAGE = "de"
DECODING = {"beam": 4, "max_length_ratio": 2.0}


@dataclass(frozen=True)
class Recipe:
    """What a run trains with, beside the training of the baseline."""

    scope: str = "encoder"
    lam: float = 0.012
    heads: int | None = None  # that the controller of λ reaches; λ is then not used
    updates: int = 3000
    rate: float = 1.0  # of the weights, times the baseline's
    gate_rate: float = 0.05
    batch_tokens: int = 3000
    precision: str = "bf16"
    seed: int = 1
    baseline: int = 1  # its seed
    further: bool = False  # whether the baseline was trained further

    @property
    def name(self) -> str:
        """The keys that differ from the first recipe."""
        first = asdict(Recipe())
        return (
            ", ".join(
                f"{key} {value}" for key, value in asdict(self).items() if value != first[key]
            )
            or "first"
        )

    @property
    def folder(self) -> str:
        """Name of its folder among the recipes."""
        return self.name.replace(", ", "_").replace(" ", "")

    @property
    def plain(self) -> "Recipe":
        """As many updates without pruning."""
        return replace(self, lam=0.0, heads=None, gate_rate=0.05, seed=self.baseline)

    def settings(self, training: dict[str, Any]) -> dict[str, Any]:
        """Those of the stage `prune`, from the training of the baseline, which may have keys that
        are gone."""
        training = {
            name: value for name, value in training.items() if name in Training.model_fields
        }
        training |= {
            "updates": self.updates,
            "batch_tokens": self.batch_tokens,
            "log_every": self.updates // 60,
        }
        training |= {"precision": self.precision}
        training |= {"warmup": min(training["warmup"], self.updates // 10)}
        training |= {
            name: self.rate * training[name] for name in ("learning_rate", "muon_learning_rate")
        }
        gates = {
            "scope": self.scope,
            "lam": None if self.heads else self.lam,
            "target_heads": self.heads,
        }
        gates |= {"gate_learning_rate": self.gate_rate}
        return {"training": training, "seed": self.seed, "dropout": 0.1, "device": "cpu"} | gates


FIRST = Recipe()
SHORT = replace(FIRST, updates=600, gate_rate=0.1)
DEFAULT = replace(FIRST, updates=300, gate_rate=0.1, rate=0.4)  # of the default experiment
RECIPES = [
    *(
        SHORT,
        replace(SHORT, scope="all", lam=0.01),
        replace(SHORT, lam=0.03),
        replace(SHORT, updates=400),
    ),
    *(replace(SHORT, batch_tokens=1500), *(replace(SHORT, seed=seed) for seed in (2, 3, 4, 5))),
    *(replace(DEFAULT, lam=lam, seed=seed) for lam in (0.012, 0.03) for seed in (1, 2, 3, 4, 5)),
    *(replace(DEFAULT, lam=lam, precision="fp32") for lam in (0.012, 0.03)),
    *(FIRST, replace(FIRST, lam=0.0), replace(FIRST, gate_rate=0.02), replace(FIRST, lam=0.035)),
    replace(FIRST, heads=14),
    *(replace(FIRST, updates=8000, lam=lam) for lam in (0.012, 0.02, 0.0)),
    *(replace(FIRST, updates=8000, lam=lam, seed=2, baseline=2) for lam in (0.012, 0.02, 0.0)),
    replace(FIRST, rate=0.4),
    *(replace(FIRST, scope="all", lam=lam) for lam in (0.01, 0.02, 0.0)),
    *(replace(FIRST, scope="all", updates=8000, lam=lam) for lam in (0.01, 0.0)),
    replace(FIRST, updates=8000, lam=0.02, further=True),
]
FURTHER = replace(FIRST, scope="all", updates=8000, lam=0.0)  # how a baseline is trained further


def stage(module: str, *, log: Path, settings: dict[str, Any], **files: Path) -> None:
    """Run a stage of the pipeline in a process of its own, with one thread."""
    command = [
        sys.executable,
        "-m",
        f"specialized_heads.{module}",
        "--settings",
        json.dumps(settings),
    ]
    command += [part for name, path in files.items() for part in (f"--{name}", str(path))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with open(log, "a", encoding="utf-8") as stream:
        subprocess.run(command, stdout=stream, stderr=stream, env=environment, check=True)


def translate(model: Path, corpus: Path, *, log: Path) -> list[str]:
    """Translations of the test set, made once."""
    output = model.parent / "translation.txt"
    if not output.exists():
        settings = {
            "decoding": DECODING,
            "preprocess": "none",
            "language": LANGUAGE,
            "device": "cpu",
        }
        files = {
            "model": model,
            "tokens": corpus / "tokens" / "test.safetensors",
            "bpe": corpus / "bpe.target.model",
        }
        files |= {"output": output, "tokenised": model.parent / "tokenised.txt"}
        stage("model.decoding", log=log, settings=settings, **files)
    return output.read_text(encoding="utf-8").splitlines()


def run(recipe: Recipe, study: Path) -> dict[str, Any]:
    """Prune by this recipe, and measure what comes out."""
    corpus, folder = study / "corpus", study / "recipes" / recipe.folder
    baseline = study / "models" / "baseline" / f"seed{recipe.baseline}" / "model.safetensors"
    if recipe.further:
        further = replace(FURTHER, seed=recipe.baseline, baseline=recipe.baseline)
        baseline = study / "recipes" / further.folder / "model.safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "output": folder / "model.safetensors",
        "gates": folder / "gates.json",
        "records": folder / "log.jsonl",
    }
    log = folder / "log.txt"
    if not all(path.exists() for path in files.values()):
        training = json.loads(baseline.with_suffix(".json").read_text(encoding="utf-8"))[
            "training"
        ]["training"]
        tokens = {split: corpus / "tokens" / f"{split}.safetensors" for split in ("train", "dev")}
        files |= tokens | {"baseline": baseline, "state": folder / "state"}
        stage("pruning.prune", log=log, settings=recipe.settings(training), **files)
    gates = json.loads(files["gates"].read_text(encoding="utf-8"))
    records = [
        json.loads(line) for line in files["records"].read_text(encoding="utf-8").splitlines()
    ]
    references = pq.read_table(corpus / "test.parquet", columns=["target"])["target"].to_pylist()
    whole, pruned = (translate(model, corpus, log=log) for model in (baseline, files["output"]))
    full, [score], _ = compare(whole, [pruned], references, language=LANGUAGE, lowercase=False)
    plain = study / "recipes" / recipe.plain.folder / "model.safetensors"
    beyond = None
    if recipe != recipe.plain and plain.exists():
        unpruned = translate(plain, corpus, log=log)
        level, [other], _ = compare(
            unpruned, [pruned], references, language=LANGUAGE, lowercase=False
        )
        beyond = [round(value, 2) for value in (other.bleu - level, other.low, other.high)]
    kept = [f"{row['type']} {row['layer']}-{row['head']}" for row in gates["rows"] if row["kept"]]
    return asdict(recipe) | {
        "kept": kept,
        "decided": round(gates["decided"], 4),
        "dev_loss": round(records[-1]["dev_loss"], 4),
        "bleu": round(score.bleu, 2),
        "difference": round(score.bleu - full, 2),
        "low": round(score.low, 2),
        "high": round(score.high, 2),
        "p_value": round(score.p_value, 4),
        "from_plain": beyond,
    }


def recipe_of(row: dict[str, Any]) -> Recipe:
    return Recipe(**{name: row.get(name, default) for name, default in asdict(FIRST).items()})


def overlap(kept: list[set[str]]) -> tuple[float, float]:
    """Mean Jaccard index of the heads that pairs of runs keep, and its mean where each run draws as
    many per layer at random."""
    random = np.random.default_rng(1)

    def index(sets: list[set[str]]) -> float:
        return float(np.mean([len(a & b) / len(a | b) for a, b in combinations(sets, 2)]))

    def redrawn(heads: set[str]) -> set[str]:
        layers = Counter(head.rpartition("-")[0] for head in heads)
        return {
            f"{name}-{head}"
            for name, number in layers.items()
            for head in random.permutation(8)[:number]
        }

    return index(kept), float(np.mean([index(list(map(redrawn, kept))) for _ in range(SAMPLES)]))


@cache
def baselines() -> Evidence:
    """What is known of the baselines' heads."""
    return evidence_of(data.load([HEADS]))


def specialised(row: dict[str, Any]) -> dict[str, str]:
    """How many of the encoder heads left had a function in the baseline, and how many would have by
    chance within layers."""
    evidence = baselines()
    heads = evidence.baseline_heads()
    heads = heads[heads["seed"] == row.get("baseline", 1)]
    names = "encoder " + heads["layer"].astype(str) + "-" + heads["head"].astype(str)
    flags = pd.DataFrame(
        {"kept": names.isin(row["kept"]), "labelled": map(bool, evidence.functions(heads))}
    )
    layers = flags.groupby(heads["layer"].to_numpy())
    chance = (layers["kept"].sum() * layers["labelled"].mean()).sum()
    value, low, high, _ = (
        100 * part for part in slope(flags["labelled"], flags["kept"], heads[["layer"]])
    )
    return {
        "with a function": f"{flags.all(axis=1).sum()} of {flags['labelled'].sum()} ({chance:.1f})",
        "their survival − others', points": f"{value:+.0f} [{low:+.0f}, {high:+.0f}]",
    }


def difference(value: float, low: float, high: float) -> str:
    """A difference of BLEU with its interval, for a cell."""
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


def report(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown: a row per recipe, then the overlap over seeds."""
    by_recipe = {recipe_of(row): row for row in rows}
    table = []
    for recipe in RECIPES:
        if recipe.lam == 0 or recipe not in by_recipe:
            continue
        row, plain = by_recipe[recipe], by_recipe.get(recipe.plain)
        kinds = Counter(head.split()[0] for head in row["kept"])
        left = "/".join(str(kinds[kind]) for kind in SCOPES[recipe.scope])
        cells = {"recipe": recipe.name, "heads left": left} | specialised(row)
        cells |= {
            "gates decided": f"{row['decided']:.0%}",
            "development loss": f"{row['dev_loss']:.3f}",
        }
        cells |= {
            "that of λ 0": f"{plain['dev_loss']:.3f}" if plain else "",
            "BLEU": f"{row['bleu']:.1f}",
        }
        cells |= {
            "− baseline [95%]": difference(row["difference"], row["low"], row["high"]),
            "p": f"{row['p_value']:.3f}",
        }
        cells["λ 0 − baseline"] = f"{plain['difference']:+.1f}" if plain else ""
        cells["− λ 0 [95%]"] = difference(*row["from_plain"]) if row.get("from_plain") else ""
        table.append(cells)
    lines = [
        f"| {' | '.join(cells)} |" for cells in (table[0], *(cells.values() for cells in table))
    ]
    lines.insert(1, "|---" * len(table[0]) + "|")
    alike = [
        set(row["kept"])
        for recipe, row in by_recipe.items()
        if recipe == replace(SHORT, seed=recipe.seed)
    ]
    if len(alike) > 1:
        found, chance = overlap(alike)
        what = f"{len(alike)} runs of {SHORT.updates} updates that differ in seed"
        lines += ["", f"Overlap of {what}: Jaccard {found:.2f}, by chance {chance:.2f}."]
    lines += nested(by_recipe) + spreads(by_recipe)
    return "\n".join(lines) + "\n"


def over_seeds(
    by_recipe: dict[Recipe, dict[str, Any]], recipe: Recipe
) -> dict[int, dict[str, Any]]:
    """The runs of a recipe from the baseline of seed 1, by the seed of their order, dropout and
    gate noise."""
    return {
        run.seed: row for run, row in by_recipe.items() if run == replace(recipe, seed=run.seed)
    }


def nested(by_recipe: dict[Recipe, dict[str, Any]]) -> list[str]:
    """How many heads that runs of a large λ keep are kept by runs of a smaller one, with the same
    seed and with another."""
    larger, smaller = (over_seeds(by_recipe, replace(DEFAULT, lam=lam)) for lam in (0.012, 0.03))
    counts: dict[bool, np.ndarray] = {same: np.zeros(3) for same in (True, False)}
    for (one, few), (other, many) in product(smaller.items(), larger.items()):
        layers = [Counter(head.rpartition("-")[0] for head in row["kept"]) for row in (few, many)]
        chance = sum(number * layers[1][name] / 8 for name, number in layers[0].items())
        counts[one == other] += len(set(few["kept"]) & set(many["kept"])), chance, len(few["kept"])
    if not all(total[2] for total in counts.values()):
        return []
    same, independent = (
        f"{kept / of:.0%} (by chance {chance / of:.0%})" for kept, chance, of in counts.values()
    )
    text = (
        f"Of the heads that 300 updates with λ 0.03 keep, {same} are kept with λ 0.012 and the "
        f"same seed, hence the same "
    )
    return ["", f"{text}order, dropout and noise, and {independent} with another seed."]


def spreads(by_recipe: dict[Recipe, dict[str, Any]]) -> list[str]:
    """The standard deviation of BLEU over the runs of a recipe that differ in seed, beside the mean
    half of their intervals."""
    parts = []
    for recipe in (SHORT, DEFAULT, replace(DEFAULT, lam=0.03)):
        rows = pd.DataFrame(over_seeds(by_recipe, recipe).values())
        if len(rows) > 1:
            half = (rows["high"] - rows["low"]).mean() / 2
            parts.append(
                f"{rows['bleu'].std():.2f} ({recipe.updates} updates, λ {recipe.lam}; intervals ± "
                f"{half:.2f})"
            )
    return (
        ["", f"Standard deviation of BLEU over five seeds of pruning: {', '.join(parts)}."]
        if parts
        else []
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "study",
        type=Path,
        help="results of an experiment for one corpus, with baselines of seeds 1 and 2",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="runs at a time, with one thread each"
    )
    options = parser.parse_args()
    lines = OUTPUT.with_suffix(".jsonl")
    lines.touch()

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]

    def write() -> None:
        OUTPUT.with_suffix(".md").write_text(
            f"# Pruning recipes\n\n{ABOUT}\n\n{report(read())}", encoding="utf-8"
        )

    finished = {recipe_of(row) for row in read()}

    def measure(recipe: Recipe) -> None:
        row = run(recipe, options.study)
        with open(lines, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        write()
        print(
            recipe.name,
            len(row["kept"]),
            row["dev_loss"],
            row["bleu"],
            row["difference"],
            flush=True,
        )

    def turn(recipe: Recipe) -> int:
        """Those without pruning come first: further ones continue some of them, and all others are
        compared with them."""
        return 2 if recipe.lam else int(recipe.further)

    left = sorted((recipe for recipe in RECIPES if recipe not in finished), key=turn)
    with ThreadPoolExecutor(options.jobs) as pool:
        for _, chosen in groupby(left, key=turn):
            list(pool.map(measure, chosen))
    write()


if __name__ == "__main__":
    main()
