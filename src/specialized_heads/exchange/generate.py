"""Translate with Hugging Face transformers, to check a model that is exported for it."""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import torch
from transformers import AutoModelForSeq2SeqLM


def generator(folder: Path, *, eos: int, max_length_ratio: float) -> Callable[[list[list[int]]], list[list[int]]]:
    """What translates batches of ids, without EOS on either side, with the model and the settings of search in a folder."""
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    @torch.inference_mode()
    def generate(sources: list[list[int]]) -> list[list[int]]:
        outputs: list[list[int]] = []
        for length, same in groupby(sources, key=len):  # a batch has one limit, which depends on the length
            longest = int(max_length_ratio * length) + 10
            batch = torch.tensor([[*ids, eos] for ids in same])
            outputs += model.generate(batch, max_new_tokens=longest)[:, 1:].tolist()  # without the start token
        return [row[: row.index(eos)] if eos in row else row for row in outputs]

    return generate
