"""Stage split: nothing of a held-out set is in training, sets are stable, and every pair is accounted for."""

import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specialized_heads.corpus import pairs as pair_files
from specialized_heads.corpus import split
from specialized_heads.corpus.near_duplicates import fingerprint
from specialized_heads.corpus.pairs import Pairs, block, read_pairs, write_blocks, write_pairs
from specialized_heads.corpus.split import HELD_OUT, NAMES, SALT, divide, read_index, take
from specialized_heads.experiment.sections import Split
from specialized_heads.stage import UserError, read_json, write_json

SIZES = Split(dev=20, test=30, analysis=40)
Sets = dict[str, list[int]]


@pytest.fixture
def index(tmp_path: Path):
    """`index(pairs, {"dev": pairs})`: the index of a clean file with these pairs, then those of each set of the source."""

    def make(pairs: Pairs, given: dict[str, Pairs] | None = None) -> pd.DataFrame:
        parts = [("", pairs), *(given or {}).items()]
        blocks = [block(part.source, part.target, document=part.document, set_=name) for name, part in parts]
        write_blocks(tmp_path / "clean.parquet", blocks)
        return read_index(tmp_path / "clean.parquet")

    return make


@pytest.fixture
def divided(index):
    """`divided(pairs, sizes, {"dev": pairs})`: the rows of each set, and the counts, which must be complete."""

    def run(pairs: Pairs, sizes: Split = SIZES, given: dict[str, Pairs] | None = None) -> tuple[Sets, dict[str, int]]:
        sets, dropped = divide(index(pairs, given), sizes=sizes)
        rows = [row for part in sets.values() for row in part.tolist()]
        assert len(rows) == len(set(rows))
        assert len(rows) + sum(dropped.values()) == len(pairs) + sum(map(len, (given or {}).values()))
        return {name: part.tolist() for name, part in sets.items()}, dropped

    return run


def messy(documents: int = 150, *, seed: int = 7) -> Pairs:
    """Documents of 1 to 7 pairs whose sentences often recur: as they are, in other case, or in other word order."""
    choice = random.Random(seed)
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


def key(text: str) -> str:
    return " ".join(re.findall(r"[^\W\d_]+", text.casefold())) or text


def bag(text: str) -> tuple[str, ...]:
    return tuple(sorted(key(text).split(" ")))


def plainly_divided(pairs: Pairs, sizes: Split, given: dict[str, Pairs]) -> tuple[Sets, dict[str, int]]:
    """What `divide` shall find, one document after the other; the sets of the source come after `pairs`."""
    whole = Pairs(
        *(
            [*side, *(text for part in given.values() for text in getattr(part, name))]
            for name, side in (("source", pairs.source), ("target", pairs.target), ("document", pairs.document))
        )
    )
    sets: Sets = {}
    start = len(pairs)
    for name, part in given.items():
        sets[name] = list(range(start, start + len(part)))
        start += len(part)
    sources = {bag(whole.source[row]) for rows in sets.values() for row in rows}
    targets = {bag(whole.target[row]) for rows in sets.values() for row in rows if whole.target[row]}
    groups: dict[str, list[int]] = {}
    for row in range(len(pairs)):
        groups.setdefault(pairs.document[row], []).append(row)
    reasons = ("document_overlap", "held_out_overlap", "held_out_duplicate", "train_overlap", "train_near_overlap")
    dropped = dict.fromkeys(reasons, 0)
    for document in {name for part in given.values() for name in part.document} - {""}:
        dropped["document_overlap"] += len(groups.pop(document, []))
    names = sorted(groups, key=lambda name: fingerprint(f"{SALT}\n{name}"))
    for name in HELD_OUT:
        if name in given:
            continue
        sets[name] = []
        own: set[tuple[str, ...]] = set()
        for document in list(names):
            rows = groups[document]
            apart = [r for r in rows if bag(whole.source[r]) not in sources and bag(whole.target[r]) not in targets]
            new = [
                row
                for place, row in enumerate(apart)
                if bag(whole.source[row]) not in own
                and bag(whole.source[row]) not in {bag(whole.source[r]) for r in apart[:place]}
            ]
            if not new or len(sets[name]) + len(new) > getattr(sizes, name):
                continue
            names.remove(document)
            sets[name] += new
            own |= {bag(whole.source[row]) for row in new}
            dropped["held_out_overlap"] += len(rows) - len(apart)
            dropped["held_out_duplicate"] += len(apart) - len(new)
        sources |= own
        targets |= {bag(whole.target[row]) for row in sets[name]}
    held = [row for rows in sets.values() for row in rows]
    source_keys, target_keys = {key(whole.source[r]) for r in held}, {key(whole.target[r]) for r in held} - {""}
    sets["train"] = []
    for row in sorted(row for name in names for row in groups[name]):
        if key(whole.source[row]) in source_keys or key(whole.target[row]) in target_keys:
            dropped["train_overlap"] += 1
        elif bag(whole.source[row]) in sources or bag(whole.target[row]) in targets:
            dropped["train_near_overlap"] += 1
        else:
            sets["train"].append(row)
    return sets, dropped


