"""How fast the clean and the split stage are and how much memory they take, on millions of made-up pairs.

The words, and how often each occurs, are those of the embedded EN-RU corpus; sentences have the lengths of news text. In the
mixture are typographic quotes, HTML entities, soft hyphens, loose spaces, decomposed letters, empty and overlong sentences,
copies, wrong scripts, exact and near duplicates, and sentences with several translations. No pair has a document, so that
all of them are grouped by sentence, which is the most work. Both stages run as the pipeline runs them, on one thread.

    python benchmarks/cleaning.py 5000000 > benchmarks/cleaning.md
"""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.config.sections import Filters, Split
from specialized_heads.corpus.pairs import BLOCK, SCHEMA, block, read_pairs, write_blocks
from specialized_heads.corpus.split import NAMES

CORPUS = Path(__file__).parents[1] / "resources" / "libreoffice_en_ru" / "corpus.parquet"
FILTERS = Filters(script=0.5, near_duplicates=False)
SPLIT = Split(dev=3000, test=3000, analysis=50_000)
LANGUAGES = {"source_language": "en", "target_language": "ru"}
SEED = 1

# What a share of the pairs is made into; the rest stays as it is.
Change = Callable[[str, str], tuple[str, str]]
CHANGES: list[tuple[float, Change]] = [
    (0.05, lambda s, t: (f"“{s}”", f"«{t}»")),
    (0.02, lambda s, t: (s.replace(" ", " &amp;quot;", 1), t.replace(" ", " &quot;", 1))),
    (0.02, lambda s, t: (s.replace(" ", "  ", 1) + " ", t.replace(" ", "\u00a0", 1))),
    (0.01, lambda s, t: (s, t.replace("й", "и\u0306").replace("о", "о\u00ad", 1))),
    (0.01, lambda s, t: (s, "")),
    (0.02, lambda s, t: (s, s)),
    (0.02, lambda s, t: (s, s[::-1])),
    (0.02, lambda s, t: (s * 8, t * 8)),
    (0.02, lambda s, t: (s, t[: len(t) // 5])),
]
EXACT, NEAR, RETRANSLATED = 0.05, 0.03, 0.05  # shares of pairs that repeat an earlier one of their block


def made_up(pairs: int) -> Iterator[pa.RecordBatch]:
    """Blocks of pairs, the same in every run."""
    random = np.random.default_rng(SEED)
    corpus = read_pairs(CORPUS)
    vocabularies = []
    translated = [row for row, (s, t) in enumerate(zip(corpus.source, corpus.target)) if s != t]
    for texts in (corpus.source, corpus.target):
        counts = Counter(word for row in translated for word in texts[row].split())
        shares = np.cumsum(np.array(list(counts.values())) / counts.total())
        vocabularies.append((pa.array(list(counts), pa.string()), shares))
    for start in range(0, pairs, BLOCK):
        rows = min(BLOCK, pairs - start)
        lengths = np.clip(random.lognormal(2.9, 0.6, rows), 1, 95).astype(np.int32)  # median 18 words, mean 21
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        sides = []
        for words, shares in vocabularies:
            drawn = np.minimum(np.searchsorted(shares, random.random(int(lengths.sum()))), len(words) - 1)
            sides.append(
                pc.binary_join(pa.ListArray.from_arrays(offsets, words.take(pa.array(drawn))), " ").to_pylist()
            )
        sources, targets = sides
        chance = random.random(rows)
        for share, change in CHANGES:
            for row in np.flatnonzero((chance >= 0) & (chance < share)).tolist():
                sources[row], targets[row] = change(sources[row], targets[row])
            chance -= share
        earlier = (random.random(rows) * np.arange(rows)).astype(int).tolist()
        kinds = random.random(rows)
        for row in np.flatnonzero(kinds < EXACT + NEAR + RETRANSLATED).tolist():
            sources[row] = sources[earlier[row]]
            if kinds[row] < EXACT + NEAR:
                targets[row] = targets[earlier[row]]
            if kinds[row] < NEAR:
                sources[row] = sources[row].upper() + "!"
        yield block(sources, targets)


def run_stage(module: str, *arguments: str) -> tuple[float, float, float]:
    """Run a stage; returns its wall-clock seconds, its processor seconds, and its peak memory in GiB."""
    command = [sys.executable, "-m", f"specialized_heads.corpus.{module}", *arguments]
    started = time.perf_counter()
    process = os.posix_spawn(sys.executable, command, os.environ | {"OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"{module} failed")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def main() -> None:
    pairs = int(sys.argv[1])
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raw, clean = folder / "raw.parquet", folder / "clean.parquet"
        card, clean_counts, counts = folder / "raw.json", folder / "clean.json", folder / "counts.json"
        write_blocks(raw, made_up(pairs), schema=SCHEMA)
        card.write_text(json.dumps({"read": pairs, "dropped": {}, "pairs": pairs}), encoding="utf-8")
        cleaning = run_stage(
            "clean",
            *("--input", str(raw), "--output", str(clean), "--counts", str(clean_counts)),
            *("--settings", json.dumps({"filters": FILTERS.model_dump(), **LANGUAGES})),
        )
        splitting = run_stage(
            "split",
            *("--input", str(clean), "--raw-card", str(card), "--clean-counts", str(clean_counts)),
            *(part for split in NAMES for part in (f"--{split}", str(folder / f"{split}.parquet"))),
            *("--counts", str(counts), "--settings", json.dumps({"split": SPLIT.model_dump()})),
        )
        counted = json.loads(counts.read_text(encoding="utf-8"))
        size = raw.stat().st_size

    print(
        f"`python benchmarks/cleaning.py {pairs}`: {pairs:,} pairs, raw.parquet {size / 2**20:,.0f} MiB, one thread.\n"
    )
    print("| stage | pairs | seconds | processor seconds | pairs per processor second | peak memory, GiB |")
    print("|---|---|---|---|---|---|")
    for stage, rows, (wall, cpu, memory) in (
        ("clean", counted["raw"], cleaning),
        ("split", counted["clean"], splitting),
    ):
        print(f"| {stage} | {rows:,} | {wall:.0f} | {cpu:.0f} | {rows / cpu:,.0f} | {memory:.2f} |")
    splits = {split: numbers["pairs"] for split, numbers in counted["splits"].items()}
    steps = ("changed_in_cleaning", "dropped_in_cleaning", "groups", "dropped_in_splitting")
    print("\nCounts of the stages: " + json.dumps({step: counted[step] for step in steps} | {"splits": splits}))


if __name__ == "__main__":
    main()
