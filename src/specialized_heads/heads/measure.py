"""One pass over the analysis set: what is counted of all heads, batch by batch (sections 4 and 5).

Maps are dropped as soon as they are counted, so that memory does not grow with the set but for small counts per sentence.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads import maps, positional, syntactic
from specialized_heads.heads.confidence import confidence, entropy, parked
from specialized_heads.heads.rare_words import rare_hits
from specialized_heads.heads.trees import Sentence
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.sections import Heads


@dataclass(frozen=True)
class Counted:
    """What was counted, H heads of each attention type.

    queries: per type, how many were averaged over.
    confidence, entropy: per type, means over queries (H,); NaN without queries.
    eos: mean attention on the source's EOS (H,), for encoder and cross.
    offsets: per type, counts of relative positions (H, 2·reach + 1), see `positional.offset_counts`.
    chance: per type, the counts (2·reach + 1,) that a head without preference is expected to have.
    lengths: per type, keys of each sentence other than EOS.
    rarest, two_rarest: shares of the encoder's argmaxes (H,); NaN without rare_queries.
    hits, fixed, arcs: arcs that the encoder's heads get right (N, H, R, 2), that the best fixed offset does (N, R, 2), and all
        (N, R, 2), of each aligned sentence.
    """

    queries: dict[str, int]
    confidence: dict[str, np.ndarray]
    entropy: dict[str, np.ndarray]
    eos: dict[str, np.ndarray]
    offsets: dict[str, np.ndarray]
    chance: dict[str, np.ndarray]
    lengths: dict[str, np.ndarray]
    rarest: np.ndarray
    two_rarest: np.ndarray
    rare_queries: int
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
) -> Counted:
    """Count.

    Args:
        model: in evaluation mode.
        store: the analysis set.
        sentences: those that have a tree, by number.
        fixed_offsets: the baselines, by relation and direction; see `syntactic.arc_hits`.
        ranks: of the source tokens by frequency, see `rare_words.frequency_ranks`.
        settings: pieces that speak for a word, and the cut-off of frequent tokens.
    """
    reach = int(max(store.source_lengths.max(), store.target_lengths.max())) + 1
    heads = {kind: len(maps.head_numbers(model, kind)) for kind in KINDS}
    # Sums per head: confidence, entropy, attention on EOS.
    sums = {kind: torch.zeros(3, heads[kind], dtype=torch.float64) for kind in KINDS}
    offsets = {kind: torch.zeros(heads[kind], 2 * reach + 1, dtype=torch.long) for kind in KINDS}
    chance = {kind: torch.zeros(2 * reach + 1, dtype=torch.float64) for kind in KINDS}
    lengths: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}
    asking = dict.fromkeys(KINDS, 0)
    rare = torch.zeros(2, heads["encoder"], dtype=torch.long)
    rare_queries, found = 0, []
    for batch in maps.attention_maps(model, store):
        for kind in KINDS:
            weights, queries, keys = batch.weights[kind], batch.queries[kind], batch.keys[kind]
            asking[kind] += int(queries.sum())
            lengths[kind].append(keys.sum(1))
            sums[kind][0] += confidence(weights, queries, keys)
            sums[kind][1] += entropy(weights, queries)
            sums[kind][2] += parked(weights, queries, keys)
            best = maps.argmax(weights, keys)
            counted = positional.choosing(kind, queries)
            origin = positional.expected(kind, counted, keys)
            offsets[kind] += positional.offset_counts(best, origin, counted, reach=reach)
            chance[kind] += positional.chance_counts(kind, origin, counted, keys, reach=reach)
            if kind == "encoder":
                first, either, number = rare_hits(best, queries, batch.source, ranks=ranks, cutoff=settings.rare_cutoff)
                rare += torch.stack([first, either])
                rare_queries += number
        rows = [row for row, number in enumerate(batch.sentences.tolist()) if number in sentences]
        if rows:
            own = [sentences[int(batch.sentences[row])] for row in rows]
            words, shares = [each.words for each in own], [each.shares for each in own]
            attention = syntactic.word_attention(
                batch.weights["encoder"][rows], words, shares, from_word=settings.from_word
            )
            found.append(syntactic.arc_hits(attention, words, [each.arcs for each in own], fixed_offsets))
    means = {kind: (sums[kind] / asking[kind]).numpy() for kind in KINDS}  # 0 / 0 is NaN
    shares = (rare.double() / rare_queries).numpy()
    hits, fixed, arcs = map(np.concatenate, zip(*found, strict=True))
    return Counted(
        queries=asking,
        confidence={kind: values[0] for kind, values in means.items()},
        entropy={kind: values[1] for kind, values in means.items()},
        eos={kind: means[kind][2] for kind in ("encoder", "cross")},
        offsets={kind: counts.numpy() for kind, counts in offsets.items()},
        chance={kind: counts.numpy() for kind, counts in chance.items()},
        lengths={kind: torch.cat(parts).numpy() for kind, parts in lengths.items()},
        rarest=shares[0],
        two_rarest=shares[1],
        rare_queries=rare_queries,
        hits=hits,
        fixed=fixed,
        arcs=arcs,
    )
