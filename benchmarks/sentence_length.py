"""What heads find in shorter and longer sentences: do the functions that no head has appear where
sentences are long?

    study=results/long_pruning/tatoeba_en_de
    snakemake --cores all $study/heads/baseline/seed{1,2}.parquet \
        --configfile config/studies/long_pruning.yaml
    PYTHONPATH=src python -m benchmarks.sentence_length $study

The baselines of an experiment, measured on parts of its analysis set by the number of words, with
the pipeline's own functions; a minute per baseline. Margins are those of the best encoder head
above the best fixed offset of the same part, in points, with the offset's accuracy. `rarest`: the
share of largest weights of the best head of the first layer; by chance: one token of each sentence.
"""

import argparse
from pathlib import Path

import numpy as np

from specialized_heads.corpus.tokens import TokenStore, load_bpe, load_tokens
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.analyse import measure
from specialized_heads.heads.functions import frequency_ranks
from specialized_heads.heads.syntactic import Sentence, align
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.transformer import Transformer
from specialized_heads.parsing.relations import DIRECTIONS, relation_table
from specialized_heads.parsing.words import read_parses
from specialized_heads.report.paper import direction_label
from specialized_heads.tables import read_table

OUTPUT = Path(__file__).with_suffix(".md")
PARTS = ((1, 6), (7, 8), (9, 11), (12, 99))  # words
HEADS = Heads()


def row(
    model: Transformer, store: TokenStore, sentences: dict[int, Sentence], ranks: np.ndarray
) -> list[str]:
    """Cells of the table for some sentences: of the rarest token, then of each relation and
    direction."""
    fixed = relation_table(
        (sentence.arcs for sentence in sentences.values()), HEADS.relations
    ).to_pylist()
    offsets = {(entry["relation"], entry["direction"]): entry["baseline_offset"] for entry in fixed}
    counted = measure(model, store, sentences, offsets, ranks=ranks, cutoff=HEADS.rare_cutoff)
    rare = sum(
        int(ranks[store.source_ids(number)].max()) >= HEADS.rare_cutoff
        for number in range(len(store))
    )
    best, chance = (
        counted.shares["rarest"][: len(model.architecture.encoder[0])].max(),
        rare / counted.share_queries["rarest"],
    )
    arcs = counted.arcs.sum(0)
    accuracy, baseline = counted.hits.sum(0) / arcs, counted.fixed.sum(0) / arcs
    margin = (accuracy - baseline).max(0)
    cells = [
        f"{100 * above:+.0f} ({share:.0%})"
        for above, share in zip(margin.flat, baseline.flat, strict=True)
    ]
    return [f"{len(store):,}", f"{best:.0%} ({chance:.0%})", *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "study", type=Path, help="results of an experiment for one corpus, with trees"
    )
    study = parser.parse_args().study
    corpus = study / "corpus"
    bpe, train = (
        load_bpe(corpus / "bpe.source.model"),
        load_tokens(corpus / "tokens" / "train.safetensors"),
    )
    store, parses = (
        load_tokens(corpus / "tokens" / "analysis.safetensors"),
        read_parses(study / "parses" / "analysis.parquet"),
    )
    texts = read_table(corpus / "analysis.parquet", columns=["source"])["source"].to_pylist()
    ranks = frequency_ranks(train.source, vocabulary=bpe.vocab_size())
    relations = [
        f"{relation} {direction_label(relation, direction)}"
        for relation in HEADS.relations
        for direction in DIRECTIONS
    ]
    header = ["baseline", "words", "sentences", "rarest (by chance)", *relations]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for weights in sorted(study.glob("models/baseline/seed*/model.safetensors")):
        model = load_on(weights, "cpu")
        for least, most in PARTS:
            chosen = [number for number, words in parses.items() if least <= len(words) <= most]
            part = {place: parses[number] for place, number in enumerate(chosen)}
            sentences, _ = align(part, [texts[number] for number in chosen], bpe, HEADS.relations)
            cells = row(model, store.select(np.array(chosen)), sentences, ranks)
            lines.append(f"| {' | '.join([weights.parent.name, f'{least} to {most}', *cells])} |")
            print(lines[-1], flush=True)
    about = __doc__.split("\n\n")[-1].strip()
    OUTPUT.write_text(
        f"# Sentence length\n\n{about}\n\n" + "\n".join(lines) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
