"""Heads that are made to do one thing, on real sentences with real trees and a real BPE, get exactly their labels and scores.

The stage runs as it is, on a model file of random weights; only the attention modules are replaced when it is loaded: each head
looks where its rule says. Sentences are those of the LibreOffice corpus in which no piece belongs to two words, no word has two
subjects and the last word is the full stop, so that a head can be right on every arc, and on none.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import sentencepiece
import torch

from specialized_heads.corpus.bpe import learn
from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.heads import analyse
from specialized_heads.heads.trees import Sentence, align
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import KINDS, Architecture, Transformer, initialise
from specialized_heads.parsing.embedded import embedded_parses
from specialized_heads.parsing.words import write_parses
from specialized_heads.sections import Heads

RESOURCE = Path(__file__).parents[2] / "resources" / "libreoffice_en_ru"
NUMBER = 150
HEADS = Heads(rare_cutoff=40, bootstrap=50)
RESTING = 0.6  # attention that encoder and cross heads leave on EOS

Look = Callable[[int, int], list[int]]  # from a sentence and a query to the keys that share the rest


@dataclass
class Corpus:
    sources: list[str]
    trees: list
    bpe: sentencepiece.SentencePieceProcessor
    source_ids: list[list[int]]
    target_ids: list[list[int]]
    sentences: dict[int, Sentence]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rows = pq.read_table(RESOURCE / "corpus.parquet").to_pylist()
    targets = {row["source"]: row["target"] for row in rows}
    known = pq.read_table(RESOURCE / "parses.parquet", columns=["source"])["source"].to_pylist()[:600]
    trees, _ = embedded_parses(known, resource=RESOURCE / "parses.parquet")
    bpe, target_bpe = (
        sentencepiece.SentencePieceProcessor(model_proto=learn(texts, size=size, name=name))
        for texts, size, name in ((known, 500, "source"), ([targets[text] for text in known], 500, "target"))
    )
    sentences, _ = align(dict(enumerate(trees)), known, bpe, HEADS.relations)

    def fits(sentence: Sentence) -> bool:
        pieces = Counter(piece for word in sentence.words for piece in word)
        subjects = Counter(arc.head for arc in sentence.arcs if arc.relation == "nsubj")
        ends = {word for arc in sentence.arcs for word in (arc.head, arc.dependent)}
        last = len(sentence.words) - 1  # where words look that are no end of an arc
        return max([*pieces.values(), *subjects.values()]) == 1 and 6 <= len(pieces) <= 40 and last not in ends

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


@pytest.fixture
def analysed(
    corpus: Corpus,
    tmp_path: Path,
    token_file: Callable[..., Path],
    call: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[dict[str, list[dict]], dict]]:
    """`analysed(encoder=[look, ...], decoder=[...], cross=[...])`: rows of the table by type, and the report."""

    def run(heads: Heads = HEADS, **looks: list[Look]) -> tuple[dict[str, list[dict]], dict]:
        architecture = Architecture(
            source_vocabulary=500,
            target_vocabulary=500,
            width=16,
            feed_forward=8,
            head_width=4,
            **{kind: (tuple(range(len(looks.get(kind, [])))), ()) for kind in KINDS},
        )
        model = Transformer(architecture, dropout=0.0)
        initialise(model, seed=1)
        save(model, tmp_path / "model.safetensors", training={})
        monkeypatch.setattr(analyse, "load", lambda path, device: constructed(load(path, device=device), corpus, looks))
        keys = [(kind, 1, number + 1) for kind in KINDS for number in range(len(looks.get(kind, [])))]
        relevances = {
            "type": [key[0] for key in keys],
            "layer": [key[1] for key in keys],
            "head": [key[2] for key in keys],
            "epsilon": [0.5] * len(keys),
            "z+": [0.25] * len(keys),
        }
        pq.write_table(analyse.pa.table(relevances), tmp_path / "relevance.parquet")
        write_pairs(tmp_path / "text.parquet", Pairs(corpus.sources, ["–"] * NUMBER, ["1"] * NUMBER))
        write_parses(tmp_path / "parses.parquet", corpus.trees)
        (tmp_path / "bpe.model").write_bytes(corpus.bpe.serialized_model_proto())
        outputs = {name: tmp_path / name for name in ("output", "examples", "report")}
        call(
            analyse,
            settings={"heads": heads.model_dump(), "preprocess": "none", "language": "en", "seed": 1, "device": "cpu"},
            model=tmp_path / "model.safetensors",
            bpe=tmp_path / "bpe.model",
            text=tmp_path / "text.parquet",
            analysis=token_file("analysis", corpus.source_ids, corpus.target_ids),
            train=token_file("train", corpus.source_ids, corpus.target_ids),
            parses=tmp_path / "parses.parquet",
            relevance=tmp_path / "relevance.parquet",
            **outputs,
        )
        rows = pq.read_table(outputs["output"]).to_pylist()
        return {kind: [row for row in rows if row["type"] == kind] for kind in KINDS}, analyse.stage.read_json(
            outputs["report"]
        )

    return run


def constructed(model: Transformer, corpus: Corpus, looks: dict[str, list[Look]]) -> Transformer:
    """The model with heads that look where they are told, whatever their inputs are."""
    numbers = {tuple(ids): number for number, ids in enumerate(corpus.source_ids)}
    assert len(numbers) == NUMBER
    batch: list[int] = []
    forward = model.forward

    def remember(source: torch.Tensor, target: torch.Tensor, tape: dict | None = None) -> torch.Tensor:
        batch[:] = [numbers[tuple(row[row > 3].tolist())] for row in source]
        return forward(source, target, tape)

    def attend_with(attention: torch.nn.Module, kind: str) -> Callable[..., torch.Tensor]:
        def attend(query, key, value, bias, tape=None):
            weights = torch.zeros(*query.shape[:3], key.shape[2])
            for row, number in enumerate(batch):
                sources, targets = len(corpus.source_ids[number]), len(corpus.target_ids[number])
                queries = sources if kind == "encoder" else targets + 1
                rest = 0.0 if kind == "decoder" else RESTING
                for head, look in enumerate(looks[kind]):
                    for t in range(queries):
                        keys = look(number, t)
                        weights[row, head, t, keys] = (1.0 - rest) / len(keys)
                        if rest:
                            weights[row, head, t, sources] = rest
            tape[kind, attention.layer, "weights"] = weights
            return weights @ value

        return attend

    model.forward = remember
    for kind in KINDS:
        for attention in model.attentions(kind):
            attention.attend = attend_with(attention, kind)
    return model


def follow(corpus: Corpus, relation: str, *, to_head: bool) -> Look:
    """Each word of the relation looks at all pieces of the word at the other end, every other word at the last piece."""

    def look(number: int, piece: int) -> list[int]:
        words = corpus.sentences[number].words
        for arc in corpus.sentences[number].arcs:
            looking, target = (arc.dependent, arc.head) if to_head else (arc.head, arc.dependent)
            if arc.relation == relation and piece in words[looking]:
                return words[target]
        return words[-1]

    return look


def ranks(corpus: Corpus) -> dict[int, int]:
    """Places of the tokens by falling frequency, equally frequent ones by id."""
    counts = Counter(token for ids in corpus.source_ids for token in ids)
    return {token: place for place, token in enumerate(sorted(range(500), key=lambda token: (-counts[token], token)))}


def test_encoder_heads(analysed: Callable, corpus: Corpus) -> None:
    rank = ranks(corpus)

    def rarest(number: int, piece: int) -> list[int]:
        places = [rank[token] for token in corpus.source_ids[number]]
        return [places.index(max(places))]

    rows, report = analysed(
        encoder=[
            lambda number, piece: [max(piece - 1, 0)],
            lambda number, piece: [min(piece + 1, len(corpus.source_ids[number]) - 1)],
            follow(corpus, "nsubj", to_head=True),
            follow(corpus, "nsubj", to_head=False),
            rarest,
            lambda number, piece: list(range(len(corpus.source_ids[number]))),
        ]
    )
    heads = rows["encoder"]
    assert [(row["functions"], row["relations"], row["relations_certain"]) for row in heads] == [
        (["positional"], [], []),
        (["positional"], [], []),
        (["syntactic"], ["nsubj_dependent_to_head"], ["nsubj_dependent_to_head"]),
        (["syntactic"], ["nsubj_head_to_dependent"], ["nsubj_head_to_dependent"]),
        (["rare words"], [], []),
        ([], [], []),
    ]
    previous, following, to_verb, to_subject, rare, uniform = heads
    lengths = np.array([len(ids) for ids in corpus.source_ids])
    share = 1 - NUMBER / lengths.sum()  # the first token of a sentence has none before it
    assert share > 0.9
    for head, offset in ((previous, -1), (following, 1)):
        assert head["positional_offset"] == offset
        assert head["positional_share"] == pytest.approx(share)
        assert head["positional_ceiling"] == pytest.approx(share)
    assert report["previous_token_ceiling"]["encoder"] == pytest.approx(share)

    subjects = sum(arc.relation == "nsubj" for s in corpus.sentences.values() for arc in s.arcs)
    for head, name in ((to_verb, "nsubj_dependent_to_head"), (to_subject, "nsubj_head_to_dependent")):
        assert head["nsubj_arcs"] == report["arcs"]["nsubj"] == subjects > 50
        assert head[name] == head[f"{name}_high"] == 1.0
        assert head[f"{name}_low"] == pytest.approx(subjects / (subjects + 1.96**2), abs=1e-4)  # Wilson
        assert head[f"{name}_margin"] == 1.0 - head[f"{name}_baseline"] > 0.1
        assert 0 < head[f"{name}_margin_low"] < head[f"{name}_margin"] < head[f"{name}_margin_high"]
    assert to_verb["nsubj_head_to_dependent"] == to_subject["nsubj_dependent_to_head"] == 0.0

    assert rare["rarest"] == rare["two_rarest"] == 1.0
    rests = RESTING * math.log(1 / RESTING)
    for head in (previous, rare):
        assert head["confidence"] == pytest.approx(1 - RESTING)
        assert head["entropy"] == pytest.approx(rests + (1 - RESTING) * math.log(1 / (1 - RESTING)), rel=1e-5)
    assert uniform["confidence"] == pytest.approx(NUMBER * (1 - RESTING) / lengths.sum(), rel=1e-5)
    spread = (lengths * np.log(lengths / (1 - RESTING))).sum() / lengths.sum()
    assert uniform["entropy"] == pytest.approx(rests + (1 - RESTING) * spread, rel=1e-5)
    for head in heads:
        assert head["eos_weight"] == pytest.approx(RESTING)
        assert (head["relevance"], head["relevance_z+"]) == (0.5, 0.25)


def test_with_few_arcs_nothing_is_certain(analysed: Callable, corpus: Corpus) -> None:
    subjects = sum(arc.relation == "nsubj" for s in corpus.sentences.values() for arc in s.arcs)
    for least, certain in ((subjects, ["nsubj_dependent_to_head"]), (subjects + 1, [])):
        heads = HEADS.model_copy(update={"least_arcs": least})
        rows, report = analysed(heads, encoder=[follow(corpus, "nsubj", to_head=True)])
        assert rows["encoder"][0]["relations"] == ["nsubj_dependent_to_head"]
        assert rows["encoder"][0]["relations_certain"] == certain
        assert ("nsubj" in report["fewer_than_least_arcs"]) == (not certain)


def test_the_accuracy_of_a_head_by_hand(analysed: Callable, corpus: Corpus) -> None:
    """Every word looks at the word after it: its accuracy on each relation is how often the word stands there."""

    def next_word(number: int, piece: int) -> list[int]:
        words = corpus.sentences[number].words
        own = next((place for place, pieces in enumerate(words) if piece in pieces), 0)
        return words[min(own + 1, len(words) - 1)]

    (head,) = analysed(encoder=[next_word])[0]["encoder"]
    for relation in HEADS.relations:
        arcs = [arc for sentence in corpus.sentences.values() for arc in sentence.arcs if arc.relation == relation]
        expected = {
            "head_to_dependent": [arc.dependent == arc.head + 1 for arc in arcs],
            "dependent_to_head": [arc.head == arc.dependent + 1 for arc in arcs],
        }
        for direction, right in expected.items():
            assert head[f"{relation}_{direction}"] == pytest.approx(np.mean(right))


def test_the_piece_that_speaks_for_a_word_is_as_configured(analysed: Callable, corpus: Corpus) -> None:
    whole = follow(corpus, "nsubj", to_head=True)

    def all_but_the_first(number: int, piece: int) -> list[int]:
        words = corpus.sentences[number].words
        return words[-1] if piece in [pieces[0] for pieces in words] else whole(number, piece)

    accuracy = {}
    for from_word in ("mean", "first"):
        heads = HEADS.model_copy(update={"from_word": from_word})
        accuracy[from_word] = analysed(heads, encoder=[all_but_the_first])[0]["encoder"][0]["nsubj_dependent_to_head"]
    # Of a word of two pieces half the mean goes to the verb, of a longer one most, and of a single piece nothing.
    subjects = [
        len(sentence.words[arc.dependent])
        for sentence in corpus.sentences.values()
        for arc in sentence.arcs
        if arc.relation == "nsubj"
    ]
    assert np.mean([size > 2 for size in subjects]) <= accuracy["mean"] <= np.mean([size > 1 for size in subjects])
    assert accuracy["mean"] > 0
    assert accuracy["first"] == 0.0


def test_decoder_heads(analysed: Callable, corpus: Corpus) -> None:
    rows, _ = analysed(
        decoder=[
            lambda number, t: [max(t - 1, 0)],
            lambda number, t: [t],
            lambda number, t: list(range(t + 1)),
            lambda number, t: [0],  # parked on begin-of-sentence
        ]
    )
    heads = rows["decoder"]
    assert [row["functions"] for row in heads] == [["positional"], ["positional"], [], []]
    assert [(row["positional_offset"], row["positional_share"]) for row in heads[:2]] == [(-1, 1.0), (0, 1.0)]
    assert heads[0]["positional_ceiling"] == 1.0
    assert heads[0]["entropy"] == heads[0]["confidence"] - 1.0 == 0.0
    assert {row[name] for row in heads for name in ("eos_weight", "nsubj_arcs", "rarest", "relations")} == {None}
    # The uniform head: position t has t + 1 keys; begin-of-sentence, which has one, does not ask.
    sizes = np.concatenate([np.arange(2, len(ids) + 2) for ids in corpus.target_ids])
    assert heads[2]["entropy"] == pytest.approx(np.log(sizes).mean(), rel=1e-5)
    assert heads[2]["confidence"] == pytest.approx((1 / sizes).mean(), rel=1e-5)
    for head in heads[:2]:
        assert head["positional_chance"] == pytest.approx((1 / sizes).mean(), rel=1e-5)


def test_cross_heads(analysed: Callable, corpus: Corpus) -> None:
    def place(number: int, t: int) -> int:
        """The source token in which the middle of the t-th target token lies; the end of the sentence for EOS."""
        source, target = len(corpus.source_ids[number]), len(corpus.target_ids[number])
        return min(int((t + 0.5) * source / target), source - 1)

    def shifted(number: int, t: int) -> list[int]:
        return [min(place(number, t) + 2, len(corpus.source_ids[number]) - 1)]

    rows, _ = analysed(
        cross=[
            lambda number, t: [place(number, t)],
            shifted,
            lambda number, t: [len(corpus.source_ids[number]) - 1 - place(number, t)],
            lambda number, t: [0],
        ]
    )
    heads = rows["cross"]
    assert [(row["functions"], row["positional_offset"]) for row in heads[:2]] == [(["diagonal"], 0), ([], 2)]
    assert heads[0]["positional_share"] == 1.0
    pairs = [
        (place(number, t), len(corpus.source_ids[number]))
        for number in range(NUMBER)
        for t in range(len(corpus.target_ids[number]))
    ]
    assert heads[1]["positional_share"] == pytest.approx(np.mean([source - 1 - at >= 1 for at, source in pairs]))
    assert heads[1]["positional_share"] > 0.9  # always two beside the diagonal, but for the ends of sentences
    assert [row["functions"] for row in heads[2:]] == [[], []]
    near = [sum(abs(key - at) <= 1 for key in range(source)) / source for at, source in pairs]
    assert heads[0]["positional_chance"] == pytest.approx(np.mean(near))
    assert {row["positional_ceiling"] for row in heads} == {None}
    assert heads[0]["eos_weight"] == pytest.approx(RESTING)
