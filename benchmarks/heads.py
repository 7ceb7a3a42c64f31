"""Time and memory of the analysis of heads, by number of sentences: the stages `relevance` and `analyse_heads` on one model.

Each stage runs as it does in the pipeline, in a separate process, with the default keys of the section `heads`, on the first
n sentences of the analysis set (the pipeline measures relevance on the development set). Seconds are wall-clock, start
of the process and reading of the model included; memory is the largest resident set of the process.

    python benchmarks/heads.py results/default/tatoeba_en_fr > benchmarks/heads.md
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from specialized_heads.config.experiment import Heads
from specialized_heads.corpus.tokens import load_tokens, write_tokens
from specialized_heads.heads.maps import select

SENTENCES = (250, 500, 1000)
RELEVANCE, ANALYSIS = "specialized_heads.heads.relevance.measure", "specialized_heads.heads.analyse"
COLUMNS = ["stage", "sentences", "source tokens", "target tokens", "seconds", "processor seconds", "peak memory, MiB"]


def cut(corpus: Path, folder: Path, *, sentences: int) -> dict[str, Path]:
    """Write the first sentences of the analysis set, their subwords and their trees, into a folder."""
    files = {name: folder / f"cut.{name}" for name in ("text", "analysis", "parses")}
    text, trees = (pq.read_table(corpus / name) for name in ("corpus/analysis.parquet", "parses/analysis.parquet"))
    if len(text) < sentences:
        raise SystemExit(f"{corpus}: the analysis set has {len(text)} sentences, fewer than {sentences}")
    pq.write_table(text.slice(0, sentences), files["text"])
    pq.write_table(trees.filter(pc.less(trees["sentence"], sentences)), files["parses"])
    store = select(load_tokens(corpus / "corpus/tokens/analysis.safetensors"), list(range(sentences)))
    block = {
        "source": (store.source, store.source_lengths),
        "target": (store.target, store.target_lengths),
    }
    write_tokens(files["analysis"], [block])
    return files


def run(module: str, settings: dict[str, object], files: dict[str, Path]) -> tuple[float, float, float]:
    """Run a stage; wall-clock seconds, processor seconds, and the largest resident set in MiB."""
    command = [sys.executable, "-m", module, "--settings", json.dumps(settings)]
    for name, path in files.items():
        command += [f"--{name}", str(path)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    messages = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"{module}: {messages}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    (corpus,) = map(Path, sys.argv[1:])
    heads, device = Heads().model_dump(), "cpu"
    model = corpus / "models/baseline/seed1/model.safetensors"
    threads = os.environ.get("OMP_NUM_THREADS") or torch.get_num_threads()
    print(f"`python benchmarks/heads.py {'/'.join(corpus.parts[-3:])}`: its baseline of seed 1, {threads} thread(s),")
    print(f"Python {platform.python_version()}, torch {torch.__version__}.\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for sentences in SENTENCES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            files = cut(corpus, folder, sentences=sentences)
            made = {name: folder / f"made.{name}" for name in ("relevance", "output", "examples", "report")}
            stages = {
                RELEVANCE: (
                    {"heads": heads, "device": device},
                    {"model": model, "dev": files["analysis"], "output": made["relevance"], "report": made["report"]},
                ),
                ANALYSIS: (
                    {"heads": heads, "device": device, "preprocess": "none", "language": "en", "seed": 1},
                    {
                        "model": model,
                        "bpe": corpus / "corpus/bpe.source.model",
                        "train": corpus / "corpus/tokens/train.safetensors",
                        **files,
                        **made,
                    },
                ),
            }
            for module, (settings, given) in stages.items():
                store = load_tokens(files["analysis"])
                tokens = [int(lengths.sum()) for lengths in (store.source_lengths, store.target_lengths)]
                seconds, processor, memory = run(module, settings, given)
                cells = [module, str(sentences), *(f"{count:,}" for count in tokens)]
                cells += [f"{seconds:.1f}", f"{processor:.1f}", f"{memory:,.0f}"]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
