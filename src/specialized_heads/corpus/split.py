"""Stage split: which documents are held out, and which training pairs are dropped because they occur there.

A set that the source assigns stays as it is, whatever the sizes. The others are dealt: documents are sorted by a hash of their
name, which depends neither on a seed nor on the rest of the corpus (`fingerprint`; it must never change). The analysis set takes
whole documents from the front until it is full, skipping those that no longer fit. Then the test set is dealt in the same way
from the rest, then the development set; what remains is for training. So the analysis sentences, whose parses are kept in the
repository, do not change with the sizes of the other sets.

A sentence that occurs twice (`near_duplicates`: equal bags, which includes equal keys) belongs to the first set that has it: one
assigned by the source, then one dealt earlier. A pair whose source or target occurs in an earlier held-out set, or whose source
occurs already in its own set, is dropped. A training pair whose source or target occurs in any held-out set is dropped. A pair
of an analysis set may have no target, which then equals no other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.config.sections import Split
from specialized_heads.corpus.characters import Block
from specialized_heads.corpus.near_duplicates import bag_fingerprints, fingerprint, fingerprints, sentence_keys
from specialized_heads.corpus.pairs import COLUMNS, SCHEMA, in_schema, number_of_pairs, read_blocks, write_blocks
from specialized_heads.stage import Section, UserError, arguments, log, progress, read_json, run, write_json

HELD_OUT = ("analysis", "test", "dev")  # in the order of dealing
NAMES = ("train", "dev", "test", "analysis")
# Never change it: another salt holds out other documents, which the embedded parses do not cover.
SALT = "specialized heads"
# Whole documents rarely fill a set exactly.
MIN_FILLED = 0.9
WRITTEN = pa.schema([SCHEMA.field(name) for name in COLUMNS])


class Settings(Section):
    """The sizes of the sets, as in the configuration."""

    split: Split


@dataclass(frozen=True)
class Index:
    """Properties of every pair, in arrays of shape (pairs,), 42 bytes per pair.

    `place`: uint64, the salted hash of its document, which identifies and orders documents. `given`: int8, the position in
    `HELD_OUT` of the set that the source assigns, or -1. `source_keys`, `source_bags`, `target_keys`,
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
        UserError: not a file of pairs, or an empty one.
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
    """Sort rows into the order of dealing.

    Returns:
        the rows, sorted by the salted hash of their document, then in file order, int64; and the boundaries of the documents
        among them, int64 of shape (documents + 1,).
    """
    places = index.place[rows]
    order = np.argsort(places, kind="stable")
    places = places[order]
    inner = np.flatnonzero(places[1:] != places[:-1]) + 1
    return rows[order], np.concatenate([[0], inner, [len(rows)]])


