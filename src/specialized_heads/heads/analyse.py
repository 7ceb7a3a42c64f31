"""Stage: all measurements of the heads of one model, one row per head (sections 4 and 5).

Relevance comes from the relevance stage, on the development set; everything else is counted in one
pass over attention maps of the analysis set. Each batch of maps is dropped once it is counted, so
memory grows with the set only by small counts per sentence. Encoder heads can have any function of
section 5, decoder and cross-attention heads only that of position. docs/heads.md describes every
column.

Heads often park their attention on EOS, so confidence excludes EOS as query and as key (section 4).
Entropy is that of the whole distribution, EOS included: without it the weights do not sum to one.
The weight on EOS distinguishes a head that is certain of a word from one that parks its attention
on EOS.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.corpus.tokens import TokenStore, load_bpe, load_tokens
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads import functions, maps
from specialized_heads.heads.functions import LEAST_ARCS, NEIGHBOURS, OF_TOKENS, share_at
from specialized_heads.heads.maps import head_numbers
from specialized_heads.heads.syntactic import (
    ENDINGS,
    Sentence,
    align,
    arc_hits,
    bootstrap_intervals,
    score_names,
    word_attention,
)
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.transformer import Transformer
from specialized_heads.parsing.relations import explain_absent, relation_table
from specialized_heads.parsing.words import read_parses
from specialized_heads.tables import HEAD, read_columns, read_table, write_table


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
        """Count a batch with the argmaxes `best` (B, H, T); `eos`: its id on the source side."""
        weights, keys = batch.weights[self.kind], batch.keys[self.kind]
        queries = batch.queries[self.kind]
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
        keys, positioned = keys.numpy(), functions.positioned(self.kind, queries.numpy())
        origin = functions.origins(self.kind, positioned, keys)
        self.offsets += functions.offset_counts(best, origin, positioned, reach=self.reach)
        visible = functions.visible_counts(self.kind, origin, positioned, keys, reach=self.reach)
        self.visible += visible

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
    types = {kind: OfType(kind, len(head_numbers(model, kind)), reach=reach) for kind in KINDS}
    hits, share_queries = {}, dict.fromkeys((each.score for each in OF_TOKENS), 0)
    arc_counts = []
    for batch in maps.attention_maps(model, store):
        # Weights and positions, of all types.
        best = {kind: maps.argmax(batch.weights[kind], batch.keys[kind]).numpy() for kind in KINDS}
        for kind, counts in types.items():
            counts.add(batch, best[kind], eos=store.tokens.eos)
        # Shares of the argmaxes of encoder heads.
        queries, source = batch.queries["encoder"].numpy(), batch.source.numpy()
        for function in OF_TOKENS:
            found, number = function.count(best["encoder"], queries, source, **known)
            hits[function.score] = hits.get(function.score, 0) + found
            share_queries[function.score] += number
        # Arcs of the sentences with a tree.
        numbers = batch.sentences.tolist()
        if rows := [row for row, number in enumerate(numbers) if number in sentences]:
            parsed = [sentences[numbers[row]] for row in rows]
            attention = word_attention(batch.weights["encoder"][rows], parsed)
            arc_counts.append(arc_hits(attention, parsed, fixed_offsets))
    shares = {
        column: row / (share_queries[each.score] or np.nan)
        for each in OF_TOKENS
        for column, row in zip(each.columns, hits[each.score], strict=True)
    }
    arcs = map(np.concatenate, zip(*arc_counts, strict=True))
    return Counted(types, shares, share_queries, *arcs)


def table_schema(relations: list[str]) -> pa.Schema:
    """Columns of `heads/<model>.parquet`, for these relations."""
    columns: list[tuple[str, pa.DataType]] = list(HEAD.items())
    measured = "relevance relevance_error confidence entropy output_norm eos_weight".split()
    columns += [(name, pa.float64()) for name in measured]
    columns += [("positional_offset", pa.int32())]
    columns += [(f"positional_{name}", pa.float64()) for name in ("share", "share_raw", "chance")]
    columns += [(f"share_{offset:+d}", pa.float64()) for offset in NEIGHBOURS]
    for relation, names in zip(relations, score_names(relations)):
        columns += [(f"{relation}_arcs", pa.int64())]
        columns += [(name + ending, pa.float64()) for name in names for ending in ENDINGS]
    columns += [(name, pa.float64()) for function in OF_TOKENS for name in function.columns]
    lists = ("functions", "relations", "relations_certain")
    columns += [(name, pa.list_(pa.string())) for name in lists]
    return pa.schema(columns)


def read_relevance(path: Path) -> dict[tuple[str, int, int], tuple[float, float]]:
    """Read a table of the relevance stage: by the first rule, the relevance of each (type, layer,
    head) and its error."""
    table = read_table(path)
    rule = next(name for name in table.column_names if name not in HEAD)
    columns = (table[name].to_pylist() for name in (*HEAD, rule, f"{rule}_error"))
    return {(kind, layer, head): found for kind, layer, head, *found in zip(*columns)}


def head_rows(
    model: Transformer,
    counted: Counted,
    relevance: dict[tuple[str, int, int], tuple[float, float]],
    relations: list[str],
    *,
    seed: int,
) -> list[dict[str, Any]]:
    """One row per head, in the order of the attention types."""
    syntax = syntactic_columns(counted, relations, seed=seed)
    names = score_names(relations)
    enough = names[counted.arcs.sum(0) >= LEAST_ARCS]
    neighbours = {"encoder": NEIGHBOURS, "decoder": NEIGHBOURS[:2], "cross": ()}  # the visible ones
    rows = []
    for kind, of_type in counted.types.items():
        means, (possible, chance) = of_type.means(), of_type.visible
        for number, (layer, head) in enumerate(head_numbers(model, kind)):
            counts = of_type.offsets[number]
            place = functions.preferred(kind, counts, possible)
            row = {"type": kind, "layer": layer, "head": head}
            row |= dict(zip(("relevance", "relevance_error"), relevance[kind, layer, head]))
            row |= {column: values[number] for column, values in means.items()}
            row |= {"positional_offset": place.offset, "positional_share": place.share}
            if place.offset is not None:
                row["positional_chance"] = share_at(kind, place.offset, chance, possible)
            if kind != "cross":
                row["positional_share_raw"] = place.share_raw
            for offset in neighbours[kind]:
                row[f"share_{offset:+d}"] = share_at(kind, offset, counts, possible)
            margins = {}
            if kind == "encoder":
                row |= syntax[number]
                row |= {column: shares[number] for column, shares in counted.shares.items()}
                margins = {name: row[f"{name}_margin"] for name in names.flat}
            row["functions"], syntactic = functions.functions_of(
                kind, place, margins=margins, shares=row
            )
            if kind == "encoder":
                # On other sentences too the head would beat the fixed offset; not corrected for the
                # number of heads.
                certain = [
                    name for name in syntactic if name in enough and row[f"{name}_margin_low"] > 0
                ]
                row |= {"relations": syntactic, "relations_certain": certain}
            rows.append(row)
    return rows


def syntactic_columns(
    counted: Counted, relations: list[str], *, seed: int
) -> list[dict[str, float]]:
    """The columns of section 5.2, one dictionary per encoder head."""
    heads = counted.hits.shape[1]
    if not heads:  # all encoder heads are pruned
        return []
    scores = bootstrap_intervals(counted.hits, counted.fixed, counted.arcs, seed=seed)
    names, numbers = score_names(relations).ravel(), counted.arcs.sum(0)[:, 0].tolist()
    arcs = {f"{relation}_arcs": number for relation, number in zip(relations, numbers)}
    rows = [dict(arcs) for _ in range(heads)]
    for ending, values in scores.items():
        for row, of_head in zip(rows, values.reshape(heads, -1).tolist()):
            row |= {name + ending: value for name, value in zip(names, of_head)}
    return rows


class Settings(stage.Section):
    heads: Heads
    preprocess: Mode
    language: str  # of the source side
    seed: int
    device: str


INPUTS = ("model", "bpe", "text", "analysis", "train", "parses", "relevance")


@stage.command(*INPUTS, "output", "examples", "report", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    """Write `--output` (one row per head), `--examples` (maps for figure 5) and `--report` (counts
    behind the table)."""
    model = load_on(files.model, settings.device)
    relevance = read_relevance(files.relevance)
    bpe = load_bpe(files.bpe)
    store, train = load_tokens(files.analysis), load_tokens(files.train)
    [texts] = read_columns(files.text, "source")
    parses = read_parses(files.parses)
    processed = apply(texts, language=settings.language, mode=settings.preprocess)
    tags = len(store.tokens.source_tags)
    relations, cutoff = settings.heads.relations, settings.heads.rare_cutoff
    sentences, left_out = align(parses, texts, bpe, relations, processed=processed, tags=tags)
    if not sentences:
        raise stage.UserError(
            f"{files.parses}: no tree can be aligned with {files.text}; parse that text again"
        )
    fixed = relation_table((sentence.arcs for sentence in sentences.values()), relations)
    offsets = {
        (row["relation"], row["direction"]): row["baseline_offset"] for row in fixed.to_pylist()
    }
    ranks = functions.frequency_ranks(train.source, vocabulary=bpe.vocab_size())
    pieces = [bpe.id_to_piece(number) for number in range(bpe.vocab_size())]
    counted = measure(model, store, sentences, offsets, ranks=ranks, pieces=pieces, cutoff=cutoff)
    rows = head_rows(model, counted, relevance, relations, seed=settings.seed)
    arcs = dict(zip(relations, counted.arcs.sum(0)[:, 0].tolist()))
    if absent := [relation for relation, number in arcs.items() if not number]:
        stage.log.warning("%s: no arc of %s", files.parses, explain_absent(absent, parses.values()))
    write_table(files.output, pa.Table.from_pylist(rows, schema=table_schema(relations)))
    kept = maps.examples(
        model, store, bpe, ranks=ranks, cutoff=cutoff, shares=counted.shares["rarest"]
    )
    stage.write_json(files.examples, kept)
    functional = [row["type"] for row in rows if row["functions"]]
    report = {
        "sentences": len(texts),
        "parsed": len(parses),
        "aligned": len(sentences),
        "queries": {kind: of_type.queries for kind, of_type in counted.types.items()},
        "share_queries": counted.share_queries,
        "arcs": arcs,
        "arcs_within_pieces": {relation: left_out[relation] for relation in arcs},
        "fewer_than_least_arcs": [name for name, number in arcs.items() if number < LEAST_ARCS],
        "labelled": {kind: functional.count(kind) for kind in KINDS},
    }
    stage.write_json(files.report, report)
    said = "%d heads; %d of %d sentences aligned with their parses"
    stage.log.info(said, len(rows), len(sentences), len(texts))
    labelled, encoder = report["labelled"]["encoder"], sum(row["type"] == "encoder" for row in rows)
    reason = "; most likely the model is small or was trained for few updates"
    reason = reason if encoder and not labelled else ""
    verb = "has" if labelled == 1 else "have"
    stage.log.info("%d of %d encoder heads %s a function%s", labelled, encoder, verb, reason)
