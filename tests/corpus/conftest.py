"""Makes small corpora, and cleans them."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from parallel_text import Pairs

from specialized_heads.corpus.clean import Settings, clean
from specialized_heads.corpus.pairs import SCHEMA, read_blocks, write_blocks
from specialized_heads.experiment.sections import Filters

Row = tuple[str, str, str, str]  # source, target, document, set


@pytest.fixture
def everyday() -> Pairs:
    """500 pairs of distinct words in English and Russian letters, each sentence a group of its
    own."""
    english = "cat dog house river child letter winter garden window teacher".split()
    russian = ["кот", "пёс", "дом", "река", "дитя", "письмо", "зима", "сад", "окно", "учитель"]
    verbs = [
        ("sees", "видит"),
        ("likes", "любит"),
        ("hears", "слышит"),
        ("finds", "находит"),
        ("knows", "знает"),
    ]
    pairs = Pairs([], [], [])
    for i, subject in enumerate(english):
        for j, thing in enumerate(english):
            for k, (verb, translated) in enumerate(verbs):
                pairs.source.append(f"The {subject} {verb} {'a' * (k + 1)} {thing}, number {i}.")
                pairs.target.append(
                    f"{russian[i]} {translated} {'а' * (j + 1)} {russian[j]}, номер {i}."
                )
                pairs.document.append(f"page {i}/{j}/{k}")
    return pairs


@pytest.fixture
def cleaned(tmp_path: Path):
    """`cleaned(row, row, ..., max_words=3)`: the rows that are kept, and the counts. A row may end
    after its target."""

    def run(*rows: Sequence[str], **filters: object) -> tuple[list[Row], dict]:
        whole = [(*row, *["", ""][len(row) - 2 :]) for row in rows]
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row)) for row in whole], schema=SCHEMA)
        write_blocks(tmp_path / "raw.parquet", table.to_batches())
        settings = Settings(filters=Filters(**filters))
        counts = clean(tmp_path / "raw.parquet", tmp_path / "clean.parquet", settings=settings)
        kept = [
            tuple(row.values())
            for block in read_blocks(tmp_path / "clean.parquet")
            for row in block.to_pylist()
        ]
        assert counts["raw"] == len(rows)
        assert counts["raw"] == counts["clean"] + sum(counts["dropped_in_cleaning"].values())
        assert counts["clean"] == len(kept)
        return kept, counts

    return run
