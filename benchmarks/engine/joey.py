"""JoeyNMT, driven through its own configuration, model, batches, trainer and search.

Training: `TrainManager._train_step` and, after it, the statements with which `train_and_validate` makes an update; Adam,
the schedule and the smoothed loss are those that its builders make from a configuration. The padded tensors are made
beforehand, so that reading data costs it nothing; `Batch` is made for each update, as its data loader does. Besides
float32 it is tried under autocast: float16 with its gradient scaler on a GPU (its `fp16: true`), bfloat16 on a CPU, where
its configuration has no switch but its trainer takes one.

Decoding: `search.search`, with its own length penalty ((5 + n) / 6)^α. It computes all positions of the prefix anew at
each step, which is how it works.

It has the very architecture of this engine (pre-norm, final norms, no softmax bias, the same places for dropout), so it
gets the same weights; its attention biases are zero and its positions are replaced by ours. Its ids of padding and unknown
are the other way round.
"""

import logging
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.config import _check_special_symbols, parse_test_args, parse_train_args
from joeynmt.model import Model, build_model
from joeynmt.search import search
from joeynmt.training import TrainManager
from joeynmt.vocabulary import Vocabulary
from torch import Tensor, nn

from benchmarks.engine.workload import BEAM, DROPOUT, LABEL_SMOOTHING, LENGTH_PENALTY, MAX_LENGTH_RATIO, Workload
from specialized_heads.corpus.vocabulary import EOS, PAD, UNKNOWN
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.checkpoint import load
from specialized_heads.model.transformer import Transformer, sinusoids
from specialized_heads.training.batching import make_batch


class System:
    def __init__(self, workload: Workload, *, device: str, threads: int) -> None:
        self.workload, self.device = workload, torch.device(device)
        torch.set_num_threads(threads)
        logging.disable(logging.WARNING)
        self.vocabulary = vocabulary_of(workload.size.vocabulary)

    def training_variants(self) -> list[str]:
        return ["fp32", "fp16" if self.device.type == "cuda" else "bf16"]

    def prepare_training(self, variant: str) -> None:
        configuration = {
            "loss": "crossentropy",
            "normalization": "tokens",
            "label_smoothing": LABEL_SMOOTHING,
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": 1e-4,
            "scheduling": "warmupinversesquareroot",
            "batch_type": "token",
            "batch_size": 4000,
        }
        model = convert(load(self.workload.weights), self.vocabulary, dropout=DROPOUT).to(self.device)
        model.loss_function = ("crossentropy", LABEL_SMOOTHING)
        self.trainer = TrainManager(
            rank=0,
            model=model,
            model_dir=Path(tempfile.mkdtemp(dir=self.workload.folder)),
            device=self.device,
            n_gpu=int(self.device.type == "cuda"),
            autocast=autocast(self.device, variant),
            train_args=parse_train_args(configuration),
            dev_args=parse_test_args({}),
        )
        self.trainer.model.zero_grad()
        store = self.workload.store
        self.padded = {}
        for numbers in self.workload.train:
            batch = make_batch(store, np.array(numbers))
            target = torch.cat([batch.target_in[:, :1], batch.target_out], dim=1)
            self.padded[numbers[0]] = (renumber(batch.source), (batch.source != PAD).sum(1), renumber(target))

    def update(self, batch: list[int]) -> None:
        source, lengths, target = self.padded[batch[0]]
        trainer = self.trainer
        trainer._train_step(self.batch(source, lengths, target))
        if trainer.clip_grad_fun is not None:
            trainer.clip_grad_fun(parameters=trainer.model.parameters())
        if trainer.scaler is None:
            trainer.optimizer.step()
        else:
            trainer.scaler.step(trainer.optimizer)
            trainer.scaler.update()
        if trainer.scheduler_step_at == "step":
            trainer.scheduler.step(trainer.stats.steps)
        trainer.model.zero_grad()
        trainer.stats.steps += 1

    def set_rate(self, rate: float) -> None:
        for group in self.trainer.optimizer.param_groups:
            group["lr"] = rate

    def trained(self) -> Transformer:
        return convert_back(self.trainer.model, self.workload.size.architecture)

    def decoding_variants(self) -> list[str]:
        return self.training_variants()

    def prepare_decoding(self, variant: str) -> None:
        self.model = convert(load(self.workload.weights), self.vocabulary, dropout=0.0).to(self.device).eval()
        self.precision = autocast(self.device, variant)
        store = self.workload.store
        self.sources = [make_batch(store, np.array(numbers)).source for numbers in self.workload.decode]

    def translate(self, number: int) -> list[list[int]]:
        source = self.sources[number]
        lengths = (source != PAD).sum(1)
        batch = self.batch(renumber(source), lengths, None)
        order = batch.sort_by_src_length()
        output, _, _ = search(
            model=self.model,
            batch=batch,
            max_output_length=int(MAX_LENGTH_RATIO * (int(lengths.max()) - 1)) + 10,
            beam_size=BEAM,
            beam_alpha=LENGTH_PENALTY,
            n_best=1,
            min_output_length=0,
            autocast=self.precision,
        )
        rows = renumber(torch.from_numpy(output))[order].tolist()
        return [row[: row.index(EOS)] if EOS in row else row for row in rows]

    def batch(self, source: Tensor, lengths: Tensor, target: Tensor | None) -> Batch:
        return Batch(
            src=source,
            src_length=lengths,
            src_prompt_mask=None,
            trg=target,
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=self.device,
            pad_index=self.vocabulary.pad_index,
            eos_index=self.vocabulary.eos_index,
            is_train=target is not None,
        )


