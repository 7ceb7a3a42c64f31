"""Count everything about all heads in one pass over the analysis set (sections 4 and 5).

Each batch of attention maps is dropped once it is counted, so memory grows with the set only by small counts per sentence.

Heads often park their attention on EOS, so confidence excludes EOS as query and as key (section 4). Entropy is that of the whole
distribution, EOS included: without it the weights do not sum to one. The weight on EOS distinguishes a head that is certain of a
word from one that parks its attention on EOS.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads import maps, positional, syntactic
from specialized_heads.heads.shares import SHARES
from specialized_heads.heads.trees import Sentence
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.transformer import Transformer


@dataclass(frozen=True)
class Counted:
    """Counts and means over the analysis set, for the H heads of each attention type.

    queries: per type, the number of queries.
    confidence, entropy, norm: per type, means over queries (H,); NaN without queries. See `maps.contributions` for the norm.
    eos: mean attention on the source's EOS (H,), for encoder and cross.
    offsets: per type, counts of relative positions (H, 2·reach + 1), see `positional.offset_counts`.
    visible: per type, see `positional.visible_counts` (2, 2·reach + 1).
    shares: of argmaxes of encoder heads, by column (`shares.SHARES`) (H,); NaN where no sentence qualifies.
    share_queries: the queries that each of `shares.SHARES` counts.
    hits, fixed, arcs: per aligned sentence (N), the arcs that each encoder head gets right (N, H, R, 2), those that the best
        fixed offset gets right (N, R, 2), and all (N, R, 2).
    """

    queries: dict[str, int]
    confidence: dict[str, np.ndarray]
    entropy: dict[str, np.ndarray]
    norm: dict[str, np.ndarray]
    eos: dict[str, np.ndarray]
    offsets: dict[str, np.ndarray]
    visible: dict[str, np.ndarray]
    shares: dict[str, np.ndarray]
    share_queries: list[int]
    hits: np.ndarray
    fixed: np.ndarray
    arcs: np.ndarray


def measure(
    model: Transformer,
    store: TokenStore,
    sentences: dict[int, Sentence],
    fixed_offsets: dict[tuple[str, str], int | None],
    ranks: Tensor,
    settings: Heads,
    pieces: Sequence[str] = (),
) -> Counted:
    """Accumulate all head statistics.

    Args:
        sentences: those with a tree, by number.
        fixed_offsets: the baselines, by relation and direction; see `syntactic.arc_hits`.
        ranks: of the source tokens by frequency, see `rare_words.frequency_ranks`.
        pieces: the text of each source token, for functions that depend on it.
    """
    reach = int(max(store.source_lengths.max(), store.target_lengths.max())) + 1
    heads = {kind: len(maps.head_numbers(model, kind)) for kind in KINDS}
    # Sums per head: confidence, entropy and norm; attention on EOS, which the decoder's input does not have.
    sums = {kind: torch.zeros(3, heads[kind], dtype=torch.float64) for kind in KINDS}
    eos = {kind: torch.zeros(heads[kind], dtype=torch.float64) for kind in ("encoder", "cross")}
    offsets = {kind: torch.zeros(heads[kind], 2 * reach + 1, dtype=torch.long) for kind in KINDS}
    visible = {kind: torch.zeros(2, 2 * reach + 1, dtype=torch.float64) for kind in KINDS}
    number_of_queries = dict.fromkeys(KINDS, 0)
    hits = [torch.zeros(len(share.columns), heads["encoder"], dtype=torch.float64) for share in SHARES]
    share_queries = [0] * len(SHARES)
    arc_counts = []
    for batch in maps.attention_maps(model, store):
        for kind in KINDS:
            weights, queries, keys = batch.weights[kind], batch.queries[kind], batch.keys[kind]
            number_of_queries[kind] += int(queries.sum())
            norm = (batch.norms[kind] * queries[:, None]).sum((0, 2)).double()
            sums[kind] += torch.stack([confidence(weights, queries, keys), entropy(weights, queries), norm])
            if kind in eos:
                eos[kind] += parked(weights, queries, batch.source == store.tokens.eos)
            best = maps.argmax(weights, keys)
            positioned = positional.choosing(kind, queries)
            origin = positional.expected(kind, positioned, keys)
            offsets[kind] += positional.offset_counts(best, origin, positioned, reach=reach)
            visible[kind] += positional.visible_counts(kind, origin, positioned, keys, reach=reach)
            if kind == "encoder":
                known = {"ranks": ranks, "pieces": pieces, "cutoff": settings.rare_cutoff}
                for place, share in enumerate(SHARES):
                    found, number = share.count(best, queries, batch.source, **known)
                    hits[place] += found
                    share_queries[place] += number
        rows = [row for row, number in enumerate(batch.sentences.tolist()) if number in sentences]
        if rows:
            parsed = [sentences[int(batch.sentences[row])] for row in rows]
            words, shares = [sentence.words for sentence in parsed], [sentence.shares for sentence in parsed]
            weights = batch.weights["encoder"][rows]
            attention = syntactic.word_attention(weights, words, shares)
            arcs = [sentence.arcs for sentence in parsed]
            arc_counts.append(syntactic.arc_hits(attention, words, arcs, fixed_offsets))
    means = {kind: (sums[kind] / number_of_queries[kind]).numpy() for kind in KINDS}  # 0 / 0 is NaN
    rows_of = zip(SHARES, hits, share_queries, strict=True)
    shares = {name: (row / n).numpy() for share, found, n in rows_of for name, row in zip(share.columns, found)}
    right, fixed, arcs = map(np.concatenate, zip(*arc_counts, strict=True))
    return Counted(
        queries=number_of_queries,
        confidence={kind: values[0] for kind, values in means.items()},
        entropy={kind: values[1] for kind, values in means.items()},
        norm={kind: values[2] for kind, values in means.items()},
        eos={kind: (total / number_of_queries[kind]).numpy() for kind, total in eos.items()},
        offsets={kind: counts.numpy() for kind, counts in offsets.items()},
        visible={kind: counts.numpy() for kind, counts in visible.items()},
        shares=shares,
        share_queries=share_queries,
        hits=right,
        fixed=fixed,
        arcs=arcs,
    )


def confidence(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the largest attention weight on a real key (B, S), per head (H,)."""
    largest = weights.masked_fill(~keys[:, None, None], 0.0).amax(-1)  # (B, H, T)
    return (largest * queries[:, None]).sum((0, 2)).double()


def entropy(weights: Tensor, queries: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the entropy of their attention in nats, EOS included, per head (H,)."""
    return (torch.special.entr(weights).sum(-1) * queries[:, None]).sum((0, 2)).double()


def parked(weights: Tensor, queries: Tensor, eos: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the attention on the source's EOS (B, S), per head (H,)."""
    on_eos = (weights * eos[:, None, None]).sum(-1)
    return (on_eos * queries[:, None]).sum((0, 2)).double()
