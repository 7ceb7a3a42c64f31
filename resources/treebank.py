"""Gold trees of Universal Dependencies, and how far a parser agrees with them.

A word is known by its characters in the raw text, so a word that a parser cuts in another way counts as an error of the
parser. A relation is right when the characters of both words and the main type agree.
"""

import gzip
from itertools import groupby
from pathlib import Path

from specialized_heads.parsing.relations import arcs
from specialized_heads.parsing.words import Word

RELATIONS = ("nsubj", "obj", "amod", "advmod")


def read_treebank(path: Path) -> tuple[list[str], list[list[Word]]]:
    """Read a gzipped CoNLL-U file: the raw text of each sentence, and its words with their characters in it."""
    texts, trees = [], []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for blank, lines in groupby(stream, key=str.isspace):
            if blank:
                continue
            lines = [line.rstrip("\n") for line in lines]
            texts.append(next(line for line in lines if line.startswith("# text = ")).removeprefix("# text = "))
            trees.append(_words(texts[-1], [line.split("\t") for line in lines if not line.startswith("#")]))
    return texts, trees


def _words(text: str, rows: list[list[str]]) -> list[Word]:
    """Find each word's characters; those of a multi-word token divide it if they spell it, else each has the whole."""
    words: list[Word] = []
    after = 0
    while rows:
        number, form = rows[0][0], rows[0][1]
        members = 1
        if "-" in number:
            first, last = map(int, number.split("-"))
            members = last - first + 1
            rows = rows[1:]
        elif "." in number:  # an elided word, which is not in the text
            rows = rows[1:]
            continue
        start = text.index(form, after)
        after = start + len(form)
        spelled = "".join(row[1] for row in rows[:members]) == form
        for row in rows[:members]:
            end = start + len(row[1]) if spelled else after
            words.append(Word(row[1], start, end, int(row[6]), row[7], row[3]))
            start = end if spelled else start
        rows = rows[members:]
    return words


def compare_arcs(gold: list[list[Word]], parsed: list[list[Word]]) -> list[dict[str, str | int]]:
    """Count arcs that agree.

    Returns:
        one row per relation and one for all heads (`unlabelled`): arcs in the gold trees, arcs in the parser's, arcs in
        both, and precision, recall and F1 to three places.
    """
    rows = []
    for measure in (*RELATIONS, "unlabelled"):
        sides = []
        for trees in (gold, parsed):
            found = set()
            for sentence, words in enumerate(trees):
                spans = [(word.start, word.end) for word in words]
                if measure == "unlabelled":
                    pairs = [(spans[word.head - 1] if word.head else None, span) for word, span in zip(words, spans)]
                else:
                    pairs = [(spans[arc.head], spans[arc.dependent]) for arc in arcs(words, [measure])]
                found.update((sentence, *pair) for pair in pairs)
            sides.append(found)
        expected, predicted, correct = len(sides[0]), len(sides[1]), len(sides[0] & sides[1])
        rows.append(
            {
                "measure": measure,
                "gold": expected,
                "predicted": predicted,
                "correct": correct,
                "precision": f"{correct / predicted:.3f}",
                "recall": f"{correct / expected:.3f}",
                "f1": f"{2 * correct / (expected + predicted):.3f}",
            }
        )
    return rows
