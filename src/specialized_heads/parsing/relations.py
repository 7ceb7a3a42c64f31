"""Stage relations: how often each dependency relation occurs, and how well a fixed offset would
find it (section 5.2).

The fixed offset that a syntactic head must beat always looks at one relative position: for each
relation and direction, the most frequent distance, in words, from the attending word to its target.

A main type includes its subtypes: `nsubj` has the arcs of `nsubj:pass` too, and `comp:obj` those of
`comp:obj@lvc`. Relations of Stanford Dependencies that differ from Universal Dependencies in name
only are the same: the paper's dobj is `obj`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, product
from typing import NamedTuple

import pyarrow as pa
from pydantic import Field

from specialized_heads.parsing.words import Word, read_parses
from specialized_heads.stage import Files, Section, UserError, command, log
from specialized_heads.tables import write_table

# Relations that differ in name only: Stanford Dependencies (de Marneffe and Manning 2008) ->
# Universal Dependencies, version 2.
STANFORD = {
    "dobj": "obj",
    "nsubjpass": "nsubj:pass",
    "csubjpass": "csubj:pass",
    "auxpass": "aux:pass",
    "rcmod": "acl:relcl",
    "relcl": "acl:relcl",
    "poss": "nmod:poss",
    "prt": "compound:prt",
    "num": "nummod",
}
SUBTYPE = re.compile("[:@]")  # begins a subtype; @ in Surface-Syntactic Universal Dependencies
DIRECTIONS = ("head_to_dependent", "dependent_to_head")  # the paper's v→s and s→v, for nsubj

SCHEMA = pa.schema(
    dict.fromkeys(("relation", "direction"), pa.string())
    | dict.fromkeys(("arcs", "baseline_offset"), pa.int64())
    | {"baseline_accuracy": pa.float64()}
    | dict.fromkeys(("offsets", "counts"), pa.list_(pa.int64()))
)


class Settings(Section):
    relations: list[str] = Field(min_length=1)


class Arc(NamedTuple):
    """A dependency between two words, as positions from 0; `relation` is the requested name."""

    relation: str
    head: int
    dependent: int


def canonical(relation: str) -> str:
    """The name of a relation in Universal Dependencies."""
    return STANFORD.get(relation, relation)


def arcs(words: Sequence[Word], relations: Iterable[str]) -> list[Arc]:
    """The arcs of one sentence with a requested relation (Universal or Stanford Dependencies), by
    position of the dependent.

    One that matches two requests (`nsubj` and `nsubj:pass`) appears twice.
    """
    requested = [(relation, canonical(relation)) for relation in relations]
    matches = []
    for dependent, word in enumerate(words):
        if word.head > 0:
            name = canonical(word.relation)
            names = {name, *(name[: mark.start()] for mark in SUBTYPE.finditer(name))}
            found = [relation for relation, wanted in requested if wanted in names]
            matches += [Arc(relation, word.head - 1, dependent) for relation in found]
    return matches


def explain_absent(absent: Sequence[str], parses: Iterable[Sequence[Word]]) -> str:
    known = {canonical(word.relation) for words in parses for word in words if word.head > 0}
    present = ", ".join(sorted(known)) or "no relation at all"
    return f"{', '.join(map(repr, absent))}; the parses contain {present}"


def offset_baseline(counts: Counter[int]) -> tuple[int | None, float | None]:
    """The most frequent offset (ties: the nearest, then the negative one) and its share of the
    arcs; None, None without arcs."""
    if not counts:
        return None, None
    offset = min(counts, key=lambda offset: (-counts[offset], abs(offset), offset))
    return offset, counts[offset] / counts.total()


def relation_table(sentences: Iterable[Sequence[Arc]], relations: list[str]) -> pa.Table:
    """Relative positions in the arcs of each sentence: one row per relation and direction, in the
    requested order.

    `offsets` and `counts` are the histogram of relative positions (target minus attending word), by
    increasing offset.
    """
    positions = {key: Counter() for key in product(relations, DIRECTIONS)}
    for arc in chain.from_iterable(sentences):
        offset = arc.dependent - arc.head
        positions[arc.relation, "head_to_dependent"][offset] += 1
        positions[arc.relation, "dependent_to_head"][-offset] += 1
    rows = []
    for key, counts in positions.items():
        offsets = sorted(counts)
        histogram = offsets, [counts[offset] for offset in offsets]
        row = (*key, counts.total(), *offset_baseline(counts), *histogram)
        rows.append(dict(zip(SCHEMA.names, row, strict=True)))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@command("parses", "output", settings=Settings)
def main(args: Files, settings: Settings) -> None:
    names = {}
    for relation in settings.relations:
        if (other := names.setdefault(canonical(relation), relation)) != relation:
            raise UserError(
                f"heads.relations: {other} and {relation} are one relation; keep one of them"
            )
    parses, relations = read_parses(args.parses), settings.relations
    table = relation_table((arcs(words, relations) for words in parses.values()), relations)
    arcs_of = dict(zip(table["relation"].to_pylist(), table["arcs"].to_pylist()))
    absent = [relation for relation, number in arcs_of.items() if not number]
    explained = explain_absent(absent, parses.values())
    if len(absent) == len(arcs_of):
        raise UserError(f"heads.relations: none of them occurs in {args.parses}: {explained}")
    if absent:
        log.warning("%s: no arc of %s", args.parses, explained)
    write_table(args.output, table, compression="zstd")
