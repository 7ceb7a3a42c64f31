"""Pruning recipes compared: how long, how fast and on which batches to train gates, and how stable the chosen heads are.

    study=results/reference/tatoeba_en_de
    snakemake --cores all $study/models/baseline/seed1/model.safetensors --configfile config/reference.yaml
    PYTHONPATH=src python -m benchmarks.pruning $study

Each recipe differs from the first in the keys that name it, and prunes the same baseline (seed 1) with the pipeline's own stage.
`seed` draws order, dropout and gate noise anew, `gate_seed` gate noise alone. λ 0 shows what the same updates give without
pruning. A finished run is a line of pruning.jsonl and is not repeated; a killed one resumes. `--report` only writes the table.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from specialized_heads.evaluation.significance import compare

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "benchmarks" / "pruning"
DECODING = {"beam": 4, "length_penalty": 1.0, "max_length_ratio": 2.0}


@dataclass(frozen=True)
class Recipe:
    """What a run trains with; `rate` is a share of the baseline's learning rates."""

    scope: str = "encoder"
    lam: float = 0.012
    updates: int = 3000
    rate: float = 1.0
    optimizer: str = "muon"
    gate_rate: float = 0.05
    dropout: float = 0.1
    batch_tokens: int = 3000
    join: int = 3
    seed: int = 1
    gate_seed: int | None = None

    @property
    def name(self) -> str:
        """The keys that differ from the first recipe."""
        first = asdict(Recipe())
        return ", ".join(f"{key} {value}" for key, value in asdict(self).items() if value != first[key]) or "first"

    def settings(self, training: dict[str, Any]) -> dict[str, Any]:
        """Those of the stage `prune`, from the training of the baseline."""
        changed = {name: self.rate * training[name] for name in ("learning_rate", "muon_learning_rate")}
        changed |= {name: getattr(self, name) for name in ("updates", "optimizer", "batch_tokens", "join")}
        changed |= {"warmup": min(training["warmup"], self.updates // 10), "log_every": self.updates // 60}
        gates = {"scope": self.scope, "penalty": self.lam, "gate_learning_rate": self.gate_rate, "gate_init": 2.0}
        others = {"heads": None, "penalty_warmup": 0, "penalise": "heads", "device": "cpu"}
        own = {name: getattr(self, name) for name in ("seed", "gate_seed", "dropout")}
        return {"training": training | changed} | gates | others | own


FIRST = Recipe()
# One key at a time, with λ 0 beside each that changes the updates themselves; then λ, scope, and seeds.
UPDATES = [{"updates": 600}, {"updates": 1500}, {"rate": 0.4}, {"optimizer": "adam"}, {"join": 1}]
UPDATES += [{"batch_tokens": 1500}, {"dropout": 0.0}, {"updates": 8000}]
GATES = [{"gate_rate": rate} for rate in (0.02, 0.1, 0.01)]
SEEDS = [{"seed": 2}, {"gate_seed": 2}, {"seed": 3}, {"seed": 4}, {"seed": 5}]
SWEEP = [{"lam": 0.03}, {"lam": 0.006}, {"scope": "all", "lam": 0.01}, {"scope": "all", "lam": 0.02}]
RECIPES = [
    *(FIRST, replace(FIRST, lam=0.0)),
    *(replace(FIRST, **change) for change in GATES[:2] + UPDATES[:5] + SEEDS[:3] + SWEEP),
    *(replace(FIRST, **change) for change in UPDATES[5:] + SEEDS[3:] + GATES[2:]),
    *(replace(FIRST, **change, lam=0.0) for change in [*UPDATES, {"scope": "all"}]),
]


def stage(module: str, threads: int, *, log: Path, settings: dict[str, Any], **files: Path) -> None:
    """Run a stage of the pipeline in a process of its own."""
    command = [sys.executable, "-m", f"specialized_heads.{module}", "--settings", json.dumps(settings)]
    command += [part for name, path in files.items() for part in (f"--{name}", str(path))]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    with open(log, "a", encoding="utf-8") as stream:
        subprocess.run(command, stdout=stream, stderr=stream, env=environment, check=True)


def translate(model: Path, corpus: Path, language: str, threads: int, *, log: Path) -> list[str]:
    """Translations of the test set, made once."""
    output = model.parent / "translation.txt"
    if not output.exists():
        settings = {"decoding": DECODING, "preprocess": "none", "language": language, "device": "cpu"}
        files = {"model": model, "tokens": corpus / "tokens" / "test.safetensors", "bpe": corpus / "bpe.target.model"}
        files |= {"output": output, "tokenised": model.parent / "tokenised.txt"}
        stage("evaluation.translate", threads, log=log, settings=settings, **files)
    return output.read_text(encoding="utf-8").splitlines()


def run(recipe: Recipe, study: Path, language: str, threads: int) -> dict[str, Any]:
    """Prune by this recipe, and measure what comes out."""
    corpus, baseline = study / "corpus", study / "models" / "baseline" / "seed1" / "model.safetensors"
    folder = study / "recipes" / recipe.name.replace(", ", "_").replace(" ", "")
    folder.mkdir(parents=True, exist_ok=True)
    files = {"output": folder / "model.safetensors", "gates": folder / "gates.json", "records": folder / "log.jsonl"}
    log = folder / "log.txt"
    if not all(path.exists() for path in files.values()):
        training = json.loads(baseline.with_suffix(".json").read_text(encoding="utf-8"))["training"]["training"]
        tokens = {split: corpus / "tokens" / f"{split}.safetensors" for split in ("train", "dev")}
        files |= tokens | {"baseline": baseline, "state": folder / "state", "soft": folder / "soft.safetensors"}
        stage("pruning.prune", threads, log=log, settings=recipe.settings(training), **files)
    gates = json.loads(files["gates"].read_text(encoding="utf-8"))
    records = [json.loads(line) for line in files["records"].read_text(encoding="utf-8").splitlines()]
    references = pq.read_table(corpus / "test.parquet", columns=["target"])["target"].to_pylist()
    whole = translate(baseline, corpus, language, threads, log=log)
    pruned = translate(files["output"], corpus, language, threads, log=log)
    full, [score], _ = compare(whole, [pruned], references, language=language, lowercase=False)
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
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", type=Path, help="results of an experiment for one corpus, with a baseline of seed 1")
    parser.add_argument("--language", default="de", help="of the translations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time, with one thread each")
    options = parser.parse_args()
    lines = OUTPUT.with_suffix(".jsonl")
    done = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()] if lines.exists() else []
    finished = {Recipe(**{name: row[name] for name in asdict(FIRST)}) for row in done}

    def measure(recipe: Recipe) -> None:
        row = run(recipe, options.study, options.language, 1)
        with open(lines, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        print(recipe.name, len(row["kept"]), row["dev_loss"], row["bleu"], row["difference"], flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(measure, (recipe for recipe in RECIPES if recipe not in finished)))


if __name__ == "__main__":
    main()
