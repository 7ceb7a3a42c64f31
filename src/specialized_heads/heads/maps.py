"""Attention maps of all heads, batch by batch, their argmaxes, and the maps that figure 5 shows.

Statistics exclude EOS, on which heads often park their attention (section 4), and tags such as that
of a language. The heads of one type are stacked over layers, so pruned models with their uneven
layers need no special case.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sentencepiece import SentencePieceProcessor
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads.functions import BY_NAME, RARE_WORDS
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import progress
from specialized_heads.training.batching import in_order, make_batch

# About the most in the maps of one type of a batch; the C library clears larger memory at each use.
FLOATS = 8_000_000
EXAMPLES = 3  # sentences kept for figure 5
EXAMPLE_TOKENS = range(8, 15)  # their lengths in subwords, so that a map can be read


@dataclass(frozen=True)
class Maps:
    """Attention of one batch.

    sentences: numbers of the sentences in the set (B,).
    source: ids (B, S), tags, EOS and padding included.
    weights: per attention type (B, H, T, S).
    norms: per type, those of `contributions` (B, H, T).
    queries, keys: per type, (B, T) and (B, S): true for real tokens other than EOS. The decoder's
        start token (the last tag, if there are any) is the first of them; it sees no other and is
        not a query of self-attention.
    """

    sentences: np.ndarray
    source: Tensor
    weights: dict[str, Tensor]
    norms: dict[str, Tensor]
    queries: dict[str, Tensor]
    keys: dict[str, Tensor]


def head_numbers(model: Transformer, kind: str) -> list[tuple[int, int]]:
    """(layer, head) of each row of the stacked maps, from 1, with the numbers before pruning."""
    return [(a.layer + 1, head + 1) for a in model.attentions(kind) for head in a.heads]


@torch.inference_mode()
def attention_maps(model: Transformer, store: TokenStore, *, tokens: int = 4000) -> Iterator[Maps]:
    """Maps of all heads for every sentence of a set, in batches by length."""
    heads = max(len(head_numbers(model, kind)) for kind in KINDS)
    longest = np.maximum(store.source_lengths, store.target_lengths) + 1
    batches: list[np.ndarray] = []
    for batch in in_order(store, tokens=tokens):
        parts = 1 + len(batch) * longest[batch].max() ** 2 * heads // FLOATS
        batches += np.array_split(batch, min(len(batch), parts))
    for sentences in progress(batches, what="attention maps"):
        batch = make_batch(store, sentences).to(model.device)
        activations: Activations = {}
        model(batch.source, batch.target_in, activations)
        special, tags = store.tokens, len(store.tokens.target_tags)
        source = batch.real(batch.source) & (batch.source != special.eos)
        source[:, : len(special.source_tags)] = False
        # The decoder's input has no EOS. A sentence without a target (analysis text that is not
        # parallel) has no queries.
        real = batch.real(batch.target_out)
        target = real & real[:, tags + 1 :].any(1, keepdim=True)
        target[:, :tags] = False
        after_start = target.clone()
        after_start[:, : tags + 1] = False
        b, s, t = len(sentences), batch.source.shape[1], batch.target_in.shape[1]
        sizes = {"encoder": (s, s), "decoder": (t, t), "cross": (t, s)}
        weights, norms = {}, {}
        for kind, size in sizes.items():
            attentions = [a for a in model.attentions(kind) if a.heads]
            layers = [activations[kind, a.layer, "weights"] for a in attentions]
            added = [contributions(a, activations[kind, a.layer, "context"]) for a in attentions]
            none = torch.zeros(b, 0, *size, device=model.device)  # where no head is left
            weights[kind] = torch.cat([none, *layers], dim=1).cpu()
            norms[kind] = torch.cat([none[..., 0], *added], dim=1).cpu()
        source, target, after_start = source.cpu(), target.cpu(), after_start.cpu()
        yield Maps(
            sentences=sentences,
            source=batch.source.cpu(),
            weights=weights,
            norms=norms,
            queries={"encoder": source, "decoder": after_start, "cross": target},
            keys={"encoder": source, "decoder": target, "cross": source},
        )


def contributions(attention: MultiHeadAttention, context: Tensor) -> Tensor:
    """The norm of what each head adds to the residual stream, ‖W^O_h context_h‖ (B, H, T), from its
    context (B, H, T, K)."""
    parts = attention.output.unflatten(1, (len(attention.heads), attention.head_width))  # (D, H, K)
    # ‖Wc‖² = c·WᵀW·c takes K² instead of D·K products
    products = torch.einsum("dhk,dhl->hkl", parts, parts)
    return torch.einsum("bhtk,hkl,bhtl->bht", context, products, context).clamp(min=0).sqrt()


def of_sentences(model: Transformer, store: TokenStore) -> list[dict[str, Tensor]]:
    """The maps of each sentence of a small set, by attention type, without padding: (H, T, S)."""
    found = {}
    for batch in attention_maps(model, store):
        for row, number in enumerate(batch.sentences.tolist()):
            source, target = len(store.source_ids(number)) + 1, len(store.target_ids(number)) + 1
            weights = {kind: maps[row] for kind, maps in batch.weights.items()}
            found[number] = {
                "encoder": weights["encoder"][:, :source, :source],
                "decoder": weights["decoder"][:, :target, :target],
                "cross": weights["cross"][:, :target, :source],
            }
    return [found[number] for number in range(len(store))]


def argmax(weights: Tensor, keys: Tensor) -> Tensor:
    """The key with the largest weight, EOS and padding excluded: (B, H, T); the first of equals."""
    return weights.masked_fill(~keys[:, None, None], -1.0).argmax(-1)


def examples(
    model: Transformer,
    store: TokenStore,
    bpe: SentencePieceProcessor,
    *,
    ranks: np.ndarray,
    cutoff: int,
    shares: np.ndarray,
) -> dict[str, Any]:
    """Maps for figure 5: the head that attends most to the rarest token, on the first sentences of
    readable length that have one.

    Args:
        ranks: of the source tokens by frequency (V,); a token of `cutoff` or beyond is rare.
        shares: of the argmaxes of each encoder head on the rarest token (H,).

    Returns:
        `layer` and `head`, from 1; `kind`, whether that head is a rare-words head or only the best
        of the lowest layer, or why there is no example; `score`, its share; `sentences`, each with
        `tokens`, `attention` and `rarest`, the position of its rarest token.
    """
    heads = head_numbers(model, "encoder")
    none = {"layer": None, "head": None, "score": None, "sentences": []}
    if not heads:
        return none | {"kind": "no encoder head is left"}
    rarest = {}  # by sentence
    for number in range(len(store)):
        ids = store.source_ids(number)
        if len(ids) in EXAMPLE_TOKENS and ranks[ids].max() >= cutoff:
            rarest[number] = int(ranks[ids].argmax())
        if len(rarest) == EXAMPLES:
            break
    if not rarest:
        length = f" of {EXAMPLE_TOKENS.start} to {EXAMPLE_TOKENS.stop - 1} subwords"
        length = "" if np.isnan(shares).all() else length
        return none | {"kind": f"no sentence{length} has a token beyond heads.rare_cutoff"}
    passed = shares.max() >= BY_NAME[RARE_WORDS].threshold
    lowest = np.array([layer == heads[0][0] for layer, _ in heads])  # where the paper's head is
    best = int(np.argmax(shares if passed else np.where(lowest, shares, -1.0)))
    picked = store.select(list(rarest))
    attention = [weights["encoder"][best] for weights in of_sentences(model, picked)]
    sentences = []
    for number, place in enumerate(rarest.values()):
        tokens = [bpe.id_to_piece(int(token)) for token in picked.source_ids(number)]
        rows = [[round(weight, 6) for weight in row] for row in attention[number].tolist()]
        sentences.append({"tokens": [*tokens, "</s>"], "attention": rows, "rarest": place})
    layer, head = heads[best]
    kind, score = RARE_WORDS if passed else "best of its layer", float(shares[best])
    return {"layer": layer, "head": head, "kind": kind, "score": score, "sentences": sentences}
