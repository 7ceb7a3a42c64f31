"""Stage clean: normalise the text, drop pairs that are not translations, and group the pairs that
share sentences.

Text is normalised (`normalise`), filters and lost characters (U+FFFD) drop pairs, then all but the
first of equal pairs are dropped. A dropped pair is counted under the first reason that applies.
Held-out sets that the source assigns are benchmarks: from `dev` and `test` only pairs without text
are dropped. Of `analysis` the source side is judged as if it were both sides, and the target may
be empty; but neither may have too many characters, since attention maps of all are made.

Pairs without a document are grouped by sentence: pairs whose sources or targets have equal keys,
directly or through other pairs, form one group, so no sentence has one translation in training and
another in test. The smallest source key of a group becomes the document of its pairs. Groups are
found before anything is dropped, so that a filter does not change the groups of the pairs it keeps.
Pairs that the source assigns to a held-out set are neither grouped nor compared with others.

A corpus of millions is not held in memory: its blocks are normalised and judged once and stored in
a temporary file while fingerprints decide about duplicates and groups.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from specialized_heads import stage
from specialized_heads.corpus.normalise import CHANGES, LOST, normalise, sentence_key
from specialized_heads.corpus.pairs import HELD_OUT, SCHEMA, beside, read_blocks, write_blocks
from specialized_heads.experiment.sections import Filters

MAX_CHARACTERS = 1000  # of a text
# Why a pair is dropped, in order, and what to do if many are. A reason is stored as its position in
# `REASONS`; "": it is kept.
REMEDIES = {
    "empty": "check `source`: one side has no text",
    "too_long": "raise filters.max_words, or divide the text into sentences",
    "too_many_characters": f"divide the text into sentences of at most {MAX_CHARACTERS} characters",
    "uneven": "if they are translations, raise filters.max_ratio",
    "copy": "check `source`: both sides are equal",
    "lost_character": "check the encoding of `source`: characters of these texts are lost",
    "duplicate": "the first of equal pairs is kept, which may be what you want",
}
REASONS = ("", *REMEDIES)
# A character of Chinese, Japanese or Korean says as much as about this many letters: at 2.5, the
# default ratio drops 0.1% of the English-Chinese pairs of LibreOffice's help, 1.7% of the Japanese
# and 1.2% of the Korean ones; at 1, 46%, 14% and 11%.
DENSE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"
DENSITY = 2.5

# Shares of the pairs that a filter may drop before it is warned of, and that all may drop together
# before it is an error.
MUCH, MOST = 0.1, 0.9

# The held-out set of a pair, as a column of few bytes.
SETS = pd.CategoricalDtype(["", *HELD_OUT])


class Settings(stage.Section):
    filters: Filters


def clean(raw: Path, output: Path, *, settings: Settings) -> dict:
    """Clean a file of pairs into another one, and count the pairs.

    A filter that drops many pairs is a warning; a `UserError` if nearly none of the file passes, or
    none of a held-out set. `groups` counts the documents that the split stage assigns to sets.
    """
    with stage.atomic(output) as everything:
        tables: list[pd.DataFrame] = []
        changed = Counter(dict.fromkeys(CHANGES, 0))
        write_blocks(everything, normalised(raw, settings=settings, tables=tables, changed=changed))
        pairs = pd.concat(tables, ignore_index=True)
        passing = pairs.loc[(pairs["set"] == "") & (pairs["reason"] == 0), "texts"]
        pairs.loc[passing.index[passing.duplicated()], "reason"] = REASONS.index("duplicate")
        numbers = np.bincount(pairs["reason"], minlength=len(REASONS)).tolist()
        dropped = dict(zip(REASONS, numbers, strict=True))
        kept = dropped.pop("")
        filtered = len(pairs) - kept - dropped["duplicate"]
        if not kept or filtered >= MOST * len(pairs):
            why = ", ".join(f"{name} {count}" for name, count in dropped.items() if count)
            remedy = REMEDIES[max(dropped, key=dropped.__getitem__)]
            raise stage.UserError(
                f"{raw}: {filtered} of {len(pairs)} pairs do not pass the filters ({why}); {remedy}"
            )
        for name, count in dropped.items():
            if count > MUCH * len(pairs):
                share = f"{count} of {len(pairs)} pairs are dropped as {name}"
                share += f" ({100 * count / len(pairs):.0f}%)"
                stage.log.warning("%s: %s; %s", raw, share, REMEDIES[name])
        for name in HELD_OUT:
            own = pairs["reason"][pairs["set"] == name]
            if len(own) and own.all():
                raise stage.UserError(
                    f"{raw}: none of the {len(own)} pairs of your {name} set passes the filters; "
                    f"relax `filters`, or give no {name} set, so that one is held out of the other "
                    f"pairs"
                )
        write_blocks(everything, kept_blocks(everything, pairs))
    documents = [
        np.unique(fingerprints(block.filter(pc.equal(block["set"], ""))["document"].to_pylist()))
        for block in read_blocks(output, columns=["document", "set"])
    ]
    return {
        "raw": len(pairs),
        "changed_in_cleaning": dict(changed),
        "dropped_in_cleaning": dropped,
        "clean": kept,
        "groups": len(np.unique(np.concatenate(documents))),
    }


def normalised(
    raw: Path, *, settings: Settings, tables: list[pd.DataFrame], changed: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Normalise and judge all pairs; the document of a pair that is grouped by sentence is its
    source key.

    Args:
        tables: gains a table per block with one row per pair: `reason`, a position in `REASONS`;
            `set`, as in the file; `grouped`, whether by sentence; `sources`, `targets` and `texts`,
            the fingerprints of the keys and of the two texts together.
        changed: gains the number of pairs that each step of normalisation changed.
    """
    for block in stage.progress(read_blocks(raw), what="normalise and filter", unit="block"):
        texts, keys, changes = [], [], [set() for _ in range(block.num_rows)]
        for name in ("source", "target"):
            done = [normalise(text) for text in block[name].to_pylist()]
            changes = [some | more for some, (_, more) in zip(changes, done, strict=True)]
            texts.append(pa.array([text for text, _ in done], pa.string()))
            keys.append([sentence_key(text) for text, _ in done])
        changed.update(name for names in changes for name in names)
        sets = block["set"].to_pandas()
        table = pd.DataFrame({"set": sets.astype(SETS)})
        table["sources"], table["targets"] = map(fingerprints, keys)
        table["texts"] = fingerprints(pc.binary_join_element_wise(*texts, "\n").to_pylist())
        table["reason"] = reasons(
            *texts, copies=table["sources"] == table["targets"], sets=sets, filters=settings.filters
        )
        # A pair with an empty side links no others; it will be dropped.
        no_document = block["document"].to_pandas() == ""
        table["grouped"] = (sets == "") & no_document & (table["reason"] != REASONS.index("empty"))
        tables.append(table)
        documents = pc.if_else(
            pa.array(table["grouped"]), pa.array(keys[0], pa.string()), block["document"]
        )
        yield pa.record_batch([*texts, documents, block["set"]], schema=SCHEMA)


