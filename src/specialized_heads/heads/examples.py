"""Attention maps for figure 5: the head that attends most to the rarest token, on the first sentences that qualify."""

from typing import Any

import numpy as np
import torch
from sentencepiece import SentencePieceProcessor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads import maps
from specialized_heads.heads.functions import BY_NAME, RARE_WORDS
from specialized_heads.heads.measure import Counted
from specialized_heads.model.transformer import Transformer

EXAMPLES = 3  # sentences kept
EXAMPLE_TOKENS = range(8, 15)  # their lengths in subwords, so that a map can be read


def examples(
    model: Transformer,
    store: TokenStore,
    bpe: SentencePieceProcessor,
    ranks: torch.Tensor,
    counted: Counted,
    settings: Heads,
) -> dict[str, Any]:
    """Maps of the best rare-words head, from sentences of readable length with a rare token.

    Returns:
        `layer` and `head`, from 1; `kind`, whether that head is a rare-words head or only the best of the lowest layer, or why
        there is no example; `score`, its share; `sentences`, each with `tokens`, `attention` and `rarest`, the position of its
        rarest token.
    """
    heads, shares = maps.head_numbers(model, "encoder"), counted.shares["rarest"]
    none = {"layer": None, "head": None, "score": None, "sentences": []}
    if not heads:
        return none | {"kind": "no encoder head is left"}
    rarest = {}  # by sentence
    for number in range(len(store)):
        ids = store.source_ids(number)
        rank = ranks[torch.from_numpy(np.array(ids, dtype=np.int64))]
        if len(ids) in EXAMPLE_TOKENS and int(rank.max()) >= settings.rare_cutoff:
            rarest[number] = int(rank.argmax())
        if len(rarest) == EXAMPLES:
            break
    if not rarest:
        length = "" if np.isnan(shares).all() else f" of {EXAMPLE_TOKENS.start} to {EXAMPLE_TOKENS.stop - 1} subwords"
        return none | {"kind": f"no sentence{length} has a token beyond heads.rare_cutoff"}
    passed = shares.max() >= BY_NAME[RARE_WORDS].threshold
    lowest = np.array([layer == heads[0][0] for layer, _ in heads])  # where the paper's head is
    best = int(np.argmax(shares if passed else np.where(lowest, shares, -1.0)))
    picked = store.select(list(rarest))
    attention = [weights["encoder"][best] for weights in maps.of_sentences(model, picked)]
    sentences = [
        {
            "tokens": [bpe.id_to_piece(int(i)) for i in picked.source_ids(number)] + ["</s>"],
            "attention": [[round(float(weight), 6) for weight in line] for line in attention[number]],
            "rarest": place,
        }
        for number, place in enumerate(rarest.values())
    ]
    layer, head = heads[best]
    kind = RARE_WORDS if passed else "best of its layer"
    return {"layer": layer, "head": head, "kind": kind, "score": float(shares[best]), "sentences": sentences}
