"""Real sentences with real trees and a real BPE, for tests of the analysis of heads.

Sentences are those of the LibreOffice corpus in which no piece belongs to two words, no word has
two subjects and the last word is no end of an arc, so that a head can be right on every arc, or on
none.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import sentencepiece

from specialized_heads.corpus.tokens import learn
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.syntactic import Sentence, align
from specialized_heads.parsing.parse import embedded_parses, read_trees
from specialized_heads.parsing.words import Word

RESOURCE = Path(__file__).parents[2] / "resources" / "libreoffice_en_ru"
NUMBER, VOCABULARY = 150, 500


@dataclass
class Corpus:
    sources: list[str]
    trees: list[list[Word]]
    bpe: sentencepiece.SentencePieceProcessor
    source_ids: list[list[int]]
    target_ids: list[list[int]]
    sentences: dict[int, Sentence]

    def count(self, relation: str) -> int:
        """Arcs of a relation."""
        return sum(
            arc.relation == relation
            for sentence in self.sentences.values()
            for arc in sentence.arcs
        )


def libreoffice() -> Corpus:
    """The first `NUMBER` sentences that fit."""
    rows = pq.read_table(RESOURCE / "corpus.parquet").to_pylist()
    targets = {row["source"]: row["target"] for row in rows}
    known = [tree.text for tree in read_trees(RESOURCE / "parses.conllu.gz")[:600]]
    trees, _ = embedded_parses(known, resource=RESOURCE / "parses.conllu.gz")
    bpe, target_bpe = (
        sentencepiece.SentencePieceProcessor(model_proto=learn(texts, size=VOCABULARY, name=name))
        for texts, name in ((known, "source"), ([targets[text] for text in known], "target"))
    )
    sentences, _ = align(dict(enumerate(trees)), known, bpe, Heads().relations)

    def fits(sentence: Sentence) -> bool:
        pieces = Counter(piece for word in sentence.words for piece in word)
        subjects = Counter(arc.head for arc in sentence.arcs if arc.relation == "nsubj")
        ends = {word for arc in sentence.arcs for word in (arc.head, arc.dependent)}
        last = len(sentence.words) - 1  # where words look that are no end of an arc
        return (
            max([*pieces.values(), *subjects.values()]) == 1
            and 6 <= len(pieces) <= 40
            and last not in ends
        )

    chosen = [number for number, sentence in sentences.items() if fits(sentence)][:NUMBER]
    assert len(chosen) == NUMBER
    sources = [known[number] for number in chosen]
    return Corpus(
        sources,
        [trees[number] for number in chosen],
        bpe,
        bpe.encode(sources),
        target_bpe.encode([targets[source] for source in sources]),
        {place: sentences[number] for place, number in enumerate(chosen)},
    )
