"""Stage clean: normalise the text, drop pairs that are not translations, and group the pairs that share sentences.

Text is normalised (`normalise`), filters (`filters`) drop pairs, then repeated pairs are dropped: only the first of equal pairs
is kept and, depending on the configuration, only the first of pairs with equal source and target keys (`near_duplicates`). A
dropped pair is counted under the first reason that applies.

Pairs without a document are grouped by sentence: pairs whose sources or targets have equal keys, directly or through other pairs,
form one group, so no sentence has one translation in training and another in test. The smallest source key of a group becomes the
document of its pairs. Groups are found before anything is dropped, so that a filter does not change the groups of the pairs it
keeps. Pairs that the source assigns to a held-out set are neither grouped nor compared with others.

A corpus of millions is not held in memory: its blocks are normalised and measured once and stored in a temporary file while
fingerprints decide about duplicates and groups.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from specialized_heads.config.sections import Filters
from specialized_heads.corpus.filters import FILTERS, measure, reasons
from specialized_heads.corpus.near_duplicates import combined, fingerprints
from specialized_heads.corpus.normalise import STEPS, normalise
from specialized_heads.corpus.pairs import HELD_OUT, SCHEMA, read_blocks, write_blocks
from specialized_heads.stage import Section, UserError, arguments, disk_errors, log, progress, run, write_json

# Why a pair is dropped, in order; a reason is stored as its position, and "" means that the pair is kept.
REASONS = ("", *FILTERS, "duplicate", "near_duplicate")


class Settings(Section):
    """The filters and the languages, as in the configuration."""

    filters: Filters
    source_language: str
    target_language: str


def clean(raw: Path, output: Path, *, settings: Settings) -> dict:
    """Clean a file of pairs into another one.

    Returns:
        the number of pairs read (`raw`), changed by each step of normalisation, dropped for each reason, and kept (`clean`),
        and the number of documents among those that the split stage deals (`groups`).

    Raises:
        UserError: `raw` is not a file of pairs, or no pair passes, or none of a set that the source assigns.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(output), tempfile.TemporaryFile(dir=output.parent) as waiting:
        measured, changed = normalise_and_filter(raw, waiting, settings=settings)
        drop_repeated(measured, near_duplicates=settings.filters.near_duplicates)
        dropped = dict(zip(REASONS, np.bincount(measured["reason"], minlength=len(REASONS)).tolist(), strict=True))
        kept = dropped.pop("")
        if not kept:
            why = ", ".join(f"{name} {count}" for name, count in dropped.items() if count)
            raise UserError(f"{raw}: no pair of {len(measured)} passes the filters ({why}); relax `filters`")
        for number, name in enumerate(HELD_OUT):
            own = measured["reason"][measured["set"] == number]
            if len(own) and own.all():
                raise UserError(
                    f"{raw}: none of the {len(own)} pairs of your {name} set passes the filters; relax `filters`, or give "
                    f"no {name} set, so that one is held out of the other pairs"
                )
        write_blocks(output, kept_blocks(waiting, measured))
    documents = [
        np.unique(fingerprints(block.filter(pc.equal(block["set"], ""))["document"]))
        for block in read_blocks(output, columns=["document", "set"])
    ]
    return {
        "raw": len(measured),
        "changed_in_cleaning": changed,
        "dropped_in_cleaning": dropped,
        "clean": kept,
        "groups": len(np.unique(np.concatenate(documents))),
    }


