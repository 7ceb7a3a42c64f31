"""Stage split: which documents are held out, and which training pairs must go because they occur there.

Documents are put in the order of a hash of their name, which depends neither on a seed nor on the rest of the corpus. The
analysis set takes documents from the front, each whole, until it has its size; a document that does not fit into what is
left is passed over. Then the test set is dealt in the same way from what remains, then the development set; the rest is
for training. So the analysis sentences, whose parses are kept, do not change with the sizes of the other sets.

Sentences that occur twice (`near_duplicates`: equal bags, which includes equal keys) are resolved in favour of the set
dealt first. A held-out pair whose source or target occurs in an earlier held-out set is dropped, and so is one whose
source occurs already in its own set. A training pair whose source or target occurs in any held-out set is dropped.
"""

from collections.abc import Iterable

import numpy as np

from specialized_heads.config import Section, Split
from specialized_heads.corpus.near_duplicates import fingerprint, fingerprints
from specialized_heads.corpus.pairs import Pairs, read_pairs, write_pairs
from specialized_heads.stage import UserError, arguments, log, read_json, run, write_json

HELD_OUT = ("analysis", "test", "dev")  # in the order of dealing
NAMES = ("train", "dev", "test", "analysis")
# Part of every result: another salt holds out other documents, and the embedded parses no longer cover them.
SALT = "specialized heads"
# Whole documents seldom fill a set to the last pair.
LEAST_FILLED = 0.9


class Settings(Section):
    """What affects the result: the sizes, as in the configuration."""

    split: Split


def ordered_groups(documents: list[str]) -> list[list[int]]:
    """The rows of each document, in file order; documents in the order of their salted hash."""
    groups: dict[str, list[int]] = {}
    for row, document in enumerate(documents):
        groups.setdefault(document, []).append(row)
    return [groups[name] for name in sorted(groups, key=lambda name: (fingerprint(f"{SALT}\n{name}"), name))]


def divide(pairs: Pairs, *, sizes: Split) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Deal documents to the sets and drop what occurs in more than one.

    Args:
        pairs: the clean pairs with their documents.
        sizes: pairs per held-out set; exact, or short by less than the smallest document that is left, and by at most 10%.

    Returns:
        the rows of each set (held-out sets in the order of dealing, training in file order), and the number of pairs
        dropped for each reason. Together they are as many as `pairs`.

    Raises:
        UserError: the corpus is too small for the sizes, or its documents are too large.
    """
    wanted = sum(getattr(sizes, name) for name in HELD_OUT)
    if len(pairs) <= wanted:
        asked = " + ".join(f"{name} {getattr(sizes, name)}" for name in HELD_OUT)
        raise UserError(
            f"the corpus has {len(pairs)} clean pairs, too few for split: {asked} = {wanted} and a training set; "
            "make the held-out sets smaller, relax `filters` or use more text"
        )
    source_keys, source_bags = fingerprints(pairs.source)
    target_keys, target_bags = fingerprints(pairs.target)

    sets: dict[str, list[int]] = {}
    dropped = dict.fromkeys(("held_out_overlap", "held_out_duplicate", "train_overlap", "train_near_overlap"), 0)
    groups = ordered_groups(pairs.document)
    other_sources: set[int] = set()
    other_targets: set[int] = set()
    for name in HELD_OUT:
        size = getattr(sizes, name)
        chosen: list[int] = []
        own_sources: set[int] = set()
        left: list[list[int]] = []
        for position, group in enumerate(groups):
            if len(chosen) == size:
                left.extend(groups[position:])
                break
            apart = [r for r in group if source_bags[r] not in other_sources and target_bags[r] not in other_targets]
            first = {bag: row for row, bag in zip(reversed(apart), source_bags[apart[::-1]].tolist())}
            new = sorted(row for bag, row in first.items() if bag not in own_sources)
            if not new or len(new) > size - len(chosen):
                left.append(group)
                continue
            chosen.extend(new)
            own_sources.update(source_bags[new].tolist())
            dropped["held_out_overlap"] += len(group) - len(apart)
            dropped["held_out_duplicate"] += len(apart) - len(new)
        if len(chosen) < LEAST_FILLED * size:
            raise UserError(
                f"split.{name}: only {len(chosen)} of {size} pairs could be held out in whole documents: {len(groups)} documents "
                f"were left, {len(pairs) / len(set(pairs.document)):.0f} pairs each on average; "
                "make the set smaller, use more text, or give smaller documents (group_by: sentence)"
            )
        sets[name] = chosen
        other_sources.update(own_sources)
        other_targets.update(target_bags[chosen].tolist())
        groups = left

    rest = np.sort(np.array([row for group in groups for row in group], dtype=np.int64))
    held = np.concatenate([sets[name] for name in HELD_OUT])
    same = np.isin(source_keys[rest], source_keys[held]) | np.isin(target_keys[rest], target_keys[held])
    near = np.isin(source_bags[rest], source_bags[held]) | np.isin(target_bags[rest], target_bags[held])
    dropped["train_overlap"] = int(same.sum())
    dropped["train_near_overlap"] = int((near & ~same).sum())
    sets["train"] = rest[~(same | near)].tolist()
    if not sets["train"]:
        raise UserError(f"no training pair is left of {len(pairs)} ({dropped}); make the held-out sets smaller")
    return sets, dropped


def words(texts: Iterable[str]) -> int:
    """Words separated by single spaces."""
    return sum(text.count(" ") + 1 for text in texts)


def main() -> None:
    """Read `--input` and its `--clean-counts`; write `--train`, `--dev`, `--test`, `--analysis` and `--counts`."""
    files = arguments(__doc__, files=["input", "clean-counts", *NAMES, "counts"])
    settings = Settings.model_validate(files.settings)
    pairs = read_pairs(files.input)
    sets, dropped = divide(pairs, sizes=settings.split)
    counts = read_json(files.clean_counts) | {"dropped_in_splitting": dropped, "splits": {}}
    for name in NAMES:
        part = pairs.take(sets[name])
        write_pairs(getattr(files, name), part)
        counts["splits"][name] = {
            "pairs": len(part),
            "groups": len(set(part.document)),
            "source_words": words(part.source),
            "target_words": words(part.target),
        }
    write_json(files.counts, counts)
    log.info("split: %s; dropped %s", {name: len(sets[name]) for name in NAMES}, dropped)


if __name__ == "__main__":
    run(main)
