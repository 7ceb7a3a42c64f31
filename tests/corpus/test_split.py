"""Stage split: nothing of a held-out set is in training, sets are stable, and every pair is
accounted for."""

import random
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from parallel_text import Pairs, read_pairs, write_pairs

from specialized_heads.corpus import pairs as pair_files
from specialized_heads.corpus import split
from specialized_heads.corpus.pairs import COLUMNS, blocks, write_blocks
from specialized_heads.corpus.split import HELD_OUT, NAMES, divide, read_index
from specialized_heads.experiment.sections import Split
from specialized_heads.stage import UserError, read_json, write_json

SIZES = Split(dev=20, test=30, analysis=40)
Sets = dict[str, list[int]]


@pytest.fixture
def divided(tmp_path: Path):
    """`divided(pairs, sizes, {"dev": pairs})`: the rows of each set, and the counts, which must be
    complete.

    The rows are those of a file with these pairs, then those of each set of the source.
    """

    def run(
        pairs: Pairs, sizes: Split = SIZES, given: dict[str, Pairs] | None = None
    ) -> tuple[Sets, dict[str, int]]:
        parts = [("", pairs), *(given or {}).items()]
        found = [
            blocks(zip(part.source, part.target, part.document), set_=name) for name, part in parts
        ]
        total = write_blocks(tmp_path / "clean.parquet", chain.from_iterable(found))
        sets, dropped = divide(read_index(tmp_path / "clean.parquet"), sizes=sizes)
        rows = [row for part in sets.values() for row in part.tolist()]
        assert len(rows) == len(set(rows))
        assert len(rows) + sum(dropped.values()) == total
        return {name: part.tolist() for name, part in sets.items()}, dropped

    return run


def messy(documents: int = 150, *, seed: int = 7) -> Pairs:
    """Documents of 1 to 7 pairs whose sentences often recur: as they are, in other case, or in
    other word order."""
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
            pairs.target.append(
                f"{words[0]} voit {words[1]} {choice.randint(0, 9)} {'x' * choice.randint(1, 30)}"
            )
            pairs.document.append(f"document {document}")
    return pairs


def key(text: str) -> str:
    return " ".join(re.findall(r"[^\W\d_]+", text.casefold())) or text


def bags(texts: Sequence[str], rows: Iterable[int]) -> set[tuple[str, ...]]:
    return {tuple(sorted(key(texts[row]).split(" "))) for row in rows if texts[row]}


def taken(pairs: Pairs, rows: Sequence[int]) -> Pairs:
    """The pairs of these rows, in their order."""
    return Pairs(*([getattr(pairs, name)[row] for row in rows] for name in COLUMNS))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("given", [(), ("test",), ("dev", "test"), ("analysis",), HELD_OUT])
def test_held_out_sentences_are_nowhere_else_and_nothing_more_is_dropped(
    divided, monkeypatch, seed, given
) -> None:
    monkeypatch.setattr(pair_files, "READ", 101)  # many blocks
    pairs = messy(seed=seed)
    # Sets of the source, made of pairs that also occur among the others.
    own = {
        name: taken(messy(seed=seed + place), range(9 * place, 9 * place + 25))
        for place, name in enumerate(given)
    }
    if "analysis" in own:
        own["analysis"] = replace(own["analysis"], target=[""] * 25)
    parts = (pairs, *own.values())
    sources, targets = (
        [text for part in parts for text in getattr(part, side)] for side in ("source", "target")
    )
    sets, counts = divided(pairs, SIZES, own)

    held = [row for name in HELD_OUT for row in sets[name]]
    for name in set(HELD_OUT) - set(given):
        others = set(held) - set(sets[name])
        assert 0.9 * getattr(SIZES, name) <= len(sets[name]) <= getattr(SIZES, name)
        assert len(bags(sources, sets[name]) - bags(sources, others)) == len(sets[name])
        assert not bags(targets, sets[name]) & bags(targets, others)
    assert not bags(sources, sets["train"]) & bags(sources, held)
    assert not bags(targets, sets["train"]) & bags(targets, held)
    of_sets = {document for part in own.values() for document in part.document}
    home = {}  # documents are not divided
    for name, rows in sets.items():
        for row in filter(range(len(pairs)).__contains__, rows):
            assert pairs.document[row] not in of_sets
            assert home.setdefault(pairs.document[row], name) == name

    def reason(row: int) -> str:
        if pairs.document[row] in of_sets:
            return "document_overlap"
        assert bags(sources, [row]) <= bags(sources, held) or bags(targets, [row]) <= bags(
            targets, held
        )
        if home.get(pairs.document[row], "train") != "train":
            return "held_out"
        same = any(
            key(side[row]) in {key(side[one]) for one in held} for side in (sources, targets)
        )
        return "train_overlap" if same else "train_near_overlap"

    dropped = set(range(len(pairs))).difference(*sets.values())
    counts["held_out"] = counts.pop("held_out_overlap") + counts.pop("held_out_duplicate")
    assert Counter(counts) == Counter(map(reason, dropped))


