"""Stage split: which documents are held out, and which training pairs must go because they occur there.

A set that the source itself assigns stays whole; sizes do not apply to it. The others are dealt: documents are put in the
order of a hash of their name, which depends neither on a seed nor on the rest of the corpus. The analysis set takes
documents from the front, each whole, until it has its size; a document that does not fit into what is left is passed
over. Then the test set is dealt in the same way from what remains, then the development set; the rest is for training. So
the analysis sentences, whose parses are kept, do not change with the sizes of the other sets.

Sentences that occur twice (`near_duplicates`: equal bags, which includes equal keys) are resolved in favour of the set that
came first: one of the source, then one dealt first. A pair whose source or target occurs in an earlier held-out set is not
dealt to another but dropped, and so is one whose source occurs already in its own set. A training pair whose source or
target occurs in any held-out set is dropped. A pair of an analysis set may have no target, which then equals no other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.corpus.characters import Block
from specialized_heads.corpus.near_duplicates import bag_fingerprints, fingerprint, fingerprints, sentence_keys
from specialized_heads.corpus.pairs import COLUMNS, SCHEMA, in_schema, number_of_pairs, read_blocks, write_blocks
from specialized_heads.sections import Split
from specialized_heads.stage import Section, UserError, arguments, log, progress, read_json, run, write_json

HELD_OUT = ("analysis", "test", "dev")  # in the order of dealing
NAMES = ("train", "dev", "test", "analysis")
# Part of every result: another salt holds out other documents, and the embedded parses no longer cover them.
SALT = "specialized heads"
# Whole documents seldom fill a set to the last pair.
LEAST_FILLED = 0.9
WRITTEN = pa.schema([SCHEMA.field(name) for name in COLUMNS])


class Settings(Section):
    """What affects the result: the sizes, as in the configuration."""

    split: Split


@dataclass(frozen=True)
class Index:
    """What is remembered of every pair, in arrays of shape (pairs,), 42 bytes per pair.

    `place`: uint64, the salted hash of its document, by which documents are ordered and told apart. `given`: int8, the
    position in `HELD_OUT` of the set that the source assigns it to, or -1. `source_keys`, `source_bags`, `target_keys`,
    `target_bags`: uint64, fingerprints. `has_target`: bool.
    """

    place: np.ndarray
    given: np.ndarray
    source_keys: np.ndarray
    source_bags: np.ndarray
    target_keys: np.ndarray
    target_bags: np.ndarray
    has_target: np.ndarray

    @classmethod
    def of(cls, pairs: int) -> "Index":
        """Room for a number of pairs."""
        prints = (np.zeros(pairs, np.uint64) for _ in range(4))
        return cls(np.zeros(pairs, np.uint64), np.zeros(pairs, np.int8), *prints, np.zeros(pairs, bool))

    def __len__(self) -> int:
        return len(self.place)


def read_index(path: Path) -> Index:
    """The index of a clean file of pairs.

    Raises:
        UserError: no file of pairs, or an empty one.
    """
    index, start = Index.of(number_of_pairs(path)), 0
    for batch in progress(read_blocks(path), what="index", unit="block"):
        block = in_schema(batch)
        here = slice(start, start + block.num_rows)
        documents = block["document"].dictionary_encode()
        places = [fingerprint(f"{SALT}\n{name}") for name in documents.dictionary.to_pylist()]
        index.place[here] = np.array(places, np.uint64)[documents.indices.to_numpy()]
        index.given[here] = pc.fill_null(pc.index_in(block["set"], pa.array(HELD_OUT)), -1).to_numpy()
        source, target = (sentence_keys(Block.of(block[side])) for side in ("source", "target"))
        index.source_keys[here], index.source_bags[here] = fingerprints(source), bag_fingerprints(source)
        index.target_keys[here], index.target_bags[here] = fingerprints(target), bag_fingerprints(target)
        index.has_target[here] = pc.not_equal(block["target"], "").to_numpy(zero_copy_only=False)
        start += block.num_rows
    return index


def ordered(index: Index, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put rows into the order of dealing.

    Returns:
        the rows, documents in the order of their salted hash and each in file order, int64; and where each document starts
        among them, and the last one ends, int64 of shape (documents + 1,).
    """
    places = index.place[rows]
    order = np.argsort(places, kind="stable")
    places = places[order]
    inner = np.flatnonzero(places[1:] != places[:-1]) + 1
    return rows[order], np.concatenate([[0], inner, [len(rows)]])


