"""How well and how fast the parser engines parse, against gold trees of Universal Dependencies.

Every parser gets the raw text of the gold sentences, one sentence per text. A word is known by its characters, so a word
that a parser cuts in another way than the gold tree counts as an error. UAS and LAS are F1 of words with the right head, and
with the right head and main type of relation; the other columns are F1 of the arcs of one relation. The extra `spacy` is needed.

    python benchmarks/parsers.py STANZA_DIRECTORY en_ewt-ud-dev.conllu.gz en_ewt-ud-test.conllu.gz > benchmarks/parsers.md
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from specialized_heads.parsing import spacy_engine, stanza_engine
from specialized_heads.parsing.conllu import place, read_trees
from specialized_heads.parsing.words import Word

RELATIONS = ("nsubj", "obj", "amod", "advmod")
MEASURES = ("UAS", "LAS", *RELATIONS)

Trees = list[list[Word]]


def gold_trees(path: Path) -> tuple[list[str], Trees]:
    """The raw text of each sentence of a treebank, and its words in it.

    Raises:
        ValueError: the words of a sentence are not those of its text.
    """
    texts, trees = [], []
    for tree in read_trees(path):
        words = place(tree.tokens, tree.text)
        if words is None:
            raise ValueError(f"{path}: the words of {tree.text!r} do not spell it")
        texts.append(tree.text)
        trees.append(words)
    return texts, trees


def arcs(trees: Trees, measure: str) -> set[tuple]:
    """What counts for a measure: (sentence, span of the head or None for a root, span of the word, relation)."""
    counted = set()
    for sentence, words in enumerate(trees):
        for word in words:
            head = (words[word.head - 1].start, words[word.head - 1].end) if word.head else None
            relation = word.relation.split(":")[0]
            if measure in ("UAS", "LAS", relation):
                counted.add((sentence, head, (word.start, word.end), relation * (measure != "UAS")))
    return counted


def f1(gold: Trees, parsed: Trees, measure: str) -> float:
    """Agreement of two lists of trees on the same texts, between 0 and 1."""
    expected, predicted = arcs(gold, measure), arcs(parsed, measure)
    return 2 * len(expected & predicted) / (len(expected) + len(predicted))


def main() -> None:
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    pipeline = stanza_engine.load_pipeline(language="en", directory=sys.argv[1], package="default")
    model = spacy_engine.load_model(language="en", package="default")
    stanza, spacy = stanza_engine.describe(pipeline, package="default"), spacy_engine.describe(model)
    parsers: dict[str, Callable[[list[str]], Trees]] = {
        f"Stanza {stanza['version']}, {dict(pipeline.load_list)['depparse'][0].package}": lambda texts: (
            stanza_engine.parse_sentences(pipeline, texts)
        ),
        f"spaCy {spacy['version']}, {spacy['model'].split(',')[0]}, relations renamed": lambda texts: list(
            spacy_engine.parse_sentences(model, texts, restructure=False)
        ),
        f"spaCy {spacy['version']}, {spacy['model'].split(',')[0]}, restructured": lambda texts: list(
            spacy_engine.parse_sentences(model, texts)
        ),
    }
    columns = ["parser", *MEASURES, "sentences with other words", "words/s"]
    for path in map(Path, sys.argv[2:]):
        texts, gold = gold_trees(path)
        print(f"{path.name}: {len(texts)} sentences, {sum(map(len, gold))} words\n")
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for name, parse in parsers.items():
            started = time.perf_counter()
            parsed = parse(texts)
            speed = sum(map(len, parsed)) / (time.perf_counter() - started)
            others = sum(
                [word[1:3] for word in a] != [word[1:3] for word in b] for a, b in zip(gold, parsed, strict=True)
            )
            scores = [f"{f1(gold, parsed, measure):.3f}" for measure in MEASURES]
            print(f"| {' | '.join([name, *scores, str(others), f'{speed:,.0f}'])} |", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
