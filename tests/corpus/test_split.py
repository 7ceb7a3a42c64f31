"""Stage split: nothing of a held-out set is in training, sets are stable, and every pair is accounted for."""

import json
import random
from pathlib import Path

import pytest

from specialized_heads.config import Split
from specialized_heads.corpus.near_duplicates import sentence_key
from specialized_heads.corpus.pairs import Pairs, read_pairs, write_pairs
from specialized_heads.corpus.split import HELD_OUT, divide
from specialized_heads.stage import UserError

SIZES = Split(dev=20, test=30, analysis=40)


def messy(documents: int = 150) -> Pairs:
    """Documents of 1 to 7 pairs whose sentences often recur: as they are, in other case, or in other word order."""
    choice = random.Random(7)
    nouns = [f"n{''.join(choice.choices('abcdefgh', k=4))}" for _ in range(60)]
    pairs = Pairs([], [], [])
    for document in range(documents):
        for _ in range(choice.randint(1, 7)):
            words = choice.sample(nouns, 2)
            # Recurring sentences are few enough to leave new ones, and many enough to test.
            common = choice.random() < 0.3
            words = choice.sample(nouns[:4], 2) if common else words
            source = f"{words[0]} sees {words[1]}."
            pairs.source.append(source.upper() if choice.random() < 0.3 else source)
            pairs.target.append(f"{words[0]} voit {words[1]} {choice.randint(0, 9)} {'x' * choice.randint(1, 30)}")
            pairs.document.append(f"document {document}")
    return pairs


def bag(text: str) -> tuple[str, ...]:
    return tuple(sorted(sentence_key(text).split()))


def test_every_pair_is_in_one_place() -> None:
    pairs = messy()
    sets, dropped = divide(pairs, sizes=SIZES)
    rows = [row for part in sets.values() for row in part]
    assert len(rows) == len(set(rows))
    assert len(rows) + sum(dropped.values()) == len(pairs)
    # The corpus is messy enough that each reason occurs.
    assert all(dropped.values()), dropped


def test_no_held_out_sentence_is_anywhere_else() -> None:
    pairs = messy()
    sets, _ = divide(pairs, sizes=SIZES)
    for side in (pairs.source, pairs.target):
        bags = {name: {bag(side[row]) for row in rows} for name, rows in sets.items()}
        for name in HELD_OUT:
            for other in bags.keys() - {name}:
                assert not bags[name] & bags[other], (name, other)
    for name in HELD_OUT:
        sources = [sentence_key(pairs.source[row]) for row in sets[name]]
        assert len(sources) == len(set(sources))


def test_documents_are_whole() -> None:
    pairs = messy()
    sets, _ = divide(pairs, sizes=SIZES)
    documents = [{pairs.document[row] for row in rows} for rows in sets.values()]
    assert sum(map(len, documents)) == len(set().union(*documents))


def test_held_out_sizes_are_met(everyday: Pairs) -> None:
    sets, dropped = divide(everyday, sizes=SIZES)
    assert {name: len(sets[name]) for name in HELD_OUT} == {"dev": 20, "test": 30, "analysis": 40}
    assert len(sets["train"]) + sum(dropped.values()) == 410


def test_sets_dealt_first_do_not_depend_on_later_ones() -> None:
    pairs = messy()
    sets, _ = divide(pairs, sizes=SIZES)
    smaller, _ = divide(pairs, sizes=Split(dev=5, test=30, analysis=40))
    assert smaller["analysis"] == sets["analysis"]
    assert smaller["test"] == sets["test"]
    other, _ = divide(pairs, sizes=Split(dev=20, test=10, analysis=40))
    assert other["analysis"] == sets["analysis"]


def test_a_larger_analysis_set_starts_with_the_smaller_one(everyday: Pairs) -> None:
    sets, _ = divide(everyday, sizes=SIZES)
    larger, _ = divide(everyday, sizes=Split(dev=20, test=30, analysis=80))
    assert larger["analysis"][:40] == sets["analysis"]


def test_growth_and_order_of_the_corpus_bring_no_old_sentence_into_analysis(everyday: Pairs) -> None:
    half, _ = divide(everyday.take(range(250)), sizes=SIZES)
    full, _ = divide(everyday, sizes=SIZES)
    assert {row for row in full["analysis"] if row < 250} <= set(half["analysis"])
    backwards = list(range(499, -1, -1))
    turned, _ = divide(everyday.take(backwards), sizes=SIZES)
    assert [backwards[row] for row in turned["analysis"]] == full["analysis"]


def test_too_small_a_corpus_says_the_numbers(everyday: Pairs) -> None:
    with pytest.raises(UserError, match=r"500 clean pairs.*analysis 400 \+ test 80 \+ dev 20 = 500"):
        divide(everyday, sizes=Split(dev=20, test=80, analysis=400))


def test_too_large_documents_say_the_numbers(everyday: Pairs) -> None:
    books = Pairs(everyday.source, everyday.target, [f"book {row // 100}" for row in range(500)])
    with pytest.raises(UserError, match=r"split\.analysis: only 0 of 40 pairs .* 5 documents .* 100 pairs each"):
        divide(books, sizes=SIZES)


def test_stage_is_deterministic_and_counts_everything(tmp_path: Path, stage) -> None:
    pairs = messy()
    write_pairs(tmp_path / "clean.parquet", pairs)
    (tmp_path / "clean.json").write_text(
        json.dumps({"raw": len(pairs) + 3, "dropped_in_cleaning": {"empty": 3}, "clean": len(pairs)})
    )
    for run in ("1", "2"):
        done = stage(
            "split",
            settings={"split": {"dev": 20, "test": 30, "analysis": 40}},
            input=tmp_path / "clean.parquet",
            clean_counts=tmp_path / "clean.json",
            **{name: tmp_path / run / f"{name}.parquet" for name in ("train", "dev", "test", "analysis")},
            counts=tmp_path / run / "counts.json",
        )
        assert done.returncode == 0, done.stderr
    for first in sorted((tmp_path / "1").iterdir()):
        assert first.read_bytes() == (tmp_path / "2" / first.name).read_bytes(), first.name

    counts = json.loads((tmp_path / "1" / "counts.json").read_text())
    in_sets = 0
    for name, numbers in counts["splits"].items():
        part = read_pairs(tmp_path / "1" / f"{name}.parquet")
        assert numbers["pairs"] == len(part)
        assert numbers["source_words"] == sum(len(text.split()) for text in part.source)
        assert numbers["target_words"] == sum(len(text.split()) for text in part.target)
        in_sets += len(part)
    assert counts["clean"] == in_sets + sum(counts["dropped_in_splitting"].values())
    assert counts["raw"] == counts["clean"] + sum(counts["dropped_in_cleaning"].values())
