"""Store the baseline of a finished experiment as a folder that other experiments can use
(`corpora.*.baseline`).

For maintainers, and for studies that prune one baseline in many ways:

    python resources/keep_baseline.py --configuration config/studies/from_scratch.yaml \\
        --corpus tatoeba_en_fr --hours 2.5 --output resources/baselines/tatoeba_en_fr

One folder per seed, as `specialized_heads.exchange.folder` describes it. The weights are rounded to
bf16, which halves the files; the logits are those of the rounded weights.
"""

import argparse
import platform
import shutil
from pathlib import Path

import torch

from specialized_heads import stage
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.exchange.folder import (
    GIVEN,
    LOG,
    LOGITS,
    SOURCE,
    SPLITS,
    TARGET,
    WEIGHTS,
    Settings,
    logits,
    write_card,
)
from specialized_heads.experiment.configuration import FACTS, SPLITTING, Experiment, Facts
from specialized_heads.experiment.file import load as load_configuration
from specialized_heads.experiment.file import read
from specialized_heads.model.checkpoint import load, set_weights, weights_of, write_tensors
from specialized_heads.training.batching import make_batch

SENTENCES = 4  # of the development set, whose logits are stored


def keep(experiment: Experiment, name: str, output: Path, *, seed: int, hours: float) -> None:
    """Write the baseline of a corpus, which was trained for some hours, to a folder."""
    results = Path("results", experiment.experiment, name)
    trained = results / "models" / "baseline" / f"seed{seed}"
    tokens = {split: results / "corpus" / "tokens" / f"{split}.safetensors" for split in SPLITS}
    for path in (trained / WEIGHTS, *tokens.values()):
        if not path.is_file():
            raise stage.UserError(
                f"{path}: no such file; finish the experiment, or make this file with snakemake"
            )
    if output.is_dir() and any(output.iterdir()):
        raise stage.UserError(f"{output}: holds a baseline already; give another --output")
    output.mkdir(parents=True, exist_ok=True)
    model, description = load(trained / WEIGHTS), stage.read_json(trained / "model.json")
    narrow = {name: tensor.bfloat16() for name, tensor in weights_of(model).items()}
    write_tensors(output / WEIGHTS, narrow)
    set_weights(model, narrow)
    store = load_tokens(tokens["dev"])
    batch = make_batch(store, torch.arange(min(SENTENCES, len(store))).numpy())
    stored = {"source": batch.source, "target_in": batch.target_in, "logits": logits(model, batch)}
    write_tensors(output / LOGITS, stored)
    shutil.copyfile(trained / LOG, output / LOG)
    for vocabulary in (SOURCE, TARGET):
        shutil.copyfile(results / "corpus" / f"bpe.{vocabulary}", output / vocabulary)
    corpus, values = experiment.corpora[name], experiment.for_corpus(name)
    settings = Settings(
        experiment=experiment.experiment,
        corpus=name,
        model="baseline",
        seed=seed,
        source_language=corpus.source_language,
        target_language=corpus.target_language,
        preprocess=values.vocabulary.preprocess,
        decoding=values.decoding,
    )
    write_card(output, settings, description, files=GIVEN)
    training = description["training"]
    facts = Facts(
        format=2,
        corpus=corpus.model_dump(mode="json", include=set(SPLITTING)),
        settings={key: training[key] for key in ("seed", "vocabulary", "model", "training")},
        tokens={split: stage.file_hash(path) for split, path in tokens.items()},
        hours=hours,
        machine=f"{platform.machine()}, torch {torch.__version__}",
        matmul_precision=training["matmul_precision"],
    )
    stage.write_json(output / FACTS, facts.model_dump())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configuration", type=Path, required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="to store; default: those of the configuration"
    )
    parser.add_argument("--hours", type=float, required=True, help="of training, per seed")
    parser.add_argument("--output", type=Path, required=True, help="gets a folder per seed")
    options = parser.parse_args()
    values = read(options.configuration)
    experiment = load_configuration(values, origin=str(options.configuration))
    if options.corpus not in experiment.corpora:
        raise stage.UserError(
            f"--corpus: {options.corpus} is not one of {', '.join(experiment.corpora)}"
        )
    if experiment.corpora[options.corpus].baseline:
        raise stage.UserError(f"--corpus: the baseline of {options.corpus} is not trained there")
    for seed in options.seeds or experiment.seeds:
        folder = options.output / f"seed{seed}"
        keep(experiment, options.corpus, folder, seed=seed, hours=options.hours)


if __name__ == "__main__":
    stage.run(main)