def test_sets_of_the_source_with_the_same_text_are_a_warning(divided, caplog) -> None:
    same, other = (taken(messy(seed=seed), range(25)) for seed in (1, 2))
    divided(messy(), given={"dev": same, "test": same})
    assert "100% of the sentences of your test or dev set are in the other one too" in caplog.text
    caplog.clear()
    divided(messy(), given={"dev": same, "test": other})
    assert "in the other one too" not in caplog.text


def test_dropping_many_pairs_for_the_sets_of_the_source_is_a_warning(divided, caplog) -> None:
    pairs, other = messy(), taken(messy(seed=1), range(25))
    unnamed = replace(other, document=[""] * 25)
    divided(pairs, given={"test": unnamed})
    assert "documents" not in caplog.text
    divided(pairs, given={"test": replace(other, document=sorted(set(pairs.document))[:25])})
    assert "belong to documents of your held-out sets" in caplog.text
    caplog.clear()
    divided(pairs, given={"test": replace(taken(pairs, range(60)), document=[""] * 60)})
    assert "are not used for training" in caplog.text


def test_every_reason_occurs(divided) -> None:
    # The corpus of these tests is messy enough that they can fail.
    _, dropped = divided(messy())
    assert dropped.pop("document_overlap") == 0  # the source brings no set
    assert all(dropped.values()), dropped


def test_a_larger_analysis_set_starts_with_the_smaller_one(divided, everyday: Pairs) -> None:
    sets, _ = divided(everyday)
    larger, _ = divided(everyday, Split(dev=20, test=30, analysis=80))
    assert larger["analysis"][:40] == sets["analysis"]


def test_growth_and_order_of_the_corpus_bring_no_old_sentence_into_analysis(
    divided, everyday: Pairs
) -> None:
    half, _ = divided(taken(everyday, range(250)))
    full, _ = divided(everyday)
    assert {row for row in full["analysis"] if row < 250} <= set(half["analysis"])
    backwards = list(range(499, -1, -1))
    turned, _ = divided(taken(everyday, backwards))
    assert [backwards[row] for row in turned["analysis"]] == full["analysis"]


TOO_SMALL = {  # sizes of the sets, sets of the source, what is said
    "corpus": (Split(dev=20, test=80, analysis=400), {}, r"500 .*400 \+ test 80 \+ dev 20 = 500"),
    "documents": (SIZES, {}, r"split\.analysis: only 0 of 40 .* 5 groups .* with 100 pairs each"),
    "one_group": (SIZES, {}, r"only 0 of 40 pairs .*; 500 of 500 pairs are one group"),
    "all_overlap": (SIZES, HELD_OUT, r"none of 2000 pairs is left .*'train_overlap': 500"),
    "text_itself": (SIZES, ("analysis",), "all sentences of 500 of them are in the other"),
    "own_documents": (SIZES, {"analysis": ...}, r"0 clean pairs \(500 more belong to documents"),
}


@pytest.mark.parametrize("name", TOO_SMALL)
def test_too_small_a_corpus_says_the_numbers(divided, everyday: Pairs, name: str) -> None:
    sizes, given, said = TOO_SMALL[name]
    if isinstance(given, tuple):  # all of them the text itself, without its documents
        given = dict.fromkeys(given, Pairs(everyday.source, everyday.target, [""] * len(everyday)))
    given = {set_: everyday if part is ... else part for set_, part in given.items()}
    documents = {
        "documents": [f"book {row // 100}" for row in range(500)],
        "one_group": ["one"] * 500,
    }
    pairs = Pairs(everyday.source, everyday.target, documents.get(name, everyday.document))
    with pytest.raises(UserError, match=said):
        divided(pairs, sizes, given)


