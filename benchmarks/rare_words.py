"""Does a head attend to rare words in longer sentences, in sentences whose rarest token is rarer,
or in models with a larger vocabulary?

    study=results/long_pruning/tatoeba_en_de
    snakemake --cores all $study/heads/baseline/seed{1,2,3,4,5}.parquet \
        --configfile config/studies/long_pruning.yaml
    snakemake --cores all --configfile config/studies/rare_words.yaml
    PYTHONPATH=src python -m benchmarks.rare_words $study results/rare_words/*_*

The baselines of each study and their checkpoints are measured on parts of the analysis set with the
pipeline's own functions. Parts are by the number of source tokens, then by how often the rarest
token of a sentence occurs in the training set. The columns have the best encoder head of the first
layer and of all layers by the share of its largest weights on the rarest token, then by the share
on one of the two rarest, as means over seeds, with the lowest and the highest. By chance: one or
two tokens of each sentence. Only sentences with a rare token count.
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
HEADER = ["study", "seeds", "part", "sentences", "rarest", "of all layers", "by chance"]
HEADER += ["two rarest", "of all layers", "by chance"]


def shares(model: Transformer, store: TokenStore, ranks: np.ndarray) -> np.ndarray:
    """The number of sentences that count; then the shares on the rarest token of the best head of
    the first layer and of all layers, and by chance; then those on one of the two rarest."""
    cutoff, hits, queries = Heads().rare_cutoff, 0, 0
    for batch in maps.attention_maps(model, store):
        best = maps.argmax(batch.weights["encoder"], batch.keys["encoder"]).numpy()
        real, source = batch.queries["encoder"].numpy(), batch.source.numpy()
        found, number = rare_hits(best, real, source, ranks=ranks, cutoff=cutoff)
        hits, queries = hits + found, queries + number
    rare = sum(ranks[store.source_ids(number)].max() >= cutoff for number in range(len(store)))
    first = len(model.architecture.encoder[0])
    rows = [
        [share[:first].max(), share.max(), number * rare / queries]
        for number, share in enumerate(hits / queries, start=1)
    ]
    return np.array([rare, *np.ravel(rows)])


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


def cell(values: np.ndarray) -> str:
    """The mean over seeds, and the least and the most where they differ."""
    least, mean, most = (f"{value:.0%}" for value in (values.min(), values.mean(), values.max()))
    return mean if least == most else f"{mean} ({least} to {most})"


def rows(study: Path) -> list[list[str]]:
    corpus = study / "corpus"
    train, store = (
        load_tokens(corpus / "tokens" / f"{split}.safetensors") for split in ("train", "analysis")
    )
    vocabulary = load_bpe(corpus / "bpe.source.model").vocab_size()
    ranks = frequency_ranks(train.source, vocabulary=vocabulary)
    chosen = parts(store, np.bincount(train.source, minlength=vocabulary))
    chosen = {name: part for name, part in chosen.items() if len(part)}
    found = []
    moments = [int(each.name[6:]) for each in study.glob("models/checkpoint/update*")]
    for moment in [*sorted(moments), None]:
        folder = f"checkpoint/update{moment}" if moment else "baseline"
        models = [
            load_on(each, "cpu") for each in study.glob(f"models/{folder}/seed*/model.safetensors")
        ]
        for name, sentences in chosen.items() if moment is None else [("all", chosen["all"])]:
            values = np.array([shares(each, store.select(sentences), ranks) for each in models])
            after = f" after {moment:,} updates" if moment else ""
            found.append([f"{study.parent.name}, {study.name}{after}", str(len(models)), name])
            found[-1] += [f"{values[0, 0]:,.0f}", *map(cell, values[:, 1:].T)]
            print(*found[-1], sep=" | ", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", type=Path, nargs="+", help="results of a corpus")
    found = [row for study in parser.parse_args().studies for row in rows(study)]
    table = [HEADER, ["---"] * len(HEADER), *found]
    lines = [f"| {' | '.join(row)} |" for row in table]
    about = __doc__.split("\n\n")[-1].strip()
    OUTPUT.write_text(f"# Rare words\n\n{about}\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
