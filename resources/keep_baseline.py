"""Keep the baseline of a finished experiment as a folder that other experiments can use
(`corpora.*.baseline`).

For maintainers, and for studies that prune one baseline in many ways:

    python resources/keep_baseline.py --configuration config/studies/from_scratch.yaml --corpus
    tatoeba_en_fr \\
        --hours 2.5 --output resources/baselines/tatoeba_en_fr

One folder per seed, as `specialized_heads.exchange.given` describes it. The weights are rounded to
bf16, which halves the files; the logits are those of the rounded weights.
"""

import argparse
import platform
import shutil
from pathlib import Path
from typing import Any

import torch

from specialized_heads import __version__, stage
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.exchange.given import LOG, LOGITS, SPLITS, VOCABULARIES, WEIGHTS, logits
from specialized_heads.experiment.configuration import load as load_configuration
from specialized_heads.experiment.file import read
from specialized_heads.experiment.given import CORPUS, DESCRIPTION, Given
from specialized_heads.model.checkpoint import load, set_weights, weights_of, write_tensors
from specialized_heads.training.batching import make_batch

SENTENCES = 4  # of the development set, whose logits are kept


def keep(corpus: Path, output: Path, *, seed: int, settings: dict[str, Any], hours: float) -> None:
    """Write the baseline in the folder `corpus` of results as a folder; `settings` are those of
    `CORPUS`, `hours` of training."""
    trained = corpus / "models" / "baseline" / f"seed{seed}"
    tokens = {split: corpus / "corpus" / "tokens" / f"{split}.safetensors" for split in SPLITS}
    for path in (trained / WEIGHTS, *tokens.values()):
        if not path.is_file():
            raise stage.UserError(
                f"{path}: no such file; finish the experiment, or make this file with snakemake"
            )
    output.mkdir(parents=True, exist_ok=True)
    model, description = load(trained / WEIGHTS), stage.read_json(trained / "model.json")
    narrow = {name: tensor.bfloat16() for name, tensor in weights_of(model).items()}
    write_tensors(output / WEIGHTS, narrow)
    set_weights(model, narrow)
    store = load_tokens(tokens["dev"])
    batch = make_batch(store, torch.arange(min(SENTENCES, len(store))).numpy())
    kept = {"source": batch.source, "target_in": batch.target_in, "logits": logits(model, batch)}
    write_tensors(output / LOGITS, kept)
    shutil.copyfile(trained / LOG, output / LOG)
    for name in VOCABULARIES:
        shutil.copyfile(corpus / "corpus" / name, output / name)
    training = description["training"]
    about = Given(
        format=1,
        version=__version__,
        corpus=settings,
        settings={name: training[name] for name in ("seed", "vocabulary", "model", "training")},
        architecture=description["architecture"],
        tokens={split: stage.file_hash(path) for split, path in tokens.items()},
        data_hash=training["data_hash"],
        sha256={
            name: stage.file_hash(output / name) for name in (WEIGHTS, LOGITS, LOG, *VOCABULARIES)
        },
        hours=hours,
        machine=f"{platform.machine()}, torch {torch.__version__}",
        matmul_precision=training["matmul_precision"],
    )
    stage.write_json(output / DESCRIPTION, about.model_dump())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configuration", type=Path, required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="to keep; default: those of the configuration"
    )
    parser.add_argument("--hours", type=float, required=True, help="of training, per seed")
    parser.add_argument("--output", type=Path, required=True, help="gets a folder per seed")
    files = parser.parse_args()
    values = read(files.configuration)
    experiment = load_configuration(values, origin=str(files.configuration))
    if files.corpus not in experiment.corpora:
        raise stage.UserError(
            f"--corpus: {files.corpus} is not one of {', '.join(experiment.corpora)}"
        )
    if experiment.corpora[files.corpus].baseline:
        raise stage.UserError(f"--corpus: the baseline of {files.corpus} is given, not trained")
    corpus = experiment.corpora[files.corpus].model_dump(mode="json", include=set(CORPUS))
    for seed in files.seeds or experiment.seeds:
        results = Path("results") / experiment.experiment / files.corpus
        keep(results, files.output / f"seed{seed}", seed=seed, settings=corpus, hours=files.hours)


if __name__ == "__main__":
    stage.run(main)