def autocast(device: torch.device, variant: str) -> dict[str, Any]:
    """The keyword arguments of `torch.autocast` that JoeyNMT keeps in its configuration."""
    dtypes = {"bf16": {"dtype": torch.bfloat16}, "fp16": {"dtype": torch.float16}}
    return {"device_type": device.type, "enabled": variant != "fp32", **dtypes.get(variant, {})}


def renumber(ids: Tensor) -> Tensor:
    """Exchange the ids of padding and unknown: from our numbering to JoeyNMT's, or back."""
    return torch.where(ids == PAD, UNKNOWN, torch.where(ids == UNKNOWN, PAD, ids))


def vocabulary_of(size: int) -> Vocabulary:
    """A vocabulary of this size, the four special tokens included; only its ids matter."""
    vocabulary = Vocabulary([], SimpleNamespace(**_check_special_symbols({})))
    tokens = {f"t{number}": number for number in range(len(vocabulary), size)}
    vocabulary._itos.extend(tokens)  # its own `add_tokens` looks through the whole list for each token
    vocabulary._stoi.update(tokens)
    return vocabulary


@torch.no_grad()
def convert(model: Transformer, vocabulary: Vocabulary, *, dropout: float) -> Model:
    """A JoeyNMT model that computes the same function as ours, built by its own `build_model`."""
    a = model.architecture
    side = {
        "type": "transformer",
        "num_layers": len(a.encoder),
        "num_heads": len(a.encoder[0]),
        "embeddings": {"embedding_dim": a.width, "scale": True, "dropout": dropout},
        "hidden_size": a.width,
        "ff_size": a.feed_forward,
        "dropout": dropout,
        "layer_norm": "pre",
    }
    joey = build_model({"encoder": side, "decoder": side}, vocabulary, vocabulary)
    for theirs, ours in weights_of_both(joey, model):
        theirs.copy_(0.0 if ours is None else ours)
    for theirs, ours in embeddings_of_both(joey, model):
        theirs.copy_(ours[renumber(torch.arange(len(ours)))])
    for stack in (joey.encoder, joey.decoder):
        stack.pe.pe.copy_(sinusoids(stack.pe.pe.shape[1], a.width))
    return joey


@torch.no_grad()
def convert_back(joey: Model, architecture: Architecture) -> Transformer:
    """Our model with the weights of a JoeyNMT model that `convert` made and training has changed."""
    model = Transformer(replace(architecture, attention_bias=True), dropout=0.0).eval()
    for theirs, ours in weights_of_both(joey, model):
        ours.copy_(theirs)
    for theirs, ours in embeddings_of_both(joey, model):
        ours.copy_(theirs[renumber(torch.arange(len(ours)))])
    return model


def embeddings_of_both(joey: Model, model: Transformer) -> Iterator[tuple[Tensor, Tensor]]:
    """Their embeddings and ours, whose rows are in another order."""
    yield joey.src_embed.lut.weight, model.source_embedding
    yield joey.trg_embed.lut.weight, model.target_embedding
    yield joey.decoder.output_layer.weight, model.output_embedding


def weights_of_both(joey: Model, model: Transformer) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Every other weight of theirs, and ours; None for a bias that ours lacks."""
    for theirs, ours in zip(joey.encoder.layers, model.encoder, strict=True):
        yield from linear(theirs.layer_norm, ours.attention_norm)
        yield from attention(theirs.src_src_att, ours.attention)
        yield from feed_forward(theirs.feed_forward, ours)
    for theirs, ours in zip(joey.decoder.layers, model.decoder, strict=True):
        yield from linear(theirs.x_layer_norm, ours.attention_norm)
        yield from attention(theirs.trg_trg_att, ours.attention)
        yield from linear(theirs.dec_layer_norm, ours.cross_norm)
        yield from attention(theirs.src_trg_att, ours.cross)
        yield from feed_forward(theirs.feed_forward, ours)
    yield from linear(joey.encoder.layer_norm, model.encoder_norm)
    yield from linear(joey.decoder.layer_norm, model.decoder_norm)


def linear(theirs: nn.Module, ours: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    yield theirs.weight, ours.weight
    yield theirs.bias, ours.bias


def attention(theirs: Any, ours: Any) -> Iterator[tuple[Tensor, Tensor | None]]:
    for layer, name in (("q", "query"), ("k", "key"), ("v", "value"), ("output", "output")):
        layer = getattr(theirs, f"{layer}_layer")
        yield layer.weight, getattr(ours, name)
        yield layer.bias, getattr(ours, f"{name}_bias")


def feed_forward(theirs: Any, ours: Any) -> Iterator[tuple[Tensor, Tensor]]:
    yield from linear(theirs.layer_norm, ours.feed_forward_norm)
    yield from linear(theirs.pwff_layer[0], ours.feed_forward.expand)
    yield from linear(theirs.pwff_layer[3], ours.feed_forward.contract)
