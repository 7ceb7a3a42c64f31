"""Stage clean: normalise the text, drop pairs that are no translations, and say which pairs belong together.

Text is normalised (`normalise`), then each filter (`filters`) drops pairs for one reason, then pairs that occurred before
go: of exactly equal pairs the first one stays and, if the configuration says so, of pairs whose source keys and target
keys (`near_duplicates`) are equal. A pair is counted for the first reason that holds.

Pairs without a document are grouped by sentence (`groups`), and the smallest source key of a group becomes the document of
its pairs. Groups are found before anything is dropped, so that a filter does not move the pairs it keeps to another group.
Pairs of a held-out set that the source itself assigns are neither grouped nor compared with others.

A corpus of millions is not held in memory: its blocks are normalised and measured once, and wait in a temporary file while
fingerprints decide about duplicates and groups.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.corpus.filters import FILTERS, measure, reasons
from specialized_heads.corpus.groups import connected, first_of_each
from specialized_heads.corpus.near_duplicates import combined, fingerprints
from specialized_heads.corpus.normalise import STEPS, normalise
from specialized_heads.corpus.pairs import SCHEMA, in_schema, number_of_pairs, read_blocks, write_blocks
from specialized_heads.sections import Filters
from specialized_heads.stage import Section, UserError, arguments, disk_errors, log, progress, run, write_json

# Why a pair is dropped, in order; a reason is a position in it, and "" means that the pair is kept.
REASONS = ("", *FILTERS, "duplicate", "near_duplicate")
# What waits in the temporary file: the pairs, and the source keys of those that are grouped by sentence.
WAITING = SCHEMA.append(pa.field("key", pa.string()))


class Settings(Section):
    """What affects the result: the filters and the languages, as in the configuration."""

    filters: Filters
    source_language: str
    target_language: str


@dataclass(frozen=True)
class Measured:
    """What is remembered of every pair, in arrays of shape (pairs,), 27 bytes per pair.

    `reason`: int8, a position in `REASONS`. `dealt`: bool, the source assigns it to no held-out set. `grouped`: bool, to be
    grouped by sentence. `sources`, `targets`, `texts`: uint64, fingerprints of the keys, and of the two texts together.
    """

    reason: np.ndarray
    dealt: np.ndarray
    grouped: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    texts: np.ndarray

    @classmethod
    def of(cls, pairs: int) -> "Measured":
        """Room for a number of pairs."""
        return cls(*(np.zeros(pairs, kind) for kind in (np.int8, bool, bool, np.uint64, np.uint64, np.uint64)))


def clean(raw: Path, output: Path, *, settings: Settings) -> dict:
    """Clean a file of pairs into another one.

    Returns:
        the number of pairs read (`raw`), changed by each step of normalisation, dropped for each reason, and kept (`clean`),
        and the number of documents among those that the split stage deals (`groups`). Kept and dropped pairs together are
        as many as were read.

    Raises:
        UserError: `raw` is no file of pairs, or no pair passes, or none of a set that the source gives.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(output), tempfile.TemporaryFile(dir=output.parent) as waiting:
        measured, changed = normalise_and_filter(raw, waiting, settings=settings)
        drop_repeated(measured, filters=settings.filters)
        dropped = dict(zip(REASONS, np.bincount(measured.reason, minlength=len(REASONS)).tolist(), strict=True))
        kept = dropped.pop("")
        if not kept:
            why = ", ".join(f"{name} {count}" for name, count in dropped.items() if count)
            raise UserError(f"{raw}: no pair of {len(measured.reason)} passes the filters ({why}); relax `filters`")
        for name, pairs in sorted(emptied_sets(waiting, measured).items()):
            raise UserError(
                f"{raw}: none of the {pairs} pairs that are given as the set {name} passes the filters; relax `filters`, or "
                f"give no such set, and one is dealt from the other pairs"
            )
        write_blocks(output, kept_blocks(waiting, measured))
    return {
        "raw": len(measured.reason),
        "changed_in_cleaning": changed,
        "dropped_in_cleaning": dropped,
        "clean": kept,
        "groups": count_documents(output),
    }