def taken(pairs: Pairs, rows: Sequence[int]) -> Pairs:
    """The pairs of these rows, in their order."""
    return Pairs(*([column[row] for row in rows] for column in (pairs.source, pairs.target, pairs.document)))


def some(pairs: Pairs, rows: range, *, targets: bool = True) -> Pairs:
    """A set of the source, made of pairs that also occur among the others."""
    part = taken(pairs, rows)
    return part if targets else Pairs(part.source, [""] * len(part), [""] * len(part))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("given", [(), ("test",), ("dev", "test"), ("analysis",), HELD_OUT])
def test_sets_are_those_that_one_document_after_the_other_gives(divided, monkeypatch, seed: int, given) -> None:
    monkeypatch.setattr(pair_files, "READ", 101)  # many blocks
    pairs = messy(seed=seed)
    own = {
        name: some(messy(seed=seed + place), range(9 * place, 9 * place + 25), targets=name != "analysis")
        for place, name in enumerate(given)
    }
    assert divided(pairs, SIZES, own) == plainly_divided(pairs, SIZES, own)


def test_every_reason_occurs(divided) -> None:
    # The corpus of these tests is messy enough that they can fail.
    _, dropped = divided(messy())
    assert dropped.pop("document_overlap") == 0  # the source brings no set
    assert all(dropped.values()), dropped


def test_a_larger_analysis_set_starts_with_the_smaller_one(divided, everyday: Pairs) -> None:
    sets, _ = divided(everyday)
    larger, _ = divided(everyday, Split(dev=20, test=30, analysis=80))
    assert larger["analysis"][:40] == sets["analysis"]


def test_growth_and_order_of_the_corpus_bring_no_old_sentence_into_analysis(divided, everyday: Pairs) -> None:
    half, _ = divided(taken(everyday, range(250)))
    full, _ = divided(everyday)
    assert {row for row in full["analysis"] if row < 250} <= set(half["analysis"])
    backwards = list(range(499, -1, -1))
    turned, _ = divided(taken(everyday, backwards))
    assert [backwards[row] for row in turned["analysis"]] == full["analysis"]


ONE = Pairs(["a"], ["b"], ["c"])
TOO_SMALL = {  # sizes of the sets, sets of the source, what is said
    "corpus": (Split(dev=20, test=80, analysis=400), {}, r"500 clean pairs.*analysis 400 \+ test 80 \+ dev 20 = 500"),
    # A set that the source has needs no room in the rest.
    "rest": (Split(dev=100, test=80, analysis=400), {"test": ONE}, r"500 clean pairs.*analysis 400 \+ dev 100 = 500"),
    "documents": (SIZES, {}, r"split\.analysis: only 0 of 40 pairs .* 5 documents .* with 100 pairs each"),
    "all_overlap": (SIZES, HELD_OUT, r"none of 2000 pairs is left for training .*'train_overlap': 500"),
    "text_itself": (SIZES, ("analysis",), "all sentences of 500 of them are in the other held-out sets"),
    "own_documents": (
        SIZES,
        {"analysis": ...},
        r"0 clean pairs \(500 more belong to documents of your held-out sets\)",
    ),
}


@pytest.mark.parametrize("name", TOO_SMALL)
def test_too_small_a_corpus_says_the_numbers(divided, everyday: Pairs, name: str) -> None:
    sizes, given, said = TOO_SMALL[name]
    if isinstance(given, tuple):  # all of them the text itself, without its documents
        given = dict.fromkeys(given, Pairs(everyday.source, everyday.target, [""] * len(everyday)))
    given = {set_: everyday if part is ... else part for set_, part in given.items()}
    books = [f"book {row // 100}" for row in range(500)]
    pairs = Pairs(everyday.source, everyday.target, books) if name == "documents" else everyday
    with pytest.raises(UserError, match=said):
        divided(pairs, sizes, given)


