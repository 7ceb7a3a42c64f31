"""Stage split: which documents are held out, and which training pairs are dropped because they
occur there.

A set that the source assigns stays as it is, whatever the configured sizes. The other sets are
dealt: documents are sorted by a hash of their name, which depends neither on a seed nor on the rest
of the corpus (`fingerprint`; it must never change). The analysis set takes whole documents from the
front until it is full, skipping those that no longer fit. Then the test set is dealt in the same
way from the rest, then the development set; what remains is for training. So the analysis
sentences, whose parses are kept in the repository, do not change with the sizes of the other sets.

A sentence that occurs twice (`normalise`: equal bags, which includes equal keys) belongs to the
first set that has it: one assigned by the source, then one dealt earlier. A pair whose source or
target occurs in an earlier held-out set, or whose source occurs already in its own set, is dropped.
A training pair whose source or target occurs in any held-out set is dropped. A pair of an analysis
set may have no target, which then equals no other.
"""

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads import stage
from specialized_heads.corpus.clean import fingerprints, measure
from specialized_heads.corpus.normalise import fingerprint, sentence_bag, sentence_key
from specialized_heads.corpus.pairs import (
    COLUMNS,
    HELD_OUT,
    SCHEMA,
    read_blocks,
    select,
    write_blocks,
)
from specialized_heads.experiment.sections import Split

NAMES = ("train", "dev", "test", "analysis")
# Never change it: another salt holds out other documents, which the embedded parses do not cover.
SALT = "specialized heads"
# Whole documents rarely fill a set exactly.
MIN_FILLED = 0.9
# A warning: of the sentences of a set of the source, in another one; of the other pairs, dropped.
MUCH_SHARED = 0.1
WRITTEN = pa.schema([SCHEMA.field(name) for name in COLUMNS])


class Settings(stage.Section):
    split: Split  # the sizes of the sets, as in the configuration


def read_index(path: Path) -> pd.DataFrame:
    """The properties of every pair of a clean file, 42 bytes per pair.

    `place`: uint64, the salted hash of its document, which identifies and orders documents.
    `given`: int8, the position in `HELD_OUT` of the set that the source assigns, or -1.
    `source_keys`, `source_bags`, `target_keys`, `target_bags`: uint64, fingerprints.
    `has_target`: bool.
    """
    index = []
    for block in stage.progress(read_blocks(path), what="index", unit="block"):
        documents = block["document"].dictionary_encode()
        places = [fingerprint(f"{SALT}\n{name}") for name in documents.dictionary.to_pylist()]
        columns = {"place": np.array(places, np.uint64)[documents.indices.to_numpy()]}
        given = pc.fill_null(pc.index_in(block["set"], pa.array(HELD_OUT)), -1)
        columns["given"] = given.to_numpy().astype(np.int8)
        for side in ("source", "target"):
            keys = [sentence_key(text) for text in block[side].to_pylist()]
            columns[f"{side}_keys"] = fingerprints(keys)
            columns[f"{side}_bags"] = fingerprints(map(sentence_bag, keys))
        columns["has_target"] = pc.not_equal(block["target"], "").to_numpy(zero_copy_only=False)
        index.append(pd.DataFrame(columns))
    return pd.concat(index, ignore_index=True)


