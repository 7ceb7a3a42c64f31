"""Heads constructed to do one thing, on real sentences with real trees, get exactly their labels
and scores.

The stage runs unchanged on a model of random weights; when the model is loaded, its attention
modules are replaced so that each head looks where its rule says.
"""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from parsed_corpus import NUMBER, VOCABULARY, Corpus

from specialized_heads.heads import analyse
from specialized_heads.model.architecture import KINDS, Architecture
from specialized_heads.model.checkpoint import load_on, save
from specialized_heads.model.transformer import Transformer, initialise

RESTING = 0.6  # attention of encoder and cross heads on EOS

Rows = dict[str, list[dict]]
# from a sentence and a query to the keys that share the rest
Look = Callable[[int, int], list[int]]


@pytest.fixture
def constructed(
    corpus: Corpus, files: dict[str, Path], analysed, monkeypatch
) -> Callable[..., tuple[Rows, dict]]:
    """`constructed(encoder=[look, ...], decoder=[...], cross=[...])`: rows of the table by type,
    and the report."""

    def run(**looks: list[Look]) -> tuple[Rows, dict]:
        heads = {kind: (tuple(range(len(looks.get(kind, [])))), ()) for kind in KINDS}
        sizes = {
            "source_vocabulary": VOCABULARY,
            "target_vocabulary": VOCABULARY,
            "width": 16,
            "feed_forward": 8,
        }
        architecture = Architecture(**sizes, head_width=4, **heads)
        model = Transformer(architecture, dropout=0.0)
        initialise(model, seed=1)
        save(model, files["model"], training={})

        def by_rule(path: Path, device: str) -> Transformer:
            return attend_by_rule(load_on(path, device), corpus, looks)

        monkeypatch.setattr(analyse, "load_on", by_rule)
        rows, report = analysed()
        return {kind: [row for row in rows if row["type"] == kind] for kind in KINDS}, report

    return run


def attend_by_rule(model: Transformer, corpus: Corpus, looks: dict[str, list[Look]]) -> Transformer:
    """The model with heads that look where their rules say, whatever the input."""
    numbers = {tuple(ids): number for number, ids in enumerate(corpus.source_ids)}
    assert len(numbers) == NUMBER
    batch: list[int] = []
    forward = model.forward

    def remember(
        source: torch.Tensor, target: torch.Tensor, activations: dict | None = None
    ) -> torch.Tensor:
        batch[:] = [numbers[tuple(row[row > 3].tolist())] for row in source]
        return forward(source, target, activations)

    def attend_with(attention: torch.nn.Module, kind: str) -> Callable[..., torch.Tensor]:
        def attend(query, key, value, attn_mask, activations=None):
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
            context = weights @ value
            activations[kind, attention.layer, "weights"] = weights
            activations[kind, attention.layer, "context"] = context
            return context

        return attend

    model.forward = remember
    for kind in KINDS:
        for attention in model.attentions(kind):
            attention.attend = attend_with(attention, kind)
    return model


def follow(corpus: Corpus, relation: str, *, to_head: bool) -> Look:
    """Each word of the relation looks at all pieces of the word at the other end, every other word
    at the last piece."""

    def look(number: int, piece: int) -> list[int]:
        words = corpus.sentences[number].words
        for arc in corpus.sentences[number].arcs:
            looking, target = (arc.dependent, arc.head) if to_head else (arc.head, arc.dependent)
            if arc.relation == relation and piece in words[looking]:
                return words[target]
        return words[-1]

    return look