def test_a_corpus_without_pairs_beside_its_held_out_sets_says_so(divided) -> None:
    with pytest.raises(UserError, match="no clean pair outside its held-out sets"):
        divided(Pairs([], [], []), SIZES, dict.fromkeys(HELD_OUT, ONE))


def test_rows_are_taken_in_the_order_that_is_asked_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(pair_files, "READ", 50)
    texts = [str(row) for row in range(300)]
    write_blocks(tmp_path / "clean.parquet", [block(texts, texts, document=texts)])
    rows = random.Random(1).sample(range(300), 200)
    taken = take(tmp_path / "clean.parquet", np.array(rows))
    assert taken["source"].to_pylist() == taken["document"].to_pylist() == [texts[row] for row in rows]


@pytest.fixture
def split_in(tmp_path: Path, call):
    """`split_in("1", card=..., cleaning=...)`: split clean.parquet into this folder; returns the counts."""

    def run(name: str, *, card: dict, cleaning: dict) -> dict:
        write_json(tmp_path / "raw.json", card)
        write_json(tmp_path / "clean.json", cleaning)
        inputs = {"raw_card": tmp_path / "raw.json", "clean_counts": tmp_path / "clean.json"}
        outputs = {part: tmp_path / name / f"{part}.parquet" for part in NAMES}
        counts = tmp_path / name / "counts.json"
        settings = {"split": SIZES.model_dump()}
        call(split, settings=settings, input=tmp_path / "clean.parquet", **inputs, **outputs, counts=counts)
        return read_json(counts)

    return run


def test_stage_is_deterministic_and_counts_everything(tmp_path: Path, split_in) -> None:
    pairs = messy()
    write_pairs(tmp_path / "clean.parquet", pairs)
    cleaning = {"raw": len(pairs) + 3, "dropped_in_cleaning": {"empty": 3}, "clean": len(pairs)}
    card = {"kind": "local", "read": len(pairs) + 5, "dropped": {"no_tab": 2}, "pairs": len(pairs) + 3}
    counts = split_in("1", card=card, cleaning=cleaning)
    assert split_in("2", card=card, cleaning=cleaning) == counts
    for first in sorted((tmp_path / "1").iterdir()):
        assert first.read_bytes() == (tmp_path / "2" / first.name).read_bytes(), first.name

    in_sets = 0
    for name, numbers in counts["splits"].items():
        part = read_pairs(tmp_path / "1" / f"{name}.parquet")
        assert numbers["pairs"] == len(part)
        assert numbers["groups"] == len(set(part.document))
        for side, texts in (("source", part.source), ("target", part.target)):
            lengths, summary = [len(text.split()) for text in texts], numbers[f"{side}_length"]
            assert numbers[f"{side}_words"] == sum(lengths)
            assert numbers[f"{side}_characters"] == sum(map(len, texts))
            assert summary["mean"] == pytest.approx(sum(lengths) / len(texts), abs=0.001)
            for quantile, share in (("median", 0.5), ("95%", 0.95)):
                assert sum(length <= summary[quantile] for length in lengths) >= share * len(texts)
                assert sum(length < summary[quantile] for length in lengths) < share * len(texts)
        in_sets += len(part)
    assert counts["clean"] == in_sets + sum(counts["dropped_in_splitting"].values())
    assert counts["raw"] == counts["clean"] + sum(counts["dropped_in_cleaning"].values())
    assert counts["read"] == counts["raw"] + sum(counts["dropped_in_reading"].values())


def test_an_analysis_set_without_targets_is_written_and_described(tmp_path: Path, split_in, everyday: Pairs) -> None:
    analysis = block(["One two three.", "Four."], ["", ""], set_="analysis")
    others = block(everyday.source, everyday.target, document=everyday.document)
    write_blocks(tmp_path / "clean.parquet", [others, analysis])
    found = split_in("sets", card={"read": 502, "dropped": {}}, cleaning={})["splits"]
    assert read_pairs(tmp_path / "sets" / "analysis.parquet").source == ["One two three.", "Four."]
    assert (found["analysis"]["source_words"], found["analysis"]["target_words"]) == (4, 0)
    assert [found[name]["pairs"] for name in NAMES[1:]] == [20, 30, 2]
