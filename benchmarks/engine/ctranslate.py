"""CTranslate2, an inference engine in C++, with the weights of this engine; decoding only.

The conversion maps our pre-norm Transformer on its `TransformerSpec`: explicit positions, since ours are counted from
another rate; embeddings scaled by √d; no attention biases; LayerNorm ε 1e-6. It has no layer with fewer heads than the
others, so it runs unpruned models. Its beam search ends hypotheses as ours does and divides by length^α, so in float32
its translations are ours. It is tried with one translation on all threads and with one on each; int8 is a system of its
own, since its outputs are others.
"""

import tempfile
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import TransformerSpec

from benchmarks.engine.workload import BEAM, LENGTH_PENALTY, MAX_LENGTH_RATIO, Workload
from specialized_heads.model.checkpoint import load
from specialized_heads.model.transformer import Transformer, sinusoids

LONGEST = 512  # positions


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


@torch.no_grad()
def convert(model: Transformer, folder: Path) -> None:
    """Write our model into a folder, in CTranslate2's format."""
    a = model.architecture
    spec = TransformerSpec.from_config(len(a.encoder), len(a.encoder[0]), pre_norm=True)
    for stack, layers, norm in (
        (spec.encoder, model.encoder, model.encoder_norm),
        (spec.decoder, model.decoder, model.decoder_norm),
    ):
        stack.scale_embeddings = True
        stack.position_encodings.encodings = sinusoids(LONGEST, a.width).numpy()
        copy_norm(stack.layer_norm, norm)
        for theirs, ours in zip(stack.layer, layers, strict=True):
            fused = torch.cat([ours.attention.query, ours.attention.key, ours.attention.value])
            copy_matrices(theirs.self_attention.linear, fused, ours.attention.output)
            copy_norm(theirs.self_attention.layer_norm, ours.attention_norm)
            copy_norm(theirs.ffn.layer_norm, ours.feed_forward_norm)
            for theirs_linear, our_linear in (
                (theirs.ffn.linear_0, ours.feed_forward.expand),
                (theirs.ffn.linear_1, ours.feed_forward.contract),
            ):
                theirs_linear.weight, theirs_linear.bias = our_linear.weight.numpy(), our_linear.bias.numpy()
    for theirs, ours in zip(spec.decoder.layer, model.decoder, strict=True):
        fused = torch.cat([ours.cross.key, ours.cross.value])
        copy_matrices(theirs.attention.linear, ours.cross.query, fused, ours.cross.output)
        copy_norm(theirs.attention.layer_norm, ours.cross_norm)
    spec.encoder.embeddings[0].weight = model.source_embedding.numpy()
    spec.decoder.embeddings.weight = model.target_embedding.numpy()
    spec.decoder.projection.weight = model.output_embedding.numpy()
    special = ["<pad>", "<unk>", "<s>", "</s>"]
    spec.register_source_vocabulary(special + [f"t{token}" for token in range(4, a.source_vocabulary)])
    spec.register_target_vocabulary(special + [f"t{token}" for token in range(4, a.target_vocabulary)])
    spec.config.layer_norm_epsilon = 1e-6
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def copy_norm(theirs: Any, ours: torch.nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = ours.weight.numpy(), ours.bias.numpy()


def copy_matrices(linears: list[Any], *matrices: torch.Tensor) -> None:
    """Set the weights of projections without bias."""
    for linear, matrix in zip(linears, matrices, strict=True):
        linear.weight = np.ascontiguousarray(matrix.numpy())