class Dealer:
    """Deals documents to one held-out set after the other, in the order of their salted hashes.

    rows: of the index, those of a document in file order; the ones of document n are
    `rows[bounds[n] : bounds[n + 1]]`.
    sources, targets: the bags of the sentences that the sets have so far.
    """

    def __init__(self, index: pd.DataFrame, rows: np.ndarray, *, given: np.ndarray) -> None:
        self.bags = {side: index[f"{side}_bags"].to_numpy() for side in ("source", "target")}
        self.sources = set(self.bags["source"][given].tolist())
        with_target = given[index["has_target"].to_numpy()[given]]
        self.targets = set(self.bags["target"][with_target].tolist())
        places = index["place"].to_numpy()[rows]
        order = np.argsort(places, kind="stable")
        self.rows, places = rows[order], places[order]
        starts = np.flatnonzero(places[1:] != places[:-1]) + 1
        self.bounds = np.concatenate([[0], starts, [len(rows)]])
        self.dealt = np.zeros(len(self.bounds) - 1, bool)
        self.dropped = Counter[str]()

    def deal(self, name: str, size: int) -> np.ndarray:
        """The rows of a set of up to `size` pairs; a `UserError` below `MIN_FILLED` of it."""
        chosen: dict[int, int] = {}  # rows by the bag of their source
        left = np.flatnonzero(~self.dealt)
        shared = 0  # documents whose sentences all occur in other sets
        for document in left:
            if len(chosen) == size:
                break
            group = self.rows[self.bounds[document] : self.bounds[document + 1]].tolist()
            sources, targets = (self.bags[side][group].tolist() for side in ("source", "target"))
            apart = [
                (row, source)
                for row, source, target in zip(group, sources, targets, strict=True)
                if not (source in self.sources or target in self.targets)
            ]
            shared += not apart
            first: dict[int, int] = {}  # rows of this document, by the bag of their source
            for row, source in apart:
                if source not in chosen:
                    first.setdefault(source, row)
            if first and len(chosen) + len(first) <= size:
                self.dealt[document] = True
                chosen |= first
                self.dropped["held_out_overlap"] += len(group) - len(apart)
                self.dropped["held_out_duplicate"] += len(apart) - len(first)
        if len(chosen) < MIN_FILLED * size:
            each = len(self.rows) / len(self.dealt)
            raise stage.UserError(
                f"split.{name}: only {len(chosen)} of {size} pairs could be held out in whole "
                f"groups: {len(left)} groups were left, with {each:.0f} pairs each on average; "
                f"{self._advice(shared, len(left))}"
            )
        rows = np.array(list(chosen.values()))
        self.sources |= chosen.keys()
        self.targets.update(self.bags["target"][rows].tolist())
        return rows

    def _advice(self, shared: int, left: int) -> str:
        largest = int(np.diff(self.bounds).max())
        if 2 * shared > left:
            return (
                f"all sentences of {shared} of them are in the other held-out sets: are these "
                f"files of the same text?"
            )
        if 2 * largest > len(self.rows):
            return (
                f"{largest} of {len(self.rows)} pairs are one group: a document, or pairs that "
                f"share sentences, digits aside"
            )
        return "make the set smaller, use more text, or give smaller documents (group_by: sentence)"

    def rest(self) -> np.ndarray:
        """The rows of the documents that were not dealt, in file order."""
        return np.sort(self.rows[np.repeat(~self.dealt, np.diff(self.bounds))])


