"""Heads constructed to have one function each get that label and no other; the stage, from a hand-made model to its files."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import sentencepiece
import torch

from specialized_heads.config import Heads
from specialized_heads.corpus.bpe import learn
from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.corpus.preprocess import apply
from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads import analyse, maps
from specialized_heads.heads.analyse import Settings, align, encoder_columns, measure
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.parsing.relations import relation_table
from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.stage import UserError
from specialized_heads.training.batching import in_order, make_batch

NOUNS = ["farmer", "teacher", "sister", "gardener", "captain", "merchant", "soldier", "painter", "doctor", "tailor"]
VERBS = ["watches", "follows", "praises", "carries", "forgets"]
ADVERBS = ["often", "slowly", "gladly", "hardly", "really"]
ADJECTIVES = ["little", "famous", "hungry", "silent", "clever"]
HEADS = Heads(rare_cutoff=30, bootstrap=50)


def tree(random: np.random.Generator) -> tuple[str, list[Word]]:
    """A sentence "adjectives subject adverbs verb adjectives object ." and its tree; the distances vary."""
    adjectives, adverbs, more = random.integers(0, 4, 3)
    subject, verb = adjectives, adjectives + 1 + adverbs
    thing = verb + 1 + more
    forms = [
        *random.choice(ADJECTIVES, adjectives),
        random.choice(NOUNS),
        *random.choice(ADVERBS, adverbs),
        random.choice(VERBS),
        *random.choice(ADJECTIVES, more),
        random.choice(NOUNS),
        ".",
    ]
    arcs = {subject: (verb, "nsubj"), verb: (-1, "root"), thing: (verb, "obj"), thing + 1: (verb, "punct")}
    arcs |= dict.fromkeys(range(subject), (subject, "amod"))
    arcs |= dict.fromkeys(range(subject + 1, verb), (verb, "advmod"))
    arcs |= dict.fromkeys(range(verb + 1, thing), (thing, "amod"))
    words, start = [], 0
    for number, form in enumerate(forms):
        head, relation = arcs[number]
        words.append(Word(str(form), start, start + len(form), int(head) + 1, relation, "X"))
        start += len(form) + 1
    return " ".join(forms), words


@dataclass
class Corpus:
    texts: list[str]
    trees: list[list[Word]]
    bpe: sentencepiece.SentencePieceProcessor
    store: TokenStore


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    random = np.random.default_rng(1)
    texts, trees = map(list, zip(*(tree(random) for _ in range(150)), strict=True))
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn(texts, size=80, name="source"))
    ids = [bpe.encode(text) for text in texts]
    offsets = np.cumsum([0, *map(len, ids)])
    targets = np.full(150, 5, dtype=np.int32)
    return Corpus(texts, trees, bpe, TokenStore(np.array(sum(ids, [])), offsets, targets, np.arange(151)))


Look = Callable[[int, int], list[int]]  # from a sentence and a piece to the pieces that share the attention


def measured(
    monkeypatch: pytest.MonkeyPatch,
    tiny_model: Callable[..., Transformer],
    corpus: Corpus,
    looks: list[Look],
    heads: Heads = HEADS,
) -> list[dict]:
    """Columns of heads that look where they are told, with six tenths of their attention parked on EOS."""

    def attention_maps(model: Transformer, store: TokenStore) -> Iterator[maps.Maps]:
        for numbers in in_order(store, tokens=400):
            source = make_batch(store, numbers).source
            lengths = torch.from_numpy(store.source_lengths[numbers])
            real = torch.arange(source.shape[1]) < lengths[:, None]
            weights = torch.zeros(len(numbers), len(looks), source.shape[1], source.shape[1])
            for row, number in enumerate(numbers.tolist()):
                weights[row, :, :, lengths[row]] = 0.6
                for head, look in enumerate(looks):
                    for piece in range(int(lengths[row])):
                        keys = look(number, piece)
                        weights[row, head, piece, keys] = 0.4 / len(keys)
            none = torch.zeros(len(numbers), 0, source.shape[1], source.shape[1])
            yield maps.Maps(
                numbers, source, {"encoder": weights, "decoder": none, "cross": none}, *[dict.fromkeys(KINDS, real)] * 2
            )

    monkeypatch.setattr(maps, "attention_maps", attention_maps)
    sentences, aligned = align(dict(enumerate(corpus.trees)), corpus.texts, corpus.bpe, heads.relations)
    assert len(sentences) == len(corpus.texts)
    table = relation_table(aligned.values(), heads.relations).to_pylist()
    baselines = {f"{row['relation']}_{row['direction']}": row["baseline_accuracy"] for row in table}
    ranks = maps.frequency_ranks(corpus.store, vocabulary=80)
    found = measure(tiny_model(vocabulary=80), corpus.store, sentences, ranks, heads)
    return encoder_columns(
        found, baselines, Settings(heads=heads, preprocess="none", language="en", seed=1, device="cpu")
    )


def follow(corpus: Corpus, relation: str, *, to_head: bool) -> Look:
    """Each word of the relation looks at all pieces of the word at the other end, every other word at the full stop."""
    sentences, _ = align(dict(enumerate(corpus.trees)), corpus.texts, corpus.bpe, [relation])

    def look(number: int, piece: int) -> list[int]:
        pieces = sentences[number].words
        for arc in sentences[number].arcs:
            looking, target = (arc.dependent, arc.head) if to_head else (arc.head, arc.dependent)
            if piece in pieces[looking]:
                return pieces[target]
        return pieces[-1]

    return look


def test_constructed_heads_get_exactly_their_labels(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[..., Transformer], corpus: Corpus
) -> None:
    ranks = maps.frequency_ranks(corpus.store, vocabulary=80).numpy()
    sentences, _ = align(dict(enumerate(corpus.trees)), corpus.texts, corpus.bpe, HEADS.relations)

    def rarest(number: int, piece: int) -> list[int]:
        return [int(np.argmax(ranks[corpus.store.source_ids(number)]))]

    columns = measured(
        monkeypatch,
        tiny_model,
        corpus,
        [
            lambda number, piece: [max(piece - 1, 0)],
            lambda number, piece: [piece],
            follow(corpus, "nsubj", to_head=True),
            follow(corpus, "nsubj", to_head=False),
            follow(corpus, "obj", to_head=False),
            rarest,
            lambda number, piece: [pieces[0] for pieces in sentences[number].words],  # all words alike
        ],
    )
    assert [(column["functions"], column["relations"]) for column in columns] == [
        (["positional"], []),
        (["positional"], []),
        (["syntactic"], ["nsubj_dependent_to_head"]),
        (["syntactic"], ["nsubj_head_to_dependent"]),
        (["syntactic"], ["obj_head_to_dependent"]),
        (["rare words"], []),
        ([], []),
    ]
    assert [column["positional_offset"] for column in columns[:2]] == [-1, 0]
    assert columns[2]["nsubj_dependent_to_head"] == columns[2]["nsubj_dependent_to_head_low"] == 1.0
    assert columns[2]["nsubj_head_to_dependent"] == 0.0
    assert columns[5]["rarest"] == columns[5]["two_rarest"] == 1.0
    pieces = corpus.store.source_lengths
    assert columns[0]["positional_share"] == pytest.approx(1 - 150 / pieces.sum())  # all but the first of a sentence


def test_the_piece_that_speaks_for_a_word_is_as_configured(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[..., Transformer], corpus: Corpus
) -> None:
    sentences, _ = align(dict(enumerate(corpus.trees)), corpus.texts, corpus.bpe, ["nsubj"])
    whole = follow(corpus, "nsubj", to_head=True)

    def all_but_the_first(number: int, piece: int) -> list[int]:
        words = sentences[number].words
        return words[-1] if piece in [pieces[0] for pieces in words] else whole(number, piece)

    accuracy = {}
    for from_word in ("mean", "first"):
        heads = HEADS.model_copy(update={"from_word": from_word})
        columns = measured(monkeypatch, tiny_model, corpus, [all_but_the_first], heads)
        accuracy[from_word] = columns[0]["nsubj_dependent_to_head"]
    assert accuracy["mean"] > 0.5
    assert accuracy["first"] == 0.0


def test_sentences_with_a_word_without_pieces_are_left_out(corpus: Corpus) -> None:
    trees = dict(enumerate(corpus.trees[:3]))
    trees[1] = [*trees[1], Word("ghost", 990, 995, 1, "dep", "X")]
    sentences, aligned = align(trees, corpus.texts, corpus.bpe, ["nsubj"])
    assert sentences.keys() == aligned.keys() == {0, 2}
    assert [arc.relation for arc in sentences[0].arcs] == ["nsubj"]
    pieces = [corpus.bpe.id_to_piece(int(i)) for i in corpus.store.source_ids(0)]
    words = ["".join(pieces[p] for p in word).strip("▁") for word in sentences[0].words]
    assert words == [word.form for word in trees[0]]


def test_words_meet_the_pieces_of_preprocessed_text() -> None:
    """Words are those of the raw sentence; a sentence that is another one after preprocessing is left out."""
    texts = ["Ms. Bell's dogs don't bark.", "Dogs bark.", "DOTMULTI dogs bark."]
    forms = [["Ms.", "Bell", "'s", "dogs", "do", "n't", "bark", "."], ["Dogs", "bark", "."], ["dogs", "bark", "."]]
    trees = {}
    for number, words in enumerate(forms):
        after, trees[number] = 0, []
        for form in words:
            start = texts[number].index(form, after)
            after = start + len(form)
            trees[number].append(Word(form, start, after, 0, "root", "X"))
    processed = apply(texts, language="en", mode="paper")
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn(processed, size=40, name="source"))
    sentences, aligned = align(trees, texts, bpe, ["nsubj"], processed=processed)
    assert set(sentences) == set(aligned) == {0, 1}
    assert aligned[0] == trees[0]
    pieces = bpe.encode(processed[0], out_type=str)
    words = ["".join(pieces[p] for p in word).replace("▁", " ").strip() for word in sentences[0].words]
    # Moses cuts "don't" as "don 't": its first piece or pieces belong to both words that it overlaps.
    assert words[:4] + words[6:] == ["ms.", "bell", "'s", "dogs", "bark", "."]
    assert words[4].startswith("do") and words[5].endswith("'t")
    assert sum(map(len, sentences[0].words)) >= len(set(sum(sentences[0].words, [])))


@pytest.fixture
def files(corpus: Corpus, tmp_path: Path, token_file: Callable[..., Path]) -> dict[str, Path]:
    """What the stage reads and writes; the tree of sentence 7 is missing."""
    write_pairs(tmp_path / "analysis.parquet", Pairs(corpus.texts, ["–"] * 150, ["1"] * 150))
    write_parses(tmp_path / "parses.parquet", [[] if n == 7 else words for n, words in enumerate(corpus.trees)])
    (tmp_path / "bpe.model").write_bytes(corpus.bpe.serialized_model_proto())
    sources = [corpus.store.source_ids(number).tolist() for number in range(150)]
    return {
        "model": tmp_path / "model.safetensors",
        "bpe": tmp_path / "bpe.model",
        "text": tmp_path / "analysis.parquet",
        "analysis": token_file("analysis", sources, [[5, 6]] * 150),
        "train": token_file("train", sources, [[5]] * 150),
        "dev": token_file("dev", [[5, 9, 4], [8]], [[4, 12], [7]]),
        "parses": tmp_path / "parses.parquet",
        "output": tmp_path / "heads.parquet",
        "examples": tmp_path / "examples.json",
        "report": tmp_path / "report.json",
    }


SETTINGS = {"heads": HEADS.model_dump(), "preprocess": "none", "language": "en", "seed": 1, "device": "cpu"}


@pytest.fixture
def previous_token_model(tiny_model: Callable[..., Transformer]) -> Transformer:
    """Encoder head (1, 1) looks at the previous token, head (1, 2) at all alike.

    The source is nothing but its positions; a query turned back by one position is most like the key before it.
    """
    width = 64
    model = tiny_model(vocabulary=80, layers=1, width=width)
    model.source_embedding.data.zero_()
    layer = model.encoder[0]
    layer.attention_norm.weight.data.fill_(1.0)
    layer.attention_norm.bias.data.zero_()
    query, key = (parameter.data.zero_() for parameter in (layer.attention.query, layer.attention.key))
    half = width // 2
    for i in range(half // 2):  # the faster half of the waves fill head 1
        angle = 10000 ** (-i / (half - 1))
        query[i, i], query[i, half + i] = math.cos(angle), -math.sin(angle)  # sin(t - 1)
        query[half // 2 + i, i], query[half // 2 + i, half + i] = math.sin(angle), math.cos(angle)  # cos(t - 1)
        key[i, i] = key[half // 2 + i, half + i] = 1.0
    query *= 30.0
    return model


def test_stage(
    call: Callable[..., None], files: dict[str, Path], previous_token_model: Transformer, corpus: Corpus
) -> None:
    save(previous_token_model, files["model"], training={})
    call(analyse, settings=SETTINGS, **files)
    rows = pq.read_table(files["output"]).to_pylist()
    assert [(row["type"], row["layer"], row["head"]) for row in rows] == [(k, 1, h) for k in KINDS for h in (1, 2)]
    previous, uniform = rows[:2]
    assert (previous["functions"], previous["relations"], previous["positional_offset"]) == (["positional"], [], -1)
    lengths = corpus.store.source_lengths
    assert 0.9 < previous["positional_share"] <= 1 - 150 / lengths.sum()  # the first of a sentence has none before it
    assert previous["confidence"] > 0.8
    assert uniform["positional_share"] < 0.5
    assert uniform["confidence"] == pytest.approx(np.sum(lengths / (lengths + 1)) / lengths.sum(), rel=1e-4)
    for row in rows[2:]:
        assert 0 < row["confidence"] <= 1
        assert {row[name] for name in ("positional_offset", "rarest", "nsubj_head_to_dependent")} == {None}
        assert row["functions"] is None
    for kind in KINDS:
        assert 0 < sum(abs(row["relevance"]) for row in rows if row["type"] == kind) <= 1 + 1e-6

    report = json.loads(files["report"].read_text())
    assert (report["sentences"], report["parsed"], report["aligned"]) == (150, 149, 149)
    assert report["relevance_steps"] == 5
    examples = json.loads(files["examples"].read_text())
    best = max(rows[:2], key=lambda row: row["rarest"])
    assert (examples["layer"], examples["head"], examples["score"]) == (best["layer"], best["head"], best["rarest"])
    for sentence in examples["sentences"]:
        assert sentence["tokens"][-1] == "</s>"
        assert "".join(sentence["tokens"][:-1]).replace("▁", " ").strip() in corpus.texts
        assert np.array(sentence["attention"]).shape == (len(sentence["tokens"]),) * 2
        assert np.sum(sentence["attention"], axis=1) == pytest.approx(1.0, abs=1e-4)
        assert sentence["rarest"] < len(sentence["tokens"]) - 1


def test_stage_on_preprocessed_text(
    call: Callable[..., None],
    files: dict[str, Path],
    previous_token_model: Transformer,
    corpus: Corpus,
) -> None:
    """Raw text in capitals is, for a model of lower-case text, the text of the other test: so are its heads."""
    save(previous_token_model, files["model"], training={})
    call(analyse, settings=SETTINGS, **files)
    expected = files["output"].read_bytes()
    write_pairs(files["text"], Pairs([text.upper() for text in corpus.texts], ["–"] * 150, ["1"] * 150))
    call(analyse, settings=SETTINGS | {"preprocess": "paper"}, **files)
    assert files["output"].read_bytes() == expected
    assert json.loads(files["report"].read_text())["aligned"] == 149


def test_stage_repeats(call: Callable[..., None], files: dict[str, Path], previous_token_model: Transformer) -> None:
    save(previous_token_model, files["model"], training={})
    contents = []
    for _ in range(2):
        call(analyse, settings=SETTINGS, **files)
        contents.append([files[name].read_bytes() for name in ("output", "examples", "report")])
    assert contents[0] == contents[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_heads_of_one_type(
    call: Callable[..., None], files: dict[str, Path], tiny_model: Callable[..., Transformer], kind: str
) -> None:
    model = tiny_model(vocabulary=80)
    model.keep_heads({kind: [[], []]} | ({"encoder": [[1], []]} if kind != "encoder" else {}))
    save(model, files["model"], training={})
    call(analyse, settings=SETTINGS, **files)
    rows = pq.read_table(files["output"]).to_pylist()
    expected = {"encoder": 1, "decoder": 4, "cross": 4} | ({"encoder": 0} if kind == "encoder" else {kind: 0})
    assert {k: sum(row["type"] == k for row in rows) for k in KINDS} == expected
    assert all(math.isfinite(row["relevance"]) and math.isfinite(row["confidence"]) for row in rows)
    if kind != "encoder":
        assert (rows[0]["layer"], rows[0]["head"]) == (1, 2)
    else:
        assert json.loads(files["examples"].read_text())["sentences"] == []


def test_parses_of_another_text_are_a_mistake(
    call: Callable[..., None], files: dict[str, Path], tiny_model: Callable[..., Transformer]
) -> None:
    save(tiny_model(vocabulary=80), files["model"], training={})
    write_parses(files["parses"], [[Word("far", 990, 995, 0, "root", "X")]])
    with pytest.raises(UserError, match="no parsed sentence could be aligned"):
        call(analyse, settings=SETTINGS, **files)
