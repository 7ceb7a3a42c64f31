"""Evaluate many head masks in one decoding pass.

A removal is a set of heads whose output is multiplied by zero, which equals removing them from the weights: the only bias that
stays is that of the layer's output projection. A pass translates every sentence under several removals: the batch is tiled, one
tile per removal. If no removal of a pass includes encoder heads, the encoder runs once for all tiles.

Runs are resumable: each pass saves the outputs so far, with a fingerprint of everything that affects them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.architecture import Head
from specialized_heads.model.decoding import TOKENS, in_batches, translate
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Transformer
from specialized_heads.training import state as run_state

Removal = frozenset[Head]
NOTHING: Removal = frozenset()

REMOVALS = 8  # in one pass


def mask(model: Transformer, removals: list[Removal], *, sentences: int = 1) -> None:
    """Mask heads for a tiled batch: all B `sentences` under the first of R removals, then all under the next; R · B rows."""
    for attention in model.attentions():
        names = [(attention.kind, attention.layer + 1, head + 1) for head in attention.heads]
        values = torch.tensor([[name not in removal for name in names] for removal in removals], dtype=torch.float32)
        attention.gate = None
        if values.numel() and not values.all():
            rows = values.repeat_interleave(sentences, dim=0)
            attention.gate = Mask(rows.to(attention.output.device))


def unmask(model: Transformer) -> None:
    """Remove all masks."""
    for attention in model.attentions():
        attention.gate = None


def translate_without(
    model: Transformer, sources: list[list[int]], removals: list[Removal], *, decoding: Decoding
) -> list[list[list[int]]]:
    """For each removal, the ids of each sentence's translation, without EOS, from one pass."""
    mask(model, removals, sentences=len(sources))
    try:
        outputs = translate(model, sources, copies=len(removals), **decoding.model_dump())
    finally:
        unmask(model)
    return [outputs[start : start + len(sources)] for start in range(0, len(outputs), len(sources))]


def translate_set(
    model: Transformer,
    store: TokenStore,
    removals: Iterable[Removal],
    *,
    decoding: Decoding,
    state: Path,
    fingerprint: str,
) -> dict[Removal, list[list[int]]]:
    """Translate a set under each removal, and with all heads.

    The unmasked model translates the same batches as the stage `translate`, so its translations are identical.
    """
    sources = [store.source_ids(i).tolist() for i in range(len(store))]

    def under(group: list[Removal]) -> Iterable[list[list[int]]]:
        def under_each(batch: list[list[int]]) -> list[tuple[list[int], ...]]:
            """The translations of each sentence, one per removal."""
            return list(zip(*translate_without(model, batch, group, decoding=decoding), strict=True))

        return map(list, zip(*in_batches(under_each, sources, tokens=max(1, TOKENS // len(group))), strict=True))

    return resumed(under, removals, state=state, fingerprint=fingerprint)


def resumed(
    under: Callable[[list[Removal]], Iterable[Any]], removals: Iterable[Removal], *, state: Path, fingerprint: str
) -> dict[Removal, Any]:
    """The outputs under each removal, and with all heads; `under` computes those of one pass, as plain numbers in lists.

    Finished passes are kept in the folder `state`, which the caller removes after the results are written; those with another
    `fingerprint`, of everything that affects the outputs, are discarded.
    """
    wanted = dict.fromkeys([NOTHING, *removals])
    run_state.claim(state)
    saved = run_state.read_state(state, fingerprint=fingerprint, checkpoints=())
    outputs = {frozenset(map(tuple, heads)): found for heads, found in json.loads(saved["outputs"] if saved else "[]")}
    if outputs:
        stage.log.info("resuming after %d removals", len(outputs))
    for group in stage.progress(passes(set(wanted) - set(outputs)), what="ablation", unit="pass"):
        outputs |= zip(group, under(group), strict=True)
        text = json.dumps([[sorted(removal), found] for removal, found in outputs.items()])
        with stage.disk_errors(state):
            run_state.write_state(state, {"fingerprint": fingerprint, "outputs": text})
        stage.log.info("%d of %d removals finished", len(set(wanted) & set(outputs)), len(wanted))
    return {removal: outputs[removal] for removal in wanted}


def passes(removals: Iterable[Removal]) -> list[list[Removal]]:
    """Group removals by pass: the unmasked model separately, and removals with and without encoder heads separately."""
    kinds: dict[str, list[Removal]] = {"nothing": [], "decoder": [], "encoder": []}
    for removal in sorted(removals, key=sorted):
        in_encoder = any(kind == "encoder" for kind, _, _ in removal)
        kinds["encoder" if in_encoder else "decoder" if removal else "nothing"].append(removal)
    return [same[start : start + REMOVALS] for same in kinds.values() for start in range(0, len(same), REMOVALS)]


def fingerprint(*paths: Path, settings: dict[str, Any], code: Iterable[str] = ()) -> str:
    """Hash of files, settings, and the code of `corpus`, `model`, `pruning` and further packages."""
    parts = [stage.file_hash(path) for path in paths] + [json.dumps(settings, sort_keys=True)]
    parts.append(stage.code_hash("corpus", "model", "pruning", *code))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
