"""Translating a set by a model without these heads, without those, and so on: many removals in one pass.

A removal is a set of heads whose output is multiplied by zero; since the projections have no biases, that equals the
model from which they are physically removed. A pass translates every sentence under several removals at once: they stand
in the batch one after the other. Where none of them touches the encoder, it runs once for all of them.

A long run can be killed: after each pass its translations are added to a file beside the output, stamped with a
fingerprint of all that affects them, and the next run goes on after them.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.model.decoding import translate
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning.scopes import Head
from specialized_heads.sections import Decoding
from specialized_heads.training import state as kept
from specialized_heads.training.batching import cut

Removal = frozenset[Head]
NOTHING: Removal = frozenset()

REMOVALS = 8  # in one pass
TOKENS = 2000  # source tokens in a batch, of all removals together, padding included; each becomes `beam` rows


def mask(model: Transformer, removals: list[Removal], *, sentences: int = 1) -> None:
    """Mask heads, for a batch that holds its sentences under the first removal, then under the next, and so on.

    Args:
        model: without gates.
        removals: R of them, of heads that the model has.
        sentences: how many in the batch, B; the masks have R · B rows.
    """
    for attention in model.attentions():
        names = [(attention.kind, attention.layer + 1, head + 1) for head in attention.heads]
        values = torch.tensor([[name not in removal for name in names] for removal in removals], dtype=torch.float32)
        attention.gate = None
        if values.numel() and not values.all():
            rows = values.repeat_interleave(sentences, dim=0)
            attention.gate = Mask(rows.to(attention.output.device))


def unmask(model: Transformer) -> None:
    """Take all masks off."""
    for attention in model.attentions():
        attention.gate = None


def translate_without(
    model: Transformer, sources: list[list[int]], removals: list[Removal], *, decoding: Decoding
) -> list[list[list[int]]]:
    """Translate a batch of sentences under each removal, in one pass.

    Returns:
        for each removal, the ids of each sentence's translation, without EOS.
    """
    mask(model, removals, sentences=len(sources))
    try:
        outputs = translate(model, sources, copies=len(removals), **decoding.model_dump())
    finally:
        unmask(model)
    return [outputs[start : start + len(sources)] for start in range(0, len(outputs), len(sources))]


def translate_set(
    model: Transformer, store: TokenStore, removals: Iterable[Removal], *, decoding: Decoding, state: "State"
) -> dict[Removal, list[list[int]]]:
    """Translate a set under each of these removals, and under none.

    The unmasked model translates in the batches of the stage `translate`, so that it says the very same.

    Args:
        model: in evaluation mode, without gates.
        store: the set.
        removals: may hold some twice.
        decoding: beam search.
        state: where translations are kept from one pass to the next.

    Returns:
        ids of each sentence's translation, in the order of the set, by removal.
    """
    wanted = dict.fromkeys([NOTHING, *removals])
    lengths = store.source_lengths + 1
    order = np.argsort(lengths, kind="stable")
    for group in stage.progress(passes(set(wanted) - set(state.found)), what="ablation", unit="pass"):
        found = [[[]] * len(store) for _ in group]
        for sentences in cut(lengths[order], order, max(1, TOKENS // len(group))):
            sources = [store.source_ids(i).tolist() for i in sentences]
            for outputs, own in zip(translate_without(model, sources, group, decoding=decoding), found, strict=True):
                for sentence, ids in zip(sentences, outputs, strict=True):
                    own[sentence] = ids
        state.add(dict(zip(group, found, strict=True)))
        stage.log.info("%d of %d removals translated", len(set(wanted) & set(state.found)), len(wanted))
    return {removal: state.found[removal] for removal in wanted}


def passes(removals: Iterable[Removal]) -> list[list[Removal]]:
    """Removals in groups for one pass each: the unmasked model alone, and apart those that leave the encoder whole."""
    kinds: dict[str, list[Removal]] = {"nothing": [], "decoder": [], "encoder": []}
    for removal in sorted(removals, key=sorted):
        in_encoder = any(kind == "encoder" for kind, _, _ in removal)
        kinds["encoder" if in_encoder else "decoder" if removal else "nothing"].append(removal)
    return [same[start : start + REMOVALS] for same in kinds.values() for start in range(0, len(same), REMOVALS)]


class State:
    """Translations by removal, in memory and in a file that survives a kill: a line of JSON per pass, after its hash."""

    def __init__(self, folder: Path, *, fingerprint: str) -> None:
        """
        Args:
            folder: made where it is missing; removed by `finish`, once the results are safe.
            fingerprint: of everything that affects the translations. Those of another one are thrown away.
        """
        kept.claim(folder)
        self.path = folder / "translations.jsonl"
        self.found: dict[Removal, list[list[int]]] = {}
        stamp = json.dumps({"fingerprint": fingerprint})
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] if self.path.exists() else []
        if lines and lines[0] != stamp:
            stage.log.info("the saved state %s is of other settings, data or code; starting over", self.path)
            lines = []
        for number, line in enumerate(lines[1:], start=1):
            stamped, _, text = line.partition(" ")
            if stamped != _hash(text):
                stage.log.info("the saved state %s is damaged in line %d; going on before it", self.path, number + 1)
                lines = lines[:number]
                break
            for heads, translations in json.loads(text):
                self.found[frozenset((kind, layer, head) for kind, layer, head in heads)] = translations
        if self.found:
            stage.log.info("going on after %d removals", len(self.found))
        with stage.atomic(self.path) as temporary:  # without the half of a line that a kill may have left
            temporary.write_text("".join(line + "\n" for line in lines or [stamp]), encoding="utf-8")

    def add(self, found: dict[Removal, list[list[int]]]) -> None:
        """Keep the translations of one pass; a `UserError` where another process has taken over."""
        self.found |= found
        kept.check(self.path.parent)
        text = json.dumps([[sorted(removal), lines] for removal, lines in found.items()])
        with stage.disk_errors(self.path), open(self.path, "a", encoding="utf-8") as stream:
            stream.write(f"{_hash(text)} {text}\n")

    def finish(self) -> None:
        """Remove the folder, after the results have been written."""
        shutil.rmtree(self.path.parent, ignore_errors=True)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(*paths: Path, settings: dict[str, Any]) -> str:
    """A hash of files, settings, and the code that translates."""
    parts = [stage.file_hash(path) for path in paths] + [json.dumps(settings, sort_keys=True)]
    parts.append(stage.code_hash("model", "pruning"))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