def measure(texts: pa.StringArray) -> pd.DataFrame:
    """The `characters` and `words` of each text, if single spaces separate its words, and whether
    some are `lost`.

    `length`: the characters, those of Chinese, Japanese and Korean as `DENSITY`.
    """
    characters = pc.utf8_length(texts).to_numpy()
    words = pc.count_substring(texts, " ").to_numpy() + (characters > 0)
    length = characters + (DENSITY - 1) * pc.count_substring_regex(texts, DENSE).to_numpy()
    lost = pc.match_substring(texts, LOST).to_numpy(zero_copy_only=False)
    return pd.DataFrame({"characters": characters, "words": words, "length": length, "lost": lost})


def reasons(
    source: pa.StringArray,
    target: pa.StringArray,
    *,
    copies: np.ndarray,
    sets: pd.Series,
    filters: Filters,
) -> np.ndarray:
    """The first reason to drop each pair of a block of normalised text, but for duplicates: a
    position in `REASONS`.

    `copies`: whether the two sides have equal keys; `sets`: the held-out set that the source
    assigns, "" for none.
    """
    sides = [measure(source), measure(target)]
    characters = np.fmax(*(side["characters"] for side in sides))
    sides[1] = sides[1].where(sets != "analysis", sides[0])
    least, most = np.fmin(*sides), np.fmax(*sides)
    drops = {
        "empty": least["characters"] == 0,
        "too_long": most["words"] > filters.max_words,
        "too_many_characters": characters > MAX_CHARACTERS,
        "uneven": most["length"] > filters.max_ratio * least["length"],
        "copy": copies & (sets == ""),
        "lost_character": most["lost"],
    }
    applies = ~np.isin(sets, ["dev", "test"])
    conditions = [drop & (applies | (name == "empty")) for name, drop in drops.items()]
    return np.select(conditions, [REASONS.index(name) for name in drops], 0).astype(np.int8)


def fingerprints(texts: Iterable[str]) -> np.ndarray:
    """64-bit hash of each text, uint64, to tell which are equal; faster than `fingerprint`, with
    other values.

    Among ten million texts, the chance that two different ones have equal hashes is below one in
    three hundred thousand.
    """
    return pd.util.hash_array(np.array([*texts], object), categorize=False)


def connected(sources: pd.Series, targets: pd.Series) -> np.ndarray:
    """The number of each pair's group: a component of the bipartite graph in which each pair links
    its source to its target."""
    left, distinct_sources = pd.factorize(sources)
    right, distinct_targets = pd.factorize(targets)
    nodes = len(distinct_sources) + len(distinct_targets)
    ends = (left, right + len(distinct_sources))
    edges = coo_array((np.ones(len(left), bool), ends), shape=(nodes, nodes))
    return connected_components(edges, directed=False)[1][left]


def kept_blocks(everything: Path, pairs: pd.DataFrame) -> Iterator[pa.RecordBatch]:
    """The pairs that are kept, in order, with the names of their groups as documents."""
    grouped = pairs.loc[pairs["grouped"], ["sources", "targets"]]
    groups = pd.Series(connected(grouped["sources"], grouped["targets"]), grouped.index)
    # A group with a single source key has its name already.
    distinct = groups[~grouped["sources"].duplicated()]
    pairs = pairs[["reason"]].assign(group=groups[groups.isin(distinct[distinct.duplicated()])])
    names: dict[float, str] = {}
    for block, rows in beside(everything, pairs):
        several = rows["group"].notna()
        keys = block["document"].filter(pa.array(several)).to_pylist()
        for group, key in zip(rows["group"][several], keys, strict=True):
            names[group] = min(key, names.get(group, key))
    for block, rows in beside(everything, pairs):
        several = rows["group"].notna()
        chosen = pa.array([names[group] for group in rows["group"][several]], pa.string())
        documents = pc.replace_with_mask(block["document"], pa.array(several), chosen)
        kept = block.set_column(2, "document", documents).filter(pa.array(rows["reason"] == 0))
        if kept.num_rows:
            yield kept


@stage.command("input", "output", "counts", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    counts = clean(files.input, files.output, settings=settings)
    stage.write_json(files.counts, counts)
    said = "clean: %(clean)d of %(raw)d pairs in %(groups)d groups; dropped %(dropped_in_cleaning)s"
    stage.log.info(said, counts)