def divide(index: Index, *, sizes: Split) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Keep the sets of the source, deal documents to the other sets, and drop pairs that occur in more than one set.

    Args:
        index: of the clean pairs.
        sizes: pairs per dealt set; a set may be up to 10% smaller if no whole document fits any more.

    Returns:
        the rows of each set, int64 (dealt sets in the order of dealing, other sets in file order), and the number of pairs
        dropped for each reason. Every pair is in a set or dropped.

    Raises:
        UserError: the corpus is too small for the sizes, or its documents are too large.
    """
    sets = {name: np.flatnonzero(index.given == number) for number, name in enumerate(HELD_OUT)}
    to_deal = [name for name in HELD_OUT if not len(sets[name])]
    given, free = np.flatnonzero(index.given >= 0), np.flatnonzero(index.given < 0)
    # A document of an assigned set must not be divided either; pairs without a document have the empty name.
    named = index.place[given][index.place[given] != fingerprint(f"{SALT}\n")]
    divided = np.isin(index.place[free], named)
    rows, bounds = ordered(index, free[~divided])
    wanted = sum(getattr(sizes, name) for name in to_deal)
    if len(rows) <= wanted:
        requested = " + ".join(f"{name} {getattr(sizes, name)}" for name in to_deal)
        gone = f" ({divided.sum()} more belong to documents of your held-out sets)" if divided.any() else ""
        raise UserError(
            f"the corpus has {len(rows)} clean pairs{gone}, too few for split: {requested} = {wanted} and a training set; "
            "make the held-out sets smaller, relax `filters` or use more text"
            if to_deal
            else f"the corpus has no clean pair outside its held-out sets{gone}; relax `filters` or use more text"
        )

    reasons = ("document_overlap", "held_out_overlap", "held_out_duplicate", "train_overlap", "train_near_overlap")
    dropped = dict.fromkeys(reasons, 0) | {"document_overlap": int(divided.sum())}
    other_sources = set(index.source_bags[given].tolist())
    other_targets = set(index.target_bags[given[index.has_target[given]]].tolist())
    dealt = np.zeros(len(bounds) - 1, bool)
    for name in to_deal:
        size = getattr(sizes, name)
        chosen: list[int] = []
        set_sources: set[int] = set()
        left = np.flatnonzero(~dealt)
        shared = 0  # documents left whose sentences all occur in other sets
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
                if source not in set_sources:
                    first.setdefault(source, row)
            shared += not apart
            if not first or len(first) > size - len(chosen):
                continue
            dealt[document] = True
            chosen.extend(first.values())
            set_sources.update(first)
            dropped["held_out_overlap"] += len(group) - len(apart)
            dropped["held_out_duplicate"] += len(apart) - len(first)
        if len(chosen) < MIN_FILLED * size:
            advice = "make the set smaller, use more text, or give smaller documents (group_by: sentence)"
            if 2 * shared > len(left):
                advice = f"all sentences of {shared} of them are in the other held-out sets: are these files of the same text?"
            raise UserError(
                f"split.{name}: only {len(chosen)} of {size} pairs could be held out in whole documents: {len(left)} documents "
                f"were left, with {len(rows) / len(dealt):.0f} pairs each on average; {advice}"
            )
        sets[name] = np.array(chosen)
        other_sources |= set_sources
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
        raise UserError(f"none of {len(index)} pairs is left for training ({dropped}); make the held-out sets smaller")
    return sets, dropped


def occurs(prints: np.ndarray, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each of `rows` has the fingerprint of one of `others`, bool of shape (len(rows),)."""
    return np.isin(prints[rows], prints[others])


def select(path: Path, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
    """The blocks of a file, reduced to some of its rows, which are in ascending order."""
    start = 0
    for block in read_blocks(path, columns=COLUMNS):
        here = rows[slice(*np.searchsorted(rows, [start, start + block.num_rows]))]
        if len(here):
            yield in_schema(block.take(pa.array(here - start)), schema=WRITTEN)
        start += block.num_rows


def take(path: Path, rows: np.ndarray) -> pa.RecordBatch:
    """Some rows of a file, in the order given, in memory."""
    table = pa.Table.from_batches(select(path, np.sort(rows)), WRITTEN)
    return table.take(pa.array(np.argsort(np.argsort(rows)))).combine_chunks().to_batches()[0]


def describe(path: Path) -> dict[str, int | dict[str, float]]:
    """Numbers of pairs, documents, and words and characters per side of a file of pairs; and sentence lengths in words."""
    documents, counts = [np.zeros(0, np.uint64)], {side: ([], []) for side in ("source", "target")}
    for block in read_blocks(path):
        documents.append(np.unique(fingerprints(block["document"])))
        for side, (of_words, of_characters) in counts.items():
            texts = Block.of(block[side])
            of_words.append(texts.words.astype(np.int32))
            of_characters.append(int(texts.characters.sum()))
    sizes: dict[str, int | dict[str, float]] = {"pairs": 0, "groups": len(np.unique(np.concatenate(documents)))}
    for side, (of_words, of_characters) in counts.items():
        lengths = np.concatenate(of_words)
        sizes["pairs"] = len(lengths)
        sizes[f"{side}_words"] = int(lengths.sum())
        sizes[f"{side}_characters"] = sum(of_characters)
        median, most = np.quantile(lengths, [0.5, 0.95], method="inverted_cdf").tolist()
        sizes[f"{side}_length"] = {"mean": round(float(lengths.mean()), 3), "median": median, "95%": most}
    return sizes


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
