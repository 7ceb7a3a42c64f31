"""What a user of an exported model gets: sentences per second, size on disk and BLEU, here and
under CTranslate2.

Each model is exported for CTranslate2 in float32 and int8, and the whole test set is translated
three ways: by this engine, and by CTranslate2 with either type. All run on the same threads, in
rounds, in interleaved order. Batches hold sentences of similar length; with one sentence a batch,
every tenth sentence is translated. Every model translates once before its time counts.

    snakemake --cores all \
        results/pruning/tatoeba_en_de/export/{baseline,pruned/all_heads{40,20}}/seed1/model.json ...
    python benchmarks/exported.py results/pruning/tatoeba_en_de/corpus/test.parquet EXPORT... \
        > benchmarks/exported.md
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import numpy as np
import pyarrow.parquet as pq
import torch

sys.path.append(str(Path(__file__).parents[1]))
from benchmarks.engine import machine
from benchmarks.engine.report import table
from specialized_heads.evaluation import bleu
from specialized_heads.exchange.export import Translator, load_exported
from specialized_heads.exchange.export_to import export_to
from specialized_heads.model.decoding import translate

BATCHES = {1: 10, 16: 1, 64: 1}  # sentences per batch: one sentence of how many is translated
TYPES = ("float32", "int8")
ROUNDS = 3
HEAD = ("heads", "engine", "size, MB", "BLEU", *(f"sentences/s, batch {size}" for size in BATCHES))
# translations of sentences, so many in a batch; all are ids
Search = Callable[[list[list[int]], int], list[list[int]]]


def here(translator: Translator) -> Search:
    """Translation by this engine, whose threads share each batch."""

    def search(sources: list[list[int]], size: int) -> list[list[int]]:
        batches = (sources[start : start + size] for start in range(0, len(sources), size))
        settings = translator.decoding.model_dump()
        return [ids for batch in batches for ids in translate(translator.model, batch, **settings)]

    return search


def under_ctranslate2(folder: Path, translator: Translator) -> Search:
    """Translation by CTranslate2, each of whose threads translates batches of its own, the fastest
    way for small models."""
    engine = ctranslate2.Translator(
        str(folder), inter_threads=torch.get_num_threads(), intra_threads=1
    )
    settings, pieces = translator.decoding, translator.source.id_to_piece
    number_of = translator.target.piece_to_id

    def search(sources: list[list[int]], size: int) -> list[list[int]]:
        results = engine.translate_batch(
            [[pieces(number) for number in ids] for ids in sources],
            max_batch_size=size,
            beam_size=settings.beam,
            min_decoding_length=0,
            max_decoding_length=int(settings.max_length_ratio * max(map(len, sources))) + 10,
        )
        return [[number_of(piece) for piece in result.hypotheses[0]] for result in results]

    return search


def megabytes(folder: Path) -> str:
    weights = [path for path in folder.glob("model.*") if path.suffix != ".json"]
    return f"{sum(path.stat().st_size for path in weights) / 1e6:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("test", type=Path, help="Parquet file with the columns source and target")
    parser.add_argument(
        "exported", type=Path, nargs="+", help="folders that the rule `export` has written"
    )
    options = parser.parse_args()
    facts = machine.describe(torch.get_num_threads(), command=["python", *sys.argv])
    texts, references = (
        pq.read_table(options.test)[side].to_pylist() for side in ("source", "target")
    )
    with tempfile.TemporaryDirectory() as temporary:
        systems: list[tuple[str, Translator, Search, Path]] = []
        for number, exported in enumerate(options.exported):
            translator = load_exported(exported, device="cpu")
            systems.append(("ours", translator, here(translator), exported))
            for quantization in TYPES:
                folder = Path(temporary, f"{number}_{quantization}")
                export_to(exported, folder, to="ctranslate2", quantization=quantization)
                search = under_ctranslate2(folder, translator)
                systems.append((f"CTranslate2 {quantization}", translator, search, folder))
        encoded = translator.encode(texts)  # all have the same vocabulary
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        sources = [encoded[i] for i in order]
        seconds: dict[tuple[int, int], list[float]] = {}
        scores = {}
        for round_ in range(ROUNDS):
            for number in np.roll(range(len(systems)), round_):
                _, translator, search, _ = systems[number]
                search(sources[:8], 8)
                for size, every in BATCHES.items():
                    started = time.perf_counter()
                    outputs = search(sources[::every], size)
                    speed = len(sources[::every]) / (time.perf_counter() - started)
                    seconds.setdefault((number, size), []).append(speed)
                lines = translator.target.decode(outputs)
                metric = bleu(translator.card.target_language, lowercase=False)
                scores[number] = metric.corpus_score(lines, [[references[i] for i in order]]).score
                machine.say(f"round {round_ + 1}/{ROUNDS}, system {number + 1}/{len(systems)}")
        rows = []
        for number, (engine, translator, _, folder) in enumerate(systems):
            architecture = translator.model.architecture
            kept = (architecture.encoder, architecture.decoder, architecture.cross)
            heads = "; ".join(" ".join(str(len(layer)) for layer in layers) for layers in kept)
            speeds = [f"{np.median(seconds[number, size]):,.0f}" for size in BATCHES]
            rows.append((heads, engine, megabytes(folder), f"{scores[number]:.2f}", *speeds))
    print(
        "# Exported models\n\nMade by `benchmarks/exported.py`, whose first lines say what is "
        "measured.\n"
    )
    print(table(("", ""), [(f"**{name}**", value) for name, value in facts.items()]))
    print(
        "\nHeads: those of each layer, in encoder self-attention; decoder self-attention; "
        "cross-attention. CTranslate2 has one "
        "number of heads per stack and pads smaller layers. Size: of the weights and what "
        "describes them. Speeds: medians of "
        f"{ROUNDS} rounds.\n"
    )
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