def test_encoder_heads(constructed, corpus: Corpus) -> None:
    counts = Counter(token for ids in corpus.source_ids for token in ids)
    by_frequency = sorted(range(VOCABULARY), key=lambda token: (-counts[token], token))
    rank = {token: place for place, token in enumerate(by_frequency)}

    def rarest(number: int, piece: int) -> list[int]:
        places = [rank[token] for token in corpus.source_ids[number]]
        return [places.index(max(places))]

    rows, report = constructed(
        encoder=[
            lambda number, piece: [max(piece - 1, 0)],
            lambda number, piece: [min(piece + 1, len(corpus.source_ids[number]) - 1)],
            follow(corpus, "nsubj", to_head=True),
            follow(corpus, "nsubj", to_head=False),
            rarest,
            lambda number, piece: list(range(len(corpus.source_ids[number]))),
            # previous token: 60%
            lambda number, piece: [max(piece - 1, 0) if (number + piece) % 5 < 3 else piece],
            # positions -1 and -2, by sentence
            lambda number, piece: [max(piece - 1 - number % 2, 0)],
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
        ([], [], []),
        ([], [], []),
    ]
    previous, following, to_verb, to_subject, rare, uniform, loose, alternating = heads
    lengths = np.array([len(ids) for ids in corpus.source_ids])
    raw = 1 - NUMBER / lengths.sum()  # the first token of a sentence has no previous one
    for head, offset in ((previous, -1), (following, 1)):
        assert (head["positional_offset"], head["positional_share"]) == (offset, 1.0)
        assert head["positional_share_raw"] == pytest.approx(raw)
        assert head[f"share_{offset:+d}"] == 1.0
    # the first tokens of sentences attend to themselves
    assert previous["share_+0"] == pytest.approx(1 - raw)
    assert loose["share_-1"] == loose["positional_share"]
    expected = (-1, pytest.approx(0.6, abs=0.02))
    assert (loose["positional_offset"], loose["positional_share"]) == expected

    subjects = corpus.count("nsubj")
    for head, name in (
        (to_verb, "nsubj_dependent_to_head"),
        (to_subject, "nsubj_head_to_dependent"),
    ):
        assert head["nsubj_arcs"] == report["arcs"]["nsubj"] == subjects > 50
        assert head[name] == head[f"{name}_high"] == 1.0
        # Wilson
        assert head[f"{name}_low"] == pytest.approx(subjects / (subjects + 1.96**2), abs=1e-4)
        assert head[f"{name}_margin"] == 1.0 - head[f"{name}_baseline"] > 0.1
        assert 0 < head[f"{name}_margin_low"] < head[f"{name}_margin"] < head[f"{name}_margin_high"]
    assert to_verb["nsubj_head_to_dependent"] == to_subject["nsubj_dependent_to_head"] == 0.0

    assert rare["rarest"] == rare["two_rarest"] == 1.0
    rests = RESTING * math.log(1 / RESTING)
    for head in (previous, rare):
        assert head["confidence"] == pytest.approx(1 - RESTING)
        entropy = rests + (1 - RESTING) * math.log(1 / (1 - RESTING))
        assert head["entropy"] == pytest.approx(entropy, rel=1e-5)
    assert uniform["confidence"] == pytest.approx(NUMBER * (1 - RESTING) / lengths.sum(), rel=1e-5)
    spread = (lengths * np.log(lengths / (1 - RESTING))).sum() / lengths.sum()
    assert uniform["entropy"] == pytest.approx(rests + (1 - RESTING) * spread, rel=1e-5)
    for head in heads:
        assert head["eos_weight"] == pytest.approx(RESTING)


def test_with_few_arcs_nothing_is_certain(constructed, corpus, monkeypatch) -> None:
    subjects = corpus.count("nsubj")
    for least, certain in ((subjects, ["nsubj_dependent_to_head"]), (subjects + 1, [])):
        monkeypatch.setattr(analyse, "LEAST_ARCS", least)
        rows, report = constructed(encoder=[follow(corpus, "nsubj", to_head=True)])
        assert rows["encoder"][0]["relations"] == ["nsubj_dependent_to_head"]
        assert rows["encoder"][0]["relations_certain"] == certain
        assert ("nsubj" in report["fewer_than_least_arcs"]) == (not certain)


def test_decoder_heads(constructed, corpus: Corpus) -> None:
    rows, _ = constructed(
        decoder=[
            lambda number, t: [max(t - 1, 0)],
            lambda number, t: [t],
            lambda number, t: list(range(t + 1)),
            lambda number, t: [0],  # parked on begin-of-sentence
        ]
    )
    heads = rows["decoder"]
    assert [row["functions"] for row in heads] == [["positional"], ["positional"], [], []]
    expected = [(-1, 1.0), (0, 1.0)]
    assert [(row["positional_offset"], row["positional_share"]) for row in heads[:2]] == expected
    assert heads[0]["entropy"] == heads[0]["confidence"] - 1.0 == 0.0
    absent = ("eos_weight", "nsubj_arcs", "rarest", "relations")
    assert {row[name] for row in heads for name in absent} == {None}
    # The uniform head: position t has t + 1 keys; begin-of-sentence, which has one, is no query.
    sizes = np.concatenate([np.arange(2, len(ids) + 2) for ids in corpus.target_ids])
    assert heads[2]["entropy"] == pytest.approx(np.log(sizes).mean(), rel=1e-5)
    assert heads[2]["confidence"] == pytest.approx((1 / sizes).mean(), rel=1e-5)
    for head in heads[:2]:
        assert head["positional_chance"] == pytest.approx((1 / sizes).mean(), rel=1e-5)


def test_cross_heads(constructed, corpus: Corpus) -> None:
    def place(number: int, t: int) -> int:
        """The source token in which the middle of the t-th target token lies; the end of the
        sentence for EOS."""
        source, target = len(corpus.source_ids[number]), len(corpus.target_ids[number])
        return min(int((t + 0.5) * source / target), source - 1)

    def shifted(number: int, t: int) -> list[int]:
        return [min(place(number, t) + 2, len(corpus.source_ids[number]) - 1)]

    rows, _ = constructed(
        cross=[
            lambda number, t: [place(number, t)],
            shifted,
            lambda number, t: [len(corpus.source_ids[number]) - 1 - place(number, t)],
            lambda number, t: [0],
        ]
    )
    heads = rows["cross"]
    expected = [(["diagonal"], 0), ([], 2)]
    assert [(row["functions"], row["positional_offset"]) for row in heads[:2]] == expected
    assert heads[0]["positional_share"] == 1.0
    steps = [(number, t) for number in range(NUMBER) for t in range(len(corpus.target_ids[number]))]
    pairs = [(place(number, t), len(corpus.source_ids[number])) for number, t in steps]
    beside = np.mean([source - 1 - at >= 1 for at, source in pairs])  # but at ends of sentences
    assert heads[1]["positional_share"] == pytest.approx(beside) and beside > 0.9
    assert [row["functions"] for row in heads[2:]] == [[], []]
    near = [sum(abs(key - at) <= 1 for key in range(source)) / source for at, source in pairs]
    assert heads[0]["positional_chance"] == pytest.approx(np.mean(near))
    assert {row["positional_share_raw"] for row in heads} == {None}
    assert heads[0]["eos_weight"] == pytest.approx(RESTING)


def test_a_margin_that_may_be_chance_is_not_certain(constructed, corpus, monkeypatch) -> None:
    intervals = analyse.bootstrap_intervals

    def wide(*args, **how):
        found = intervals(*args, **how)
        return found | {"_margin_low": 0 * found["_margin_low"]}

    monkeypatch.setattr(analyse, "bootstrap_intervals", wide)
    [row] = constructed(encoder=[follow(corpus, "nsubj", to_head=True)])[0]["encoder"]
    assert (row["relations"], row["relations_certain"]) == (["nsubj_dependent_to_head"], [])


def test_words_are_as_rare_as_in_the_training_set(constructed, corpus, token_file) -> None:
    rows = [list(range(size)) for size in range(1, VOCABULARY + 1)]  # the higher an id, the rarer
    token_file("train", rows, rows)

    def rarest(number: int, piece: int) -> list[int]:
        ids = corpus.source_ids[number]
        return [ids.index(max(ids))]

    [head] = constructed(encoder=[rarest])[0]["encoder"]
    assert (head["functions"], head["rarest"]) == (["rare words"], 1.0)