def normalise_and_filter(raw: Path, waiting: BinaryIO, *, settings: Settings) -> tuple[Measured, dict[str, int]]:
    """Normalise and measure every pair, and put all of them into the temporary file.

    Returns:
        what is remembered of them, with the reasons of the filters that look at one pair alone; and how many pairs each step
        of normalisation changed.
    """
    filters = settings.filters
    changed = dict.fromkeys(STEPS, 0)
    measured, start = Measured.of(number_of_pairs(raw)), 0
    with pa.ipc.new_file(waiting, WAITING, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
        for batch in progress(read_blocks(raw), what="normalise and filter", unit="block"):
            block = in_schema(batch)
            sources, source_changes = normalise(block["source"], entities=filters.entities)
            targets, target_changes = normalise(block["target"], entities=filters.entities)
            for name in STEPS:
                changed[name] += int((source_changes[name] | target_changes[name]).sum())
            source = measure(sources, language=settings.source_language, filters=filters)
            target = measure(targets, language=settings.target_language, filters=filters)
            dealt = pc.equal(block["set"], "")
            # A pair without text on one side says nothing about others; it will be dropped.
            grouped = pc.and_(dealt, pc.equal(block["document"], "")).to_numpy(zero_copy_only=False)
            grouped &= (source.characters > 0) & (target.characters > 0)
            reason = reasons(source, target, sets=block["set"], filters=filters)
            texts = combined(fingerprints(sources), fingerprints(targets))
            here = slice(start, start + block.num_rows)
            measured.reason[here], measured.dealt[here] = reason, dealt.to_numpy(zero_copy_only=False)
            measured.grouped[here], measured.texts[here] = grouped, texts
            measured.sources[here], measured.targets[here] = source.key_prints, target.key_prints
            start += block.num_rows
            keys = pc.if_else(pa.array(grouped), source.keys, "")
            file.write_batch(pa.record_batch([sources, targets, block["document"], block["set"], keys], schema=WAITING))
    return measured, changed


def drop_repeated(measured: Measured, *, filters: Filters) -> None:
    """Write into `reason` why a pair goes that passes all other filters, and occurred before among those that do."""

    def drop_all_but_first(name: str, prints: np.ndarray) -> None:
        rows = np.flatnonzero(measured.dealt & (measured.reason == 0))
        again = np.ones(len(rows), bool)
        again[first_of_each(prints[rows])] = False
        measured.reason[rows[again]] = REASONS.index(name)

    drop_all_but_first("duplicate", measured.texts)
    if not filters.near_duplicates:
        drop_all_but_first("near_duplicate", combined(measured.sources, measured.targets))


def emptied_sets(waiting: BinaryIO, measured: Measured) -> dict[str, int]:
    """The held-out sets that the source gives and of which nothing is left, with the pairs that they had."""
    if measured.dealt.all():
        return {}  # no set is given, as in most corpora: the file need not be read for it
    before, after = Counter[str](), Counter[str]()
    for start, block in waiting_blocks(waiting, columns=["set"]):
        kept = measured.reason[start : start + block.num_rows] == 0
        before.update(block["set"].to_pylist())
        after.update(block["set"].filter(pa.array(kept)).to_pylist())
    return {name: pairs for name, pairs in before.items() if name and not after[name]}


def group_names(waiting: BinaryIO, measured: Measured) -> tuple[np.ndarray, dict[int, str]]:
    """The names of the groups in which more than one source key occurs; in any other, each pair's key is the name.

    Returns:
        the group of each pair, int32 of shape (pairs,), -1 where its own key is the name, and the name of each group.
    """
    groups = np.full(len(measured.reason), -1, np.int32)
    rows = np.flatnonzero(measured.grouped)
    if not len(rows):
        return groups, {}
    found = connected(measured.sources[rows], measured.targets[rows])
    # One row for each source key; groups with several of these have to choose.
    firsts = first_of_each(measured.sources[rows])
    several = np.bincount(found[firsts]) > 1
    groups[rows] = np.where(several[found], found, -1)
    choices = rows[firsts[several[found[firsts]]]]

    names: dict[int, str] = {}
    for start, block in waiting_blocks(waiting, columns=["key"]):
        here = choices[slice(*np.searchsorted(choices, [start, start + block.num_rows]))]
        keys = block["key"].take(pa.array(here - start)).to_pylist()
        for group, key in zip(groups[here].tolist(), keys, strict=True):
            names[group] = min(key, names.get(group, key))
    return groups, names


def kept_blocks(waiting: BinaryIO, measured: Measured) -> Iterator[pa.RecordBatch]:
    """The pairs that are kept, in order, with the names of their groups as documents."""
    groups, names = group_names(waiting, measured)
    for start, block in waiting_blocks(waiting, columns=WAITING.names):
        here = slice(start, start + block.num_rows)
        kept = measured.reason[here] == 0
        if not kept.any():
            continue
        own_key = pc.if_else(pa.array(measured.grouped[here]), block["key"], block["document"])
        named = groups[here] >= 0
        chosen = pa.array([names[group] for group in groups[here][named].tolist()], pa.string())
        documents = pc.replace_with_mask(own_key, pa.array(named), chosen)
        columns = [block["source"], block["target"], documents, block["set"]]
        yield pa.record_batch(columns, schema=SCHEMA).filter(pa.array(kept))


def waiting_blocks(waiting: BinaryIO, *, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The blocks of the temporary file, each with the row that it starts at."""
    options = pa.ipc.IpcReadOptions(included_fields=[WAITING.names.index(name) for name in columns])
    start = 0
    with pa.ipc.open_file(waiting, options=options) as file:
        for number in range(file.num_record_batches):
            block = file.get_batch(number)
            yield start, block
            start += block.num_rows


def count_documents(path: Path) -> int:
    """The number of documents among the pairs of a clean file that the source assigns to no held-out set."""
    prints = [np.zeros(0, np.uint64)]
    for block in read_blocks(path, columns=["document", "set"]):
        prints.append(np.unique(fingerprints(block.filter(pc.equal(block["set"], ""))["document"])))
    return len(np.unique(np.concatenate(prints)))


def main() -> None:
    """Read `--input` (raw.parquet); write `--output` (clean.parquet) and `--counts` (clean.json)."""
    files = arguments(__doc__, files=["input", "output", "counts"])
    counts = clean(files.input, files.output, settings=Settings.model_validate(files.settings))
    write_json(files.counts, counts)
    log.info(
        "clean: %d of %d pairs in %d groups; dropped %s",
        *(counts[name] for name in ("clean", "raw", "groups", "dropped_in_cleaning")),
    )


if __name__ == "__main__":
    run(main)
