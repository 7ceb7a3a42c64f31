"""Attention maps for figure 5: the head that looks most at the rarest token, on the first sentences that qualify."""

from typing import Any

import numpy as np
import torch
from sentencepiece import SentencePieceProcessor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads import maps
from specialized_heads.heads.measure import Counted
from specialized_heads.model.transformer import Transformer
from specialized_heads.sections import Heads

EXAMPLES = 3  # sentences kept
EXAMPLE_TOKENS = range(8, 15)  # their length in subwords, so that a map can be read


def examples(
    model: Transformer,
    store: TokenStore,
    bpe: SentencePieceProcessor,
    ranks: torch.Tensor,
    counted: Counted,
    settings: Heads,
) -> dict[str, Any]:
    """Maps of the best head by rare words, from the sentences of readable length with a rare token.

    Returns:
        `layer` and `head`, from 1; `kind`, whether that head passes as a rare-words head or is only the nearest to one;
        `score`, its share; `sentences`, each with `tokens`, `attention` and `rarest`, the place of its rarest token.
    """
    heads = maps.head_numbers(model, "encoder")
    if not heads or not counted.rare_queries:
        return {"layer": None, "head": None, "kind": "none", "score": None, "sentences": []}
    head = int(np.argmax(counted.rarest))
    chosen = []
    for number in range(len(store)):
        ids = store.source_ids(number)
        rank = ranks[torch.from_numpy(np.array(ids, dtype=np.int64))]
        if len(ids) in EXAMPLE_TOKENS and int(rank.max()) >= settings.rare_cutoff:
            chosen.append((number, int(rank.argmax())))
        if len(chosen) == EXAMPLES:
            break
    picked = maps.select(store, [number for number, _ in chosen])
    attention = {}
    for batch in maps.attention_maps(model, picked):
        for row, number in enumerate(batch.sentences.tolist()):
            size = len(picked.source_ids(number)) + 1
            attention[number] = batch.weights["encoder"][row, head, :size, :size]
    sentences = [
        {
            "tokens": [bpe.id_to_piece(int(i)) for i in picked.source_ids(number)] + ["</s>"],
            "attention": [[round(float(w), 6) for w in line] for line in attention[number]],
            "rarest": rarest,
        }
        for number, (_, rarest) in enumerate(chosen)
    ]
    layer, head_number = heads[head]
    score = float(counted.rarest[head])
    return {
        "layer": layer,
        "head": head_number,
        "kind": "rare words" if score >= settings.rare_share else "best by score",
        "score": score,
        "sentences": sentences,
    }
