"""Does a head attend to rare words in longer sentences, or where the rarest token is rarer?

    study=results/long_pruning/tatoeba_en_de
    snakemake --cores all $study/heads/baseline/seed{1,2,3,4,5}.parquet \
        --configfile config/studies/long_pruning.yaml
    PYTHONPATH=src python -m benchmarks.rare_words $study

The baselines of each study, measured on parts of the analysis set with the pipeline's own
functions. Parts are by the number of source tokens, then by how often the rarest token of a
sentence occurs in the training set. The best encoder head of the first layer, and of all layers, by
the share of its largest weights on the rarest token; then by the share on one of the two rarest. By
chance: one or two tokens of each sentence. Only sentences with a rare token count.
"""

import argparse
from pathlib import Path

import numpy as np

from specialized_heads.corpus.tokens import TokenStore, load_bpe, load_tokens
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads import maps
from specialized_heads.heads.functions import frequency_ranks, rare_hits
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.transformer import Transformer

OUTPUT = Path(__file__).with_suffix(".md")
LENGTHS = ((2, 6), (7, 8), (9, 11), (12, 999))  # source tokens
COUNTS = ((0, 4), (5, 19), (20, 99), (100, 10**9))  # of the rarest token in the training set
HEADER = ["study", "seed", "part", "sentences", "rarest", "of all layers", "by chance"]
HEADER += ["two rarest", "of all layers", "by chance"]


def cells(model: Transformer, store: TokenStore, ranks: np.ndarray) -> list[str]:
    """The shares on the rarest token and on one of the two rarest, each of the best head of the
    first layer and of all layers, and by chance."""
    cutoff, hits, queries = Heads().rare_cutoff, 0, 0
    for batch in maps.attention_maps(model, store):
        best = maps.argmax(batch.weights["encoder"], batch.keys["encoder"]).numpy()
        real, source = batch.queries["encoder"].numpy(), batch.source.numpy()
        found, number = rare_hits(best, real, source, ranks=ranks, cutoff=cutoff)
        hits, queries = hits + found, queries + number
    rare = sum(ranks[store.source_ids(number)].max() >= cutoff for number in range(len(store)))
    first, text = len(model.architecture.encoder[0]), [f"{rare:,}"]
    for number, shares in enumerate(hits / queries, start=1):
        chance = number * rare / queries
        text += [f"{share:.0%}" for share in (shares[:first].max(), shares.max(), chance)]
    return text


def parts(store: TokenStore, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Sentences of each part of the analysis set; `counts`: of each token in the training set."""
    rarest = np.array([counts[store.source_ids(number)].min() for number in range(len(store))])
    chosen = {"all": np.arange(len(store))}
    for unit, values, ranges in (
        ("tokens", store.source_lengths, LENGTHS),
        ("times in training", rarest, COUNTS),
    ):
        for least, most in ranges:
            name = f"{least} to {most}" if most < 999 else f"{least} or more"
            chosen[f"{name} {unit}"] = np.flatnonzero((least <= values) & (values <= most))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", type=Path, nargs="+", help="results of a corpus")
    lines = [f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|"]
    for study in parser.parse_args().studies:
        corpus = study / "corpus"
        train, store = (
            load_tokens(corpus / "tokens" / f"{split}.safetensors")
            for split in ("train", "analysis")
        )
        vocabulary = load_bpe(corpus / "bpe.source.model").vocab_size()
        ranks = frequency_ranks(train.source, vocabulary=vocabulary)
        chosen = parts(store, np.bincount(train.source, minlength=vocabulary))
        for weights in sorted(study.glob("models/baseline/seed*/model.safetensors")):
            model = load_on(weights, "cpu")
            for name, sentences in chosen.items():
                row = [f"{study.parent.name}, {study.name}", weights.parent.name[4:], name]
                row += cells(model, store.select(sentences), ranks) if len(sentences) else ["0"]
                lines.append(f"| {' | '.join(row)} |")
                print(lines[-1], flush=True)
    about = __doc__.split("\n\n")[-1].strip()
    OUTPUT.write_text(f"# Rare words\n\n{about}\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