def divide(index: pd.DataFrame, *, sizes: Split) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Keep the sets of the source, deal documents to the other sets, and drop pairs that occur in
    more than one set.

    A dealt set may be up to 10% smaller than its size if no whole document fits any more; a
    `UserError` if it were smaller.

    Returns:
        the rows of each set, int64 (dealt sets in the order of dealing, other sets in file order),
        and the number of pairs dropped for each reason. Every pair is in a set or dropped.
    """
    # The sets of the source. Their documents must not be divided either, so no other pair of them
    # is used; pairs without a document have the empty name.
    place, assigned = index["place"].to_numpy(), index["given"].to_numpy()
    sets = {name: np.flatnonzero(assigned == number) for number, name in enumerate(HELD_OUT)}
    _warn_if_shared(index, {name: rows for name, rows in sets.items() if len(rows)})
    given = assigned >= 0
    named = place[given & (place != fingerprint(f"{SALT}\n"))]
    divided = ~given & np.isin(place, named)
    said = "belong to documents of your held-out sets, and are not used; if these are others, give "
    said += "every document its own name"
    _warn_if_many(divided[~given], said)
    free = np.flatnonzero(~given & ~divided)

    # The sets that are dealt.
    to_deal = {name: getattr(sizes, name) for name in HELD_OUT if not len(sets[name])}
    if len(free) <= (total := sum(to_deal.values())):
        gone = f" ({divided.sum()} more belong to documents of your held-out sets)"
        gone = gone if divided.any() else ""
        said = f"the corpus has no clean pair outside its held-out sets{gone};"
        if to_deal:
            wanted = " + ".join(f"{name} {size}" for name, size in to_deal.items())
            said = f"the corpus has {len(free)} clean pairs{gone}, too few for split: {wanted} = "
            said += f"{total} and a training set; make the held-out sets smaller,"
        raise stage.UserError(f"{said} relax `filters` or use more text")
    dealer = Dealer(index, free, given=np.flatnonzero(given))
    sets |= {name: dealer.deal(name, size) for name, size in to_deal.items()}

    # The training set: what is left, without sentences of the other sets.
    rest = index.loc[dealer.rest()]
    held = index.loc[np.concatenate([sets[name] for name in HELD_OUT])]
    with_target = held[held["has_target"]]
    same, near = (
        rest[f"source_{what}"].isin(held[f"source_{what}"])
        | rest[f"target_{what}"].isin(with_target[f"target_{what}"])
        for what in ("keys", "bags")
    )
    said = "are also in the held-out sets (digits and order of words aside) and are not used for "
    said += "training; give other held-out sets if that is too many"
    _warn_if_many(same | near, said)
    sets["train"] = rest.index[~(same | near)].to_numpy()
    dropped = {"document_overlap": int(divided.sum())}
    dropped |= {name: dealer.dropped[name] for name in ("held_out_overlap", "held_out_duplicate")}
    dropped["train_overlap"] = int(same.sum())
    dropped["train_near_overlap"] = int((near & ~same).sum())
    if not len(sets["train"]):
        raise stage.UserError(
            f"none of {len(index)} pairs is left for training ({dropped}); use more text, or "
            f"held-out sets with fewer sentences of it"
        )
    return sets, dropped


def _warn_if_shared(index: pd.DataFrame, given: dict[str, np.ndarray]) -> None:
    """Warn if sets of the source have many source sentences in common: measures on one would seem
    to confirm those on the other."""
    for names in combinations(given, 2):
        smaller, larger = sorted(
            (index["source_keys"].iloc[given[name]] for name in names), key=len
        )
        if (shared := smaller.isin(larger).mean()) > MUCH_SHARED:
            said = "%.0f%% of the sentences of your %s or %s set are in the other one too; give "
            said += "different texts, or results on one say little about the other"
            stage.log.warning(said, 100 * shared, *names)


def _warn_if_many(dropped: np.ndarray | pd.Series, said: str) -> None:
    """Warn if many of the pairs that could be dealt or trained on are dropped."""
    if len(dropped) and dropped.mean() > MUCH_SHARED:
        text = "%d of %d pairs (%.0f%%) %s"
        stage.log.warning(text, dropped.sum(), len(dropped), 100 * dropped.mean(), said)


def take(path: Path, rows: np.ndarray) -> pa.RecordBatch:
    """Some rows of a file, in the order given, in memory."""
    table = pa.Table.from_batches(select(path, np.sort(rows), columns=COLUMNS), WRITTEN)
    return table.take(pa.array(np.argsort(np.argsort(rows)))).combine_chunks().to_batches()[0]


def describe(path: Path) -> dict[str, int | dict[str, float]]:
    """Numbers of pairs, documents, and words and characters per side of a file of pairs; and
    sentence lengths in words."""
    documents: list[np.ndarray] = []
    measured: dict[str, list[pd.DataFrame]] = {"source": [], "target": []}
    for block in read_blocks(path):
        documents.append(np.unique(fingerprints(block["document"].to_pylist())))
        for side, tables in measured.items():
            tables.append(measure(block[side]))
    sizes: dict[str, int | dict[str, float]] = {"groups": len(np.unique(np.concatenate(documents)))}
    for side, tables in measured.items():
        table = pd.concat(tables)
        lengths = table["words"].to_numpy()
        median, most = np.quantile(lengths, [0.5, 0.95], method="inverted_cdf").tolist()
        sizes[f"{side}_words"] = int(lengths.sum())
        sizes[f"{side}_characters"] = int(table["characters"].sum())
        mean = round(float(lengths.mean()), 3)
        sizes[f"{side}_length"] = {"mean": mean, "median": median, "95%": most}
    return {"pairs": len(table)} | sizes


@stage.command("input", "raw-card", "clean-counts", *NAMES, "counts", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    card, cleaning = stage.read_json(files.raw_card), stage.read_json(files.clean_counts)
    try:
        sets, dropped = divide(read_index(files.input), sizes=settings.split)
    except stage.UserError as error:
        before = (card["dropped"] | cleaning["dropped_in_cleaning"]).items()
        gone = ", ".join(f"{reason} {pairs}" for reason, pairs in before if pairs) or "none"
        read = f"{card['read']} pairs were read"
        raise stage.UserError(
            f"{error}; {read}, of which reading and cleaning dropped: {gone}"
        ) from None
    write_blocks(files.train, select(files.input, sets["train"], columns=COLUMNS), schema=WRITTEN)
    for name in HELD_OUT:
        write_blocks(getattr(files, name), [take(files.input, sets[name])], schema=WRITTEN)
    splits = {name: describe(getattr(files, name)) for name in NAMES}
    counts = {"read": card["read"], "dropped_in_reading": card["dropped"]} | cleaning
    stage.write_json(files.counts, counts | {"dropped_in_splitting": dropped, "splits": splits})
    stage.log.info(
        "split: %s; dropped %s", {name: splits[name]["pairs"] for name in NAMES}, dropped
    )
