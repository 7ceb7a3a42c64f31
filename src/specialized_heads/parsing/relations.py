"""Stage relations: how often each dependency relation occurs, and how well a fixed offset would find it (section 5.2).

The baseline that a syntactic head must beat is a head that always looks at one relative position: for each relation and
direction, the most frequent distance, in words, from the word that looks to the word it should find. Subtypes count
with their main type (`nsubj:pass` is an `nsubj`); UD's `obj` is the paper's dobj.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, field_validator

from specialized_heads.config import Section
from specialized_heads.parsing.words import Word, read_parses
from specialized_heads.stage import arguments, atomic, log, run

DIRECTIONS = ("head_to_dependent", "dependent_to_head")  # the paper's v→s and s→v, for nsubj

SCHEMA = pa.schema(
    {
        "relation": pa.string(),
        "direction": pa.string(),
        "arcs": pa.int64(),
        "baseline_offset": pa.int64(),
        "baseline_accuracy": pa.float64(),
        "offsets": pa.list_(pa.int64()),
        "counts": pa.list_(pa.int64()),
    }
)


class Settings(Section):
    """What the stage is told."""

    relations: list[str] = Field(min_length=1)

    @field_validator("relations")
    @classmethod
    def _main_types(cls, relations: list[str]) -> list[str]:
        for relation in relations:
            if ":" in relation:
                raise ValueError(
                    f"{relation!r}: subtypes count with their main type, so ask for {relation.split(':')[0]!r}"
                )
        return relations


class Arc(NamedTuple):
    """A dependency between two words of a sentence, both as positions in its list of words, from 0."""

    relation: str
    head: int
    dependent: int


def arcs(words: Sequence[Word], relations: Iterable[str]) -> list[Arc]:
    """List the arcs of one sentence.

    Args:
        words: of the sentence, from `read_parses`.
        relations: main types of UD relations.

    Returns:
        the arcs whose main type is asked for, by position of the dependent; `Arc.relation` is the main type.
    """
    found = []
    for dependent, word in enumerate(words):
        relation = word.relation.split(":")[0]
        if relation in relations and word.head > 0:
            found.append(Arc(relation, word.head - 1, dependent))
    return found


def offset_baseline(counts: Counter[int]) -> tuple[int | None, float | None]:
    """The best fixed offset and its accuracy.

    Args:
        counts: arcs by relative position in words.

    Returns:
        the most frequent offset (of equally frequent ones the nearest, and of -k and k the former) and its share of the
        arcs; None, None without arcs.
    """
    if not counts:
        return None, None
    offset = min(counts, key=lambda offset: (-counts[offset], abs(offset), offset))
    return offset, counts[offset] / counts.total()


def relation_table(parses: Iterable[Sequence[Word]], relations: list[str]) -> pa.Table:
    """Count relative positions.

    Args:
        parses: the words of each sentence.
        relations: main types of UD relations.

    Returns:
        one row per relation and direction, in the order asked for; columns as in `SCHEMA`. `offsets` and `counts` are
        the histogram of positions (target word minus the word that looks), by increasing offset.
    """
    positions = {(relation, direction): Counter() for relation in relations for direction in DIRECTIONS}
    for words in parses:
        for arc in arcs(words, relations):
            offset = arc.dependent - arc.head
            positions[arc.relation, "head_to_dependent"][offset] += 1
            positions[arc.relation, "dependent_to_head"][-offset] += 1
    rows = []
    for (relation, direction), counts in positions.items():
        offset, accuracy = offset_baseline(counts)
        rows.append(
            {
                "relation": relation,
                "direction": direction,
                "arcs": counts.total(),
                "baseline_offset": offset,
                "baseline_accuracy": accuracy,
                "offsets": sorted(counts),
                "counts": [counts[offset] for offset in sorted(counts)],
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def main() -> None:
    """Write `--output` (relations.parquet) from `--parses` (parses/analysis.parquet)."""
    args = arguments(__doc__, files=("parses", "output"))
    settings = Settings.model_validate(args.settings)
    table = relation_table(read_parses(args.parses).values(), settings.relations)
    for row in table.to_pylist():
        if not row["arcs"] and row["direction"] == DIRECTIONS[0]:
            log.warning("relation %s does not occur in %s", row["relation"], args.parses)
    with atomic(args.output) as temporary:
        pq.write_table(table, temporary, compression="zstd")


if __name__ == "__main__":
    run(main)
