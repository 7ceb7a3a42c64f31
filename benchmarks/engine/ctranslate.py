"""CTranslate2, an inference engine in C++, with the weights of this engine; decoding only.

`exchange.ctranslate` converts the model. Its beam search ends hypotheses as ours does and divides by length^α, so in float32
its translations are ours. It is tried with one translation on all threads and with one on each; int8 is a system of its
own, since its outputs are others.
"""

import tempfile
from pathlib import Path

import ctranslate2

from benchmarks.engine.workload import BEAM, LENGTH_PENALTY, MAX_LENGTH_RATIO, Workload
from specialized_heads.exchange.ctranslate import write
from specialized_heads.model.checkpoint import load
from specialized_heads.model.transformer import Transformer


class System:
    compute_type = "float32"

    def __init__(self, workload: Workload, *, device: str, threads: int) -> None:
        self.workload, self.device, self.threads = workload, device, threads
        self.folder = Path(tempfile.mkdtemp(dir=workload.folder))
        convert(load(workload.weights), self.folder)

    def training_variants(self) -> list[str]:
        return []

    def decoding_variants(self) -> list[str]:
        if self.device == "cuda" or self.threads == 1:
            return ["one at a time"]
        return ["one at a time", f"{self.threads} at a time"]

    def prepare_decoding(self, variant: str) -> None:
        parallel = 1 if variant == "one at a time" else self.threads
        self.translator = ctranslate2.Translator(
            str(self.folder),
            device=self.device,
            compute_type=self.compute_type,
            inter_threads=parallel,
            intra_threads=self.threads // parallel,
        )
        self.parallel = parallel

    def translate(self, number: int) -> list[list[int]]:
        batch = self.workload.decode[number]
        sources = self.workload.sources(batch)
        results = self.translator.translate_batch(
            [[f"t{token}" for token in ids] for ids in sources],
            max_batch_size=-(-len(batch) // self.parallel),
            beam_size=BEAM,
            length_penalty=LENGTH_PENALTY,
            min_decoding_length=0,
            max_decoding_length=int(MAX_LENGTH_RATIO * max(map(len, sources))) + 10,
        )
        return [[int(token[1:]) for token in result.hypotheses[0]] for result in results]


class Int8System(System):
    """With weights and activations of the products in 8 bits."""

    compute_type = "int8"


def convert(model: Transformer, folder: Path) -> None:
    """Write our model into a folder, with t4, t5, ... for the tokens with these ids."""
    a, special = model.architecture, ["<pad>", "<unk>", "<s>", "</s>"]
    source, target = (
        special + [f"t{token}" for token in range(len(special), size)]
        for size in (a.source_vocabulary, a.target_vocabulary)
    )
    write(model, folder, source=source, target=target, quantization="float32")
