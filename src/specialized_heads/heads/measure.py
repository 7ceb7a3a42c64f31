"""Count everything about all heads in one pass over the analysis set (sections 4 and 5).

Each batch of attention maps is dropped once it is counted, so memory grows with the set only by
small counts per sentence.

Heads often park their attention on EOS, so confidence excludes EOS as query and as key (section 4).
Entropy is that of the whole distribution, EOS included: without it the weights do not sum to one.
The weight on EOS distinguishes a head that is certain of a word from one that parks its attention
on EOS.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

from dataclasses import dataclass

import numpy as np
import torch

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads import functions, maps
from specialized_heads.heads.functions import OF_TOKENS
from specialized_heads.heads.syntactic import Sentence, arc_hits, word_attention
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.transformer import Transformer


class OfType:
    """What is counted for the H heads of one attention type.

    queries: their number.
    sums: over queries, by column of the table of heads (H,).
    offsets: counts of relative positions (H, 2·reach + 1), see `functions.offset_counts`.
    visible: see `functions.visible_counts` (2, 2·reach + 1).
    """

    def __init__(self, kind: str, heads: int, *, reach: int) -> None:
        self.kind, self.reach, self.queries = kind, reach, 0
        columns = ["confidence", "entropy", "output_norm"]
        columns += ["eos_weight"] * (kind != "decoder")  # the decoder's input has no EOS
        self.sums = {column: np.zeros(heads) for column in columns}
        self.offsets = np.zeros((heads, 2 * reach + 1), np.int64)
        self.visible = np.zeros((2, 2 * reach + 1))

    def add(self, batch: maps.Maps, best: np.ndarray, *, eos: int) -> None:
        """Count a batch, whose argmaxes are `best` (B, H, T); `eos`: its id among the source
        tokens."""
        weights, queries, keys = (
            batch.weights[self.kind],
            batch.queries[self.kind],
            batch.keys[self.kind],
        )
        values = {  # (B, H, T)
            "confidence": weights.masked_fill(~keys[:, None, None], 0.0).amax(-1),
            "entropy": torch.special.entr(weights).sum(-1),
            "output_norm": batch.norms[self.kind],
        }
        if "eos_weight" in self.sums:
            values["eos_weight"] = (weights * (batch.source == eos)[:, None, None]).sum(-1)
        for column, value in values.items():
            self.sums[column] += (value * queries[:, None]).sum((0, 2)).double().numpy()
        self.queries += int(queries.sum())
        keys, positioned = keys.numpy(), functions.choosing(self.kind, queries.numpy())
        origin = functions.expected(self.kind, positioned, keys)
        self.offsets += functions.offset_counts(best, origin, positioned, reach=self.reach)
        self.visible += functions.visible_counts(
            self.kind, origin, positioned, keys, reach=self.reach
        )

    def means(self) -> dict[str, np.ndarray]:
        """Means over queries, by column (H,); NaN without queries."""
        return {column: total / (self.queries or np.nan) for column, total in self.sums.items()}


@dataclass(frozen=True)
class Counted:
    """Counts over the analysis set.

    types: by attention type.
    shares: of argmaxes of encoder heads, by column (H,), see `functions.Function`; NaN where no
    sentence qualifies.
    share_queries: the queries that each function counts, by its score.
    hits, fixed, arcs: per aligned sentence (N), the arcs that each encoder head gets right (N, H,
        R, 2), those that the best fixed offset gets right (N, R, 2), and all (N, R, 2).
    """

    types: dict[str, OfType]
    shares: dict[str, np.ndarray]
    share_queries: dict[str, int]
    hits: np.ndarray
    fixed: np.ndarray
    arcs: np.ndarray


def measure(
    model: Transformer,
    store: TokenStore,
    sentences: dict[int, Sentence],
    fixed_offsets: dict[tuple[str, str], int | None],
    **known: object,
) -> Counted:
    """Count all statistics of heads.

    Args:
        sentences: those with a tree, by number.
        fixed_offsets: the baselines, by relation and direction; see `syntactic.arc_hits`.
        known: what functions depend on: `ranks`, `cutoff` and `pieces`, see `functions.Function`.
    """
    reach = int(max(store.source_lengths.max(), store.target_lengths.max())) + 1
    types = {kind: OfType(kind, len(maps.head_numbers(model, kind)), reach=reach) for kind in KINDS}
    hits = {
        each.score: np.zeros((len(each.columns), len(types["encoder"].offsets)))
        for each in OF_TOKENS
    }
    share_queries = dict.fromkeys(hits, 0)
    arc_counts = []
    for batch in maps.attention_maps(model, store):
        best = {kind: maps.argmax(batch.weights[kind], batch.keys[kind]).numpy() for kind in KINDS}
        for kind, counts in types.items():
            counts.add(batch, best[kind], eos=store.tokens.eos)
        for function in OF_TOKENS:
            queries, source = batch.queries["encoder"].numpy(), batch.source.numpy()
            found, number = function.count(best["encoder"], queries, source, **known)
            hits[function.score] += found
            share_queries[function.score] += number
        rows = [row for row, number in enumerate(batch.sentences.tolist()) if number in sentences]
        if rows:
            parsed = [sentences[int(batch.sentences[row])] for row in rows]
            attention = word_attention(batch.weights["encoder"][rows], parsed)
            arc_counts.append(arc_hits(attention, parsed, fixed_offsets))
    shares = {
        column: row / (share_queries[each.score] or np.nan)
        for each in OF_TOKENS
        for column, row in zip(each.columns, hits[each.score], strict=True)
    }
    return Counted(
        types, shares, share_queries, *map(np.concatenate, zip(*arc_counts, strict=True))
    )