def divide(index: Index, *, sizes: Split) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Keep the sets of the source, deal documents to the other sets, and drop what occurs in more than one.

    Args:
        index: of the clean pairs.
        sizes: pairs per dealt set; exact, or short by less than the smallest document that is left, and by at most 10%.

    Returns:
        the rows of each set, int64 (dealt sets in the order of dealing, other sets in file order), and the number of pairs
        dropped for each reason. Together they are as many as there are pairs.

    Raises:
        UserError: the corpus is too small for the sizes, or its documents are too large.
    """
    sets = {name: np.flatnonzero(index.given == number) for number, name in enumerate(HELD_OUT)}
    to_deal = [name for name in HELD_OUT if not len(sets[name])]
    given, free = np.flatnonzero(index.given >= 0), np.flatnonzero(index.given < 0)
    # A document of a given set is not divided either; pairs of none have the empty name.
    named = index.place[given][index.place[given] != fingerprint(f"{SALT}\n")]
    divided = np.isin(index.place[free], named)
    rows, bounds = ordered(index, free[~divided])
    wanted = sum(getattr(sizes, name) for name in to_deal)
    if len(rows) <= wanted:
        asked = " + ".join(f"{name} {getattr(sizes, name)}" for name in to_deal)
        gone = f" ({divided.sum()} more are of documents of the sets that you give)" if divided.any() else ""
        raise UserError(
            f"the corpus has {len(rows)} clean pairs{gone}, too few for split: {asked} = {wanted} and a training set; "
            "make the held-out sets smaller, relax `filters` or use more text"
            if to_deal
            else f"the corpus has no clean pair outside of its held-out sets{gone}; relax `filters` or use more text"
        )

    reasons = ("document_overlap", "held_out_overlap", "held_out_duplicate", "train_overlap", "train_near_overlap")
    dropped = dict.fromkeys(reasons, 0) | {"document_overlap": int(divided.sum())}
    other_sources = set(index.source_bags[given].tolist())
    other_targets = set(index.target_bags[given[index.has_target[given]]].tolist())
    dealt = np.zeros(len(bounds) - 1, bool)
    for name in to_deal:
        size = getattr(sizes, name)
        chosen: list[int] = []
        own_sources: set[int] = set()
        left = np.flatnonzero(~dealt)
        shared = 0  # of the documents left, those without a sentence of their own
        for document in left:
            if len(chosen) == size:
                break
            group = rows[bounds[document] : bounds[document + 1]]
            bags = zip(group.tolist(), index.source_bags[group].tolist(), index.target_bags[group].tolist())
            apart = [
                (row, source)
                for row, source, target in bags
                if not (source in other_sources or target in other_targets)
            ]
            first: dict[int, int] = {}
            for row, source in apart:
                if source not in own_sources:
                    first.setdefault(source, row)
            shared += not apart
            if not first or len(first) > size - len(chosen):
                continue
            dealt[document] = True
            chosen.extend(first.values())
            own_sources.update(first)
            dropped["held_out_overlap"] += len(group) - len(apart)
            dropped["held_out_duplicate"] += len(apart) - len(first)
        if len(chosen) < LEAST_FILLED * size:
            advice = "make the set smaller, use more text, or give smaller documents (group_by: sentence)"
            if 2 * shared > len(left):
                advice = f"{shared} of them have only sentences of the other held-out sets: are these files of the same text?"
            raise UserError(
                f"split.{name}: only {len(chosen)} of {size} pairs could be held out in whole documents: {len(left)} documents "
                f"were left, {len(rows) / len(dealt):.0f} pairs each on average; {advice}"
            )
        sets[name] = np.array(chosen)
        other_sources |= own_sources
        other_targets.update(index.target_bags[chosen].tolist())

    rest = np.sort(rows[np.repeat(~dealt, np.diff(bounds))])
    held = np.concatenate([sets[name] for name in HELD_OUT])
    with_target = held[index.has_target[held]]
    same = occurs(index.source_keys, rest, held) | occurs(index.target_keys, rest, with_target)
    near = occurs(index.source_bags, rest, held) | occurs(index.target_bags, rest, with_target)
    dropped["train_overlap"] = int(same.sum())
    dropped["train_near_overlap"] = int((near & ~same).sum())
    sets["train"] = rest[~(same | near)]
    if not len(sets["train"]):
        raise UserError(f"no training pair is left of {len(index)} ({dropped}); make the held-out sets smaller")
    return sets, dropped


def occurs(prints: np.ndarray, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether the fingerprint of each of `rows` is that of one of `others`, bool of shape (len(rows),)."""
    known = np.unique(prints[others])
    if not len(known):
        return np.zeros(len(rows), bool)
    wanted = prints[rows]
    return known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)] == wanted