def normalise_and_filter(raw: Path, waiting: BinaryIO, *, settings: Settings) -> tuple[pd.DataFrame, dict[str, int]]:
    """Normalise and measure every pair, and write all of them to the temporary file.

    In that file, the document of a pair that is grouped by sentence is its source key.

    Returns:
        one row per pair: `reason`, a position in `REASONS`; `set`, a position in `HELD_OUT`, -1 if the split stage assigns the
        set; `grouped`, whether by sentence; `sources`, `targets` and `texts`, the fingerprints of the keys and of the two texts
        together. And how many pairs each step of normalisation changed.
    """
    filters = settings.filters
    measured, changed = [], dict.fromkeys(STEPS, 0)
    with pa.ipc.new_file(waiting, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
        for block in progress(read_blocks(raw), what="normalise and filter", unit="block"):
            sources, source_changes = normalise(block["source"], entities=filters.entities)
            targets, target_changes = normalise(block["target"], entities=filters.entities)
            for name in STEPS:
                changed[name] += int((source_changes[name] | target_changes[name]).sum())
            source = measure(sources, language=settings.source_language, filters=filters)
            target = measure(targets, language=settings.target_language, filters=filters)
            sets = pc.fill_null(pc.index_in(block["set"], pa.array(HELD_OUT)), -1).to_numpy().astype(np.int8)
            # A pair with an empty side links no others; it will be dropped.
            grouped = (sets < 0) & pc.equal(block["document"], "").to_numpy(zero_copy_only=False)
            grouped &= (source.characters > 0) & (target.characters > 0)
            columns = {"reason": reasons(source, target, sets=block["set"], filters=filters), "set": sets}
            columns |= {"grouped": grouped, "sources": source.key_prints, "targets": target.key_prints}
            measured.append(pd.DataFrame(columns | {"texts": combined(fingerprints(sources), fingerprints(targets))}))
            documents = pc.if_else(pa.array(grouped), source.keys, block["document"])
            file.write_batch(pa.record_batch([sources, targets, documents, block["set"]], schema=SCHEMA))
    if not measured:
        raise UserError(f"{raw}: the file has no pairs")
    return pd.concat(measured, ignore_index=True), changed


def drop_repeated(measured: pd.DataFrame, *, near_duplicates: bool) -> None:
    """Write into `reason` which of the pairs that pass all filters repeat an earlier one of them."""

    def drop_all_but_first(name: str, columns: list[str]) -> None:
        passing = measured.loc[(measured["set"] < 0) & (measured["reason"] == 0), columns]
        measured.loc[passing.index[passing.duplicated()], "reason"] = REASONS.index(name)

    drop_all_but_first("duplicate", ["texts"])
    if not near_duplicates:
        drop_all_but_first("near_duplicate", ["sources", "targets"])


def connected(sources: pd.Series, targets: pd.Series) -> np.ndarray:
    """The group of each pair: a component of the bipartite graph in which each pair links its source to its target.

    Returns:
        the number of each pair's group, int32 of shape (pairs,).
    """
    (left, distinct_sources), (right, distinct_targets) = pd.factorize(sources), pd.factorize(targets)
    nodes = len(distinct_sources) + len(distinct_targets)
    edges = coo_array((np.ones(len(left), bool), (left, right + len(distinct_sources))), shape=(nodes, nodes))
    return connected_components(edges, directed=False)[1][left]


def group_names(waiting: BinaryIO, measured: pd.DataFrame) -> tuple[np.ndarray, dict[int, str]]:
    """The names of the groups with several source keys; any other group is named by its only key.

    Returns:
        the group of each pair, int of shape (pairs,), -1 for groups with one key; and the name of each other group.
    """
    pairs = measured[measured["grouped"]]
    groups = pd.Series(connected(pairs["sources"], pairs["targets"]), pairs.index)
    choices = groups[~pairs["sources"].duplicated()]  # one row per source key
    choices = choices[choices.duplicated(keep=False)]
    names: dict[int, str] = {}
    for start, block in waiting_blocks(waiting):
        here = choices.loc[start : start + block.num_rows - 1]
        keys = block["document"].take(pa.array(here.index - start)).to_pylist()
        for group, key in zip(here.tolist(), keys, strict=True):
            names[group] = min(key, names.get(group, key))
    return groups.where(groups.isin(choices), -1).reindex(measured.index, fill_value=-1).to_numpy(), names


def kept_blocks(waiting: BinaryIO, measured: pd.DataFrame) -> Iterator[pa.RecordBatch]:
    """The pairs that are kept, in order, with the names of their groups as documents."""
    groups, names = group_names(waiting, measured)
    all_kept = measured["reason"].to_numpy() == 0
    for start, block in waiting_blocks(waiting):
        here = slice(start, start + block.num_rows)
        kept, named = all_kept[here], groups[here] >= 0
        if kept.any():
            chosen = pa.array([names[group] for group in groups[here][named].tolist()], pa.string())
            documents = pc.replace_with_mask(block["document"], pa.array(named), chosen)
            yield block.set_column(2, "document", documents).filter(pa.array(kept))


def waiting_blocks(waiting: BinaryIO) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The blocks of the temporary file, each with its first row."""
    start = 0
    with pa.ipc.open_file(waiting) as file:
        for number in range(file.num_record_batches):
            block = file.get_batch(number)
            yield start, block
            start += block.num_rows


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
