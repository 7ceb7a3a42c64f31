"""Stage: everything that is measured of the heads of one model, one row per head (sections 4 and 5).

Relevance is averaged over the development set; all that needs attention maps over the analysis set. The functions of
section 5 are those of encoder heads; decoder and cross-attention heads have relevance and confidence.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from sentencepiece import SentencePieceProcessor

from specialized_heads import stage
from specialized_heads.config import Heads, Section
from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.heads import maps, syntactic
from specialized_heads.heads.functions import functions_of
from specialized_heads.heads.relevance import head_relevance
from specialized_heads.model.checkpoint import choose_device, load
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.parsing.alignment import raw_piece_spans, words_to_pieces
from specialized_heads.parsing.relations import DIRECTIONS, Arc, arcs, relation_table
from specialized_heads.parsing.words import Word, read_parses

EXAMPLES = 3  # sentences kept for figure 5
EXAMPLE_TOKENS = range(8, 15)  # their length in subwords, so that a map can be read


class Settings(Section):
    heads: Heads
    preprocess: Mode
    language: str  # of the source side
    seed: int
    device: str


@dataclass(frozen=True)
class Sentence:
    """A parsed sentence: the pieces of each word, and the arcs of the relations asked for."""

    words: list[list[int]]
    arcs: list[Arc]


def align(
    parses: dict[int, list[Word]],
    texts: list[str],
    bpe: SentencePieceProcessor,
    relations: list[str],
    *,
    processed: list[str] | None = None,
) -> tuple[dict[int, Sentence], dict[int, list[Word]]]:
    """Lay parses over subwords.

    Args:
        parses: the words of each parsed sentence.
        texts: the sentences as the parser saw them.
        bpe: the model that cut them.
        relations: whose arcs are kept.
        processed: the sentences as BPE got them; None: `texts`.

    Returns:
        the aligned sentences, and their parses. Left out of both: a sentence whose two texts do not agree, and one with
        a word that has no piece.
    """
    sentences, aligned = {}, {}
    for number, words in parses.items():
        spans = raw_piece_spans(bpe, (processed or texts)[number], texts[number])
        if spans is None:
            continue
        pieces = words_to_pieces([(word.start, word.end) for word in words], spans)
        if all(pieces):
            sentences[number] = Sentence(pieces, arcs(words, relations))
            aligned[number] = words
    return sentences, aligned


def measure(
    model: Transformer, store: TokenStore, sentences: dict[int, Sentence], ranks: torch.Tensor, settings: Heads
) -> dict[str, Any]:
    """One pass over the analysis set: counts for every statistic but relevance.

    Returns:
        `confidence`: per type, (H,); `offsets`: (H, 2·reach + 1) counts of the encoder; `rarest`, `two_rarest`: (H,) shares;
        `hits` (N, H, R, 2) and `arcs` (N, R, 2) per aligned sentence.
    """
    reach = int(store.source_lengths.max()) + 1
    certainty, queries = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    offsets, rare, either, counted = 0, 0, 0, 0
    hits, counts = [], []
    for batch in maps.attention_maps(model, store):
        for kind in KINDS:
            total, number = maps.confidence(batch.weights[kind], batch.queries[kind], batch.keys[kind])
            certainty[kind] = certainty[kind] + total
            queries[kind] += number
        weights, real = batch.weights["encoder"], batch.queries["encoder"]
        best = maps.argmax(weights, real)
        offsets = offsets + maps.offset_counts(best, real, reach=reach)
        first, second, number = maps.rare_hits(best, real, batch.source, ranks=ranks, cutoff=settings.rare_cutoff)
        rare, either, counted = rare + first, either + second, counted + number
        for row, number in enumerate(batch.sentences.tolist()):
            if number in sentences:
                sentence = sentences[number]
                attention = syntactic.word_attention(weights[row], sentence.words, from_word=settings.from_word)
                right, asked = syntactic.arc_hits(attention, sentence.arcs, settings.relations)
                hits.append(right)
                counts.append(asked)
    shares = [
        np.asarray(count, dtype=float) / counted if counted else np.full(len(count), np.nan) for count in (rare, either)
    ]
    return {
        "confidence": {kind: (certainty[kind] / queries[kind]).numpy() for kind in KINDS},
        "offsets": np.asarray(offsets),
        "reach": reach,
        "rarest": shares[0],
        "two_rarest": shares[1],
        "rare_queries": counted,
        "hits": np.stack(hits),
        "arcs": np.stack(counts),
    }


def encoder_columns(found: dict[str, Any], baselines: dict[str, float], settings: Settings) -> list[dict[str, Any]]:
    """The columns of section 5, one dictionary per encoder head."""
    if not len(found["offsets"]):  # all encoder heads are pruned
        return []
    names = [f"{relation}_{direction}" for relation in settings.heads.relations for direction in DIRECTIONS]
    bounds = syntactic.bootstrap_intervals(
        found["hits"], found["arcs"], samples=settings.heads.bootstrap, seed=settings.seed
    )
    accuracy, low, high = (values.reshape(len(values), -1) for values in bounds)  # (H, R * 2)
    rows = []
    for head, counts in enumerate(found["offsets"]):
        share = float(counts.max() / counts.sum())
        accuracies = dict(zip(names, accuracy[head].tolist(), strict=True))
        functions, relations = functions_of(
            positional_share=share,
            accuracies=accuracies,
            baselines=baselines,
            rarest=float(found["rarest"][head]),
            positional_threshold=settings.heads.positional_share,
            margin=settings.heads.syntactic_margin,
            rare_threshold=settings.heads.rare_share,
        )
        row = {"positional_offset": int(counts.argmax()) - found["reach"], "positional_share": share}
        for column, name in enumerate(names):
            row |= {
                name: accuracies[name],
                f"{name}_low": float(low[head, column]),
                f"{name}_high": float(high[head, column]),
            }
        row |= {"rarest": float(found["rarest"][head]), "two_rarest": float(found["two_rarest"][head])}
        rows.append(row | {"functions": functions, "relations": relations})
    return rows


def table_schema(relations: list[str]) -> pa.Schema:
    """Columns of `heads/<model>.parquet`."""
    columns: list[tuple[str, pa.DataType]] = [
        ("type", pa.string()),
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("relevance", pa.float64()),
        ("confidence", pa.float64()),
        ("positional_offset", pa.int32()),
        ("positional_share", pa.float64()),
    ]
    for relation in relations:
        for direction in DIRECTIONS:
            columns += [(f"{relation}_{direction}{end}", pa.float64()) for end in ("", "_low", "_high")]
    columns += [("rarest", pa.float64()), ("two_rarest", pa.float64())]
    columns += [("functions", pa.list_(pa.string())), ("relations", pa.list_(pa.string()))]
    return pa.schema(columns)


def examples(
    model: Transformer,
    store: TokenStore,
    bpe: SentencePieceProcessor,
    ranks: torch.Tensor,
    found: dict[str, Any],
    settings: Heads,
) -> dict[str, Any]:
    """Attention maps of the head that looks most at the rarest token, on the first sentences that qualify (figure 5).

    `kind` says whether that head passes as a rare-words head or is only the nearest to one.
    """
    heads = maps.head_numbers(model, "encoder")
    if not heads or not found["rare_queries"]:
        return {"layer": None, "head": None, "kind": "none", "score": None, "sentences": []}
    head = int(np.argmax(found["rarest"]))
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
    score = float(found["rarest"][head])
    return {
        "layer": layer,
        "head": head_number,
        "kind": "rare words" if score >= settings.rare_share else "best by score",
        "score": score,
        "sentences": sentences,
    }


def main() -> None:
    files = stage.arguments(
        __doc__,
        files=("model", "bpe", "text", "analysis", "dev", "train", "parses", "output", "examples", "report"),
    )
    settings = Settings.model_validate(files.settings)
    prepare_cpu()
    model = load(files.model, device=choose_device(settings.device))
    bpe = load_bpe(files.bpe)
    store, dev, train = load_tokens(files.analysis), load_tokens(files.dev), load_tokens(files.train)
    texts = pq.read_table(files.text, columns=["source"]).column("source").to_pylist()
    parses = read_parses(files.parses)
    processed = apply(texts, language=settings.language, mode=settings.preprocess)
    sentences, aligned = align(parses, texts, bpe, settings.heads.relations, processed=processed)
    if not sentences:
        raise stage.UserError(
            f"{files.parses}: no parsed sentence could be aligned with {files.text}; parse that text again"
        )
    baselines = {
        f"{row['relation']}_{row['direction']}": row["baseline_accuracy"] if row["arcs"] else float("nan")
        for row in relation_table(aligned.values(), settings.heads.relations).to_pylist()
    }
    ranks = maps.frequency_ranks(train, vocabulary=bpe.vocab_size())
    found = measure(model, store, sentences, ranks, settings.heads)
    columns = encoder_columns(found, baselines, settings)
    relevance, conservation = head_relevance(model, dev, epsilon=settings.heads.relevance_epsilon)
    rows = []
    for kind in KINDS:
        shares = np.concatenate([relevance[kind, attention.layer] for attention in model.attentions(kind)])
        for number, (layer, head) in enumerate(maps.head_numbers(model, kind)):
            row = {
                "type": kind,
                "layer": layer,
                "head": head,
                "relevance": float(shares[number]),
                "confidence": float(found["confidence"][kind][number]),
            }
            rows.append(row | (columns[number] if kind == "encoder" else {}))
    with stage.atomic(files.output) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=table_schema(settings.heads.relations)), temporary)
    stage.write_json(files.examples, examples(model, store, bpe, ranks, found, settings.heads))
    report = {
        "sentences": len(texts),
        "parsed": len(parses),
        "aligned": len(sentences),
        "rare_words_queries": found["rare_queries"],
        "relevance_steps": int((dev.target_lengths + 1).sum()),
        "conservation": conservation,
    }
    stage.write_json(files.report, report)
    stage.log.info("%d heads; %d of %d sentences aligned with their parses", len(rows), len(sentences), len(texts))


if __name__ == "__main__":
    stage.run(main)