def select(path: Path, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
    """The blocks of a file with nothing but some of its rows, given in ascending order."""
    start = 0
    for block in read_blocks(path, columns=COLUMNS):
        here = rows[slice(*np.searchsorted(rows, [start, start + block.num_rows]))]
        if len(here):
            yield in_schema(block.take(pa.array(here - start)), schema=WRITTEN)
        start += block.num_rows


def take(path: Path, rows: np.ndarray) -> pa.RecordBatch:
    """Some rows of a file in the order in which they are given, all in memory."""
    order = np.argsort(rows)
    places = np.empty_like(order)
    places[order] = np.arange(len(rows))
    return (
        pa.Table.from_batches(select(path, rows[order]), WRITTEN)
        .combine_chunks()
        .take(pa.array(places))
        .to_batches()[0]
    )


def describe(path: Path) -> dict[str, int | dict[str, float]]:
    """The size of a file of pairs: pairs, documents, and of each side words, characters and the lengths in words."""
    documents, counts = [np.zeros(0, np.uint64)], {side: ([], []) for side in ("source", "target")}
    for block in read_blocks(path):
        documents.append(np.unique(fingerprints(block["document"])))
        for side, (of_words, of_characters) in counts.items():
            texts = Block.of(block[side])
            of_words.append(texts.words.astype(np.int32))
            of_characters.append(int(texts.characters.sum()))
    found: dict[str, int | dict[str, float]] = {"pairs": 0, "groups": len(np.unique(np.concatenate(documents)))}
    for side, (of_words, of_characters) in counts.items():
        lengths = np.concatenate(of_words)
        found["pairs"] = len(lengths)
        found[f"{side}_words"] = int(lengths.sum())
        found[f"{side}_characters"] = sum(of_characters)
        median, most = np.quantile(lengths, [0.5, 0.95], method="inverted_cdf").tolist()
        found[f"{side}_length"] = {"mean": round(float(lengths.mean()), 3), "median": median, "95%": most}
    return found


def main() -> None:
    """Read `--input` with its `--raw-card` and `--clean-counts`; write `--train`, `--dev`, `--test`, `--analysis`, `--counts`."""
    files = arguments(__doc__, files=["input", "raw-card", "clean-counts", *NAMES, "counts"])
    settings = Settings.model_validate(files.settings)
    card, cleaning = read_json(files.raw_card), read_json(files.clean_counts)
    sets, dropped = divide(read_index(files.input), sizes=settings.split)
    write_blocks(files.train, select(files.input, sets["train"]), schema=WRITTEN)
    held, start = take(files.input, np.concatenate([sets[name] for name in HELD_OUT])), 0
    for name in HELD_OUT:
        write_blocks(getattr(files, name), [held.slice(start, len(sets[name]))], schema=WRITTEN)
        start += len(sets[name])
    splits = {name: describe(getattr(files, name)) for name in NAMES}
    counts = {"read": card["read"], "dropped_in_reading": card["dropped"]} | cleaning
    write_json(files.counts, counts | {"dropped_in_splitting": dropped, "splits": splits})
    log.info("split: %s; dropped %s", {name: splits[name]["pairs"] for name in NAMES}, dropped)


if __name__ == "__main__":
    run(main)
