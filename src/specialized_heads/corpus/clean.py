"""Stage clean: normalise the text, drop pairs that are not translations, and group the pairs that share sentences.

Text is normalised (`normalise`), filters (`filters`) drop pairs, then repeated pairs are dropped: only the first of equal pairs
is kept and, depending on the configuration, only the first of pairs with equal source and target keys (`near_duplicates`). A
dropped pair is counted under the first reason that applies.

Pairs without a document are grouped by sentence (`groups`), and the smallest source key of a group becomes the document of
its pairs. Groups are found before anything is dropped, so that a filter does not change the groups of the pairs it keeps.
Pairs that the source assigns to a held-out set are neither grouped nor compared with others.

A corpus of millions is not held in memory: its blocks are normalised and measured once and stored in a temporary file while
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

from specialized_heads.config.sections import Filters
from specialized_heads.corpus.filters import FILTERS, measure, reasons
from specialized_heads.corpus.groups import connected, first_of_each
from specialized_heads.corpus.near_duplicates import combined, fingerprints
from specialized_heads.corpus.normalise import STEPS, normalise
from specialized_heads.corpus.pairs import SCHEMA, in_schema, number_of_pairs, read_blocks, write_blocks
from specialized_heads.stage import Section, UserError, arguments, disk_errors, log, progress, run, write_json

# Why a pair is dropped, in order; a reason is stored as its position, and "" means that the pair is kept.
REASONS = ("", *FILTERS, "duplicate", "near_duplicate")
# Columns of the temporary file: the pairs, and the source keys of those that are grouped by sentence.
WAITING = SCHEMA.append(pa.field("key", pa.string()))


class Settings(Section):
    """The filters and the languages, as in the configuration."""

    filters: Filters
    source_language: str
    target_language: str


@dataclass(frozen=True)
class Measured:
    """Properties of every pair, in arrays of shape (pairs,), 27 bytes per pair.

    `reason`: int8, a position in `REASONS`. `dealt`: bool, the split stage assigns its set, not the source. `grouped`: bool,
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
        and the number of documents among those that the split stage deals (`groups`). Pairs are either kept or dropped.

    Raises:
        UserError: `raw` is not a file of pairs, or no pair passes, or none of a set that the source assigns.
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
                f"{raw}: none of the {pairs} pairs of your {name} set passes the filters; relax `filters`, or give no "
                f"{name} set, so that one is held out of the other pairs"
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
    """Normalise and measure every pair, and write all of them to the temporary file.

    Returns:
        their properties, with the reasons of `filters`; and how many pairs each step of normalisation changed.
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
            # A pair with an empty side links no others; it will be dropped.
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
    """Write into `reason` which of the pairs that pass all filters repeat an earlier one of them."""

    def drop_all_but_first(name: str, prints: np.ndarray) -> None:
        rows = np.flatnonzero(measured.dealt & (measured.reason == 0))
        again = np.ones(len(rows), bool)
        again[first_of_each(prints[rows])] = False
        measured.reason[rows[again]] = REASONS.index(name)

    drop_all_but_first("duplicate", measured.texts)
    if not filters.near_duplicates:
        drop_all_but_first("near_duplicate", combined(measured.sources, measured.targets))


def emptied_sets(waiting: BinaryIO, measured: Measured) -> dict[str, int]:
    """The held-out sets assigned by the source of which no pair is left, with their sizes before."""
    if measured.dealt.all():
        return {}  # as in most corpora: the source assigns no set
    before, after = Counter[str](), Counter[str]()
    for start, block in waiting_blocks(waiting, columns=["set"]):
        kept = measured.reason[start : start + block.num_rows] == 0
        before.update(block["set"].to_pylist())
        after.update(block["set"].filter(pa.array(kept)).to_pylist())
    return {name: pairs for name, pairs in before.items() if name and not after[name]}


def group_names(waiting: BinaryIO, measured: Measured) -> tuple[np.ndarray, dict[int, str]]:
    """The names of the groups with more than one source key; any other group is named by its only key.

    Returns:
        the group of each pair, int32 of shape (pairs,), -1 for groups with one key; and the name of each other group.
    """
    groups = np.full(len(measured.reason), -1, np.int32)
    rows = np.flatnonzero(measured.grouped)
    if not len(rows):
        return groups, {}
    components = connected(measured.sources[rows], measured.targets[rows])
    # One row per source key; a component with several of them takes the smallest key.
    firsts = first_of_each(measured.sources[rows])
    several = np.bincount(components[firsts]) > 1
    groups[rows] = np.where(several[components], components, -1)
    choices = rows[firsts[several[components[firsts]]]]

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
    """The blocks of the temporary file, each with its first row."""
    options = pa.ipc.IpcReadOptions(included_fields=[WAITING.names.index(name) for name in columns])
    start = 0
    with pa.ipc.open_file(waiting, options=options) as file:
        for number in range(file.num_record_batches):
            block = file.get_batch(number)
            yield start, block
            start += block.num_rows


def count_documents(path: Path) -> int:
    """The number of documents among the pairs of a clean file that the source does not assign to a set."""
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
