"""Measure parsers against gold English trees, to choose whose parses are embedded. Writes resources/parsers.csv.

For maintainers, from the repository root, with the extras `stanza` and `spacy` and the model that `spacy_trees.py`
names:

    python resources/compare_parsers.py --stanza DIRECTORY --gold en_ewt-ud-dev.conllu.gz en_ewt-ud-test.conllu.gz

Every parser gets the raw text of a gold sentence; `treebank.py` says what counts as right.
"""

import argparse
import csv
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import spacy_trees
import stanza
from treebank import compare_arcs, read_treebank

from specialized_heads.parsing import stanza_engine
from specialized_heads.parsing.words import Word
from specialized_heads.stage import atomic, log, run

OUTPUT = Path(__file__).parent / "parsers.csv"


def main() -> None:
    """Parse the gold texts with each parser and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stanza", required=True, help="Stanza resources directory")
    parser.add_argument("--gold", type=Path, nargs="+", required=True, help="gzipped CoNLL-U files")
    args = parser.parse_args()

    model = spacy_trees.load_model()
    pipeline = stanza_engine.load_pipeline(language="en", directory=args.stanza, package="default", download=False)
    spacy_name = f"spaCy {version('spacy')}, {spacy_trees.MODEL} {spacy_trees.MODEL_VERSION}"
    stanza_name = f"Stanza {stanza.__version__}, {dict(pipeline.load_list)['depparse'][0].package}"
    parsers: dict[str, Callable[[list[str]], list[list[Word]]]] = {
        stanza_name: lambda texts: stanza_engine.parse_sentences(pipeline, texts),
        f"{spacy_name}, renamed": lambda texts: list(spacy_trees.parse_with_spacy(model, texts, restructure=False)),
        f"{spacy_name}, restructured": lambda texts: list(spacy_trees.parse_with_spacy(model, texts)),
    }
    rows = []
    for path in args.gold:
        texts, gold = read_treebank(path)
        for name, parse in parsers.items():
            started = time.perf_counter()
            parsed = parse(texts)
            log.info("%s on %s: %.0f words/s", name, path.name, sum(map(len, parsed)) / (time.perf_counter() - started))
            others = sum([w[1:3] for w in words] != [w[1:3] for w in found] for words, found in zip(gold, parsed))
            same = {
                "parser": name,
                "treebank": path.name,
                "sentences": len(texts),
                "sentences_with_other_words": others,
            }
            rows += [same | row for row in compare_arcs(gold, parsed)]
    with atomic(OUTPUT) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    run(main)