def test_a_corpus_without_pairs_beside_its_held_out_sets_says_so(divided) -> None:
    with pytest.raises(UserError, match="no clean pair outside its held-out sets"):
        divided(Pairs([], [], []), SIZES, dict.fromkeys(HELD_OUT, Pairs(["a"], ["b"], ["c"])))


@pytest.fixture
def split_in(tmp_path: Path, call):
    """`split_in("1", card=..., cleaning=...)`: split clean.parquet into this folder; returns the
    counts."""

    def run(name: str, *, card: dict, cleaning: dict) -> dict:
        write_json(tmp_path / "raw.json", card)
        write_json(tmp_path / "clean.json", cleaning)
        inputs = {"raw_card": tmp_path / "raw.json", "clean_counts": tmp_path / "clean.json"}
        outputs = {part: tmp_path / name / f"{part}.parquet" for part in NAMES}
        counts = tmp_path / name / "counts.json"
        settings = {"split": SIZES.model_dump()}
        call(
            split,
            settings=settings,
            input=tmp_path / "clean.parquet",
            **inputs,
            **outputs,
            counts=counts,
        )
        return read_json(counts)

    return run


def test_stage_is_deterministic_and_counts_everything(tmp_path, split_in, monkeypatch) -> None:
    monkeypatch.setattr(pair_files, "READ", 50)
    pairs = messy()
    write_pairs(tmp_path / "clean.parquet", pairs)
    cleaning = {"raw": len(pairs) + 3, "dropped_in_cleaning": {"empty": 3}, "clean": len(pairs)}
    card = {
        "kind": "local",
        "read": len(pairs) + 5,
        "dropped": {"no_tab": 2},
        "pairs": len(pairs) + 3,
    }
    counts = split_in("1", card=card, cleaning=cleaning)
    assert split_in("2", card=card, cleaning=cleaning) == counts
    for first in sorted((tmp_path / "1").iterdir()):
        assert first.read_bytes() == (tmp_path / "2" / first.name).read_bytes(), first.name

    sets, _ = divide(read_index(tmp_path / "clean.parquet"), sizes=SIZES)
    for name, numbers in counts["splits"].items():
        part = read_pairs(tmp_path / "1" / f"{name}.parquet")
        assert part == taken(pairs, sets[name])  # in this order
        assert (numbers["pairs"], numbers["groups"]) == (len(part), len(set(part.document)))
        for side, texts in (("source", part.source), ("target", part.target)):
            lengths = sorted(len(text.split()) for text in texts)
            assert numbers[f"{side}_words"] == sum(lengths)
            assert numbers[f"{side}_characters"] == sum(map(len, texts))
            mean = pytest.approx(statistics.mean(lengths), abs=0.001)
            most = lengths[-(len(lengths) // 20) - 1]
            expected = {"mean": mean, "median": statistics.median_low(lengths), "95%": most}
            assert numbers[f"{side}_length"] == expected
    in_sets = sum(numbers["pairs"] for numbers in counts["splits"].values())
    assert counts["clean"] == in_sets + sum(counts["dropped_in_splitting"].values())
    assert counts["raw"] == counts["clean"] + sum(counts["dropped_in_cleaning"].values())
    assert counts["read"] == counts["raw"] + sum(counts["dropped_in_reading"].values())


def test_an_analysis_set_without_targets_is_written_and_described(
    tmp_path: Path, split_in, everyday: Pairs
) -> None:
    analysis = blocks([("One two three.", "", ""), ("Four.", "", "")], set_="analysis")
    others = blocks(zip(everyday.source, everyday.target, everyday.document))
    write_blocks(tmp_path / "clean.parquet", chain(others, analysis))
    found = split_in("sets", card={"read": 502, "dropped": {}}, cleaning={})["splits"]
    assert read_pairs(tmp_path / "sets" / "analysis.parquet").source == ["One two three.", "Four."]
    assert (found["analysis"]["source_words"], found["analysis"]["target_words"]) == (4, 0)
    assert [found[name]["pairs"] for name in NAMES[1:]] == [20, 30, 2]
