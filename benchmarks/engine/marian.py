"""The Marian architecture of the transformers library, with random weights, driven through its
public interface.

Training: forward pass, PyTorch's fused label-smoothed cross-entropy (the library's own takes two
passes over the logits more) and PyTorch's fused Adam, on padded tensors made beforehand. Precision
(float32 or autocast) and attention (`sdpa` or `eager`) are tried, and the fastest pair is measured.
The architecture is post-norm, so it cannot have our weights.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from transformers import MarianConfig, MarianMTModel
from transformers.utils import logging

from benchmarks.engine.workload import DROPOUT, LABEL_SMOOTHING, Workload
from specialized_heads.corpus.tokens import BOS, EOS, OURS, PAD
from specialized_heads.exchange import huggingface
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import make_batch


class System:
    def __init__(self, workload: Workload, *, threads: int) -> None:
        self.workload = workload
        torch.set_num_threads(threads)
        logging.set_verbosity_error()

    def variants(self) -> list[str]:
        return ["bf16 sdpa", "bf16 eager", "fp32 sdpa", "fp32 eager"]

    def prepare(self, variant: str) -> None:
        self.precision, attention = variant.split()
        self.model = build(self.workload, attention=attention).train()
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        store = self.workload.store
        self.padded = {
            numbers[0]: make_batch(store, np.array(numbers)) for numbers in self.workload.train
        }

    def update(self, batch: list[int]) -> None:
        padded = self.padded[batch[0]]
        with self.autocast():
            logits = self.model(
                input_ids=padded.source,
                attention_mask=padded.source != PAD,
                decoder_input_ids=padded.target_in,
                use_cache=False,
            ).logits
            loss = F.cross_entropy(
                logits.flatten(0, 1),
                padded.target_out.flatten(),
                ignore_index=PAD,
                label_smoothing=LABEL_SMOOTHING,
            )
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def set_rate(self, rate: float) -> None:
        self.optimizer.param_groups[0]["lr"] = rate

    def trained(self) -> Transformer:
        folder = self.workload.folder / "trained"
        self.model.save_pretrained(folder)
        return huggingface.convert_model(huggingface.read_folder(folder), OURS)

    def autocast(self) -> Any:
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast("cpu", dtype=torch.bfloat16)


def build(workload: Workload, *, attention: str) -> MarianMTModel:
    """A model with random weights, its three embeddings separate, as ours."""
    torch.manual_seed(workload.seed)
    size = workload.size
    config = MarianConfig(
        vocab_size=size.vocabulary,
        decoder_vocab_size=size.vocabulary,
        d_model=size.width,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.feed_forward,
        decoder_ffn_dim=size.feed_forward,
        activation_function="relu",
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        activation_dropout=DROPOUT,
        scale_embedding=True,
        init_std=size.width**-0.5,
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        eos_token_id=EOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel._from_config(config, attn_implementation=attention)
