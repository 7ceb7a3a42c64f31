"""Stage: all measurements of the heads of one model, one row per head (sections 4 and 5).

Relevance comes from the relevance stage, on the development set; everything else from attention maps on the analysis set. The
functions of section 5 are those of encoder heads; of these, decoder and cross-attention heads only have a position.
"""

import pyarrow as pa

from specialized_heads import stage
from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.examples import examples
from specialized_heads.heads.functions import LEAST_ARCS
from specialized_heads.heads.measure import measure
from specialized_heads.heads.rare_words import frequency_ranks
from specialized_heads.heads.shares import SHARES
from specialized_heads.heads.table import head_rows, read_relevance, table_schema
from specialized_heads.heads.trees import align
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import load_on
from specialized_heads.parsing.relations import explain_absent, relation_table
from specialized_heads.parsing.words import read_parses
from specialized_heads.tables import read_columns, write_table


class Settings(stage.Section):
    heads: Heads
    preprocess: Mode
    language: str  # of the source side
    seed: int
    device: str


INPUTS = ("model", "bpe", "text", "analysis", "train", "parses", "relevance")


@stage.command(*INPUTS, "output", "examples", "report", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    """Write `--output` (one row per head), `--examples` (maps for figure 5) and `--report` (counts behind the table)."""
    model = load_on(files.model, settings.device)
    relevance = read_relevance(files.relevance)
    bpe = load_bpe(files.bpe)
    store, train = load_tokens(files.analysis), load_tokens(files.train)
    [texts] = read_columns(files.text, "source")
    parses = read_parses(files.parses)
    processed = apply(texts, language=settings.language, mode=settings.preprocess)
    tags = len(store.tokens.source_tags)
    sentences, left_out = align(parses, texts, bpe, settings.heads.relations, processed=processed, tags=tags)
    if not sentences:
        raise stage.UserError(f"{files.parses}: no tree can be aligned with {files.text}; parse that text again")
    fixed = relation_table((sentence.arcs for sentence in sentences.values()), settings.heads.relations)
    offsets = {(row["relation"], row["direction"]): row["baseline_offset"] for row in fixed.to_pylist()}
    ranks = frequency_ranks(train, vocabulary=bpe.vocab_size())
    pieces = [bpe.id_to_piece(number) for number in range(bpe.vocab_size())]
    counted = measure(model, store, sentences, offsets, ranks, settings.heads, pieces)
    rows = head_rows(model, counted, relevance, settings.heads, seed=settings.seed)
    arcs = dict(zip(settings.heads.relations, counted.arcs.sum(0)[:, 0].tolist()))
    if absent := [relation for relation, number in arcs.items() if not number]:
        stage.log.warning("%s: no arc of %s", files.parses, explain_absent(absent, parses.values()))
    schema = table_schema(settings.heads.relations)
    write_table(files.output, pa.Table.from_pylist(rows, schema=schema))
    stage.write_json(files.examples, examples(model, store, bpe, ranks, counted, settings.heads))
    report = {
        "sentences": len(texts),
        "parsed": len(parses),
        "aligned": len(sentences),
        "queries": counted.queries,
        "share_queries": {share.columns[0]: n for share, n in zip(SHARES, counted.share_queries, strict=True)},
        "arcs": arcs,
        "arcs_within_pieces": {relation: left_out[relation] for relation in arcs},
        "fewer_than_least_arcs": [relation for relation, number in arcs.items() if number < LEAST_ARCS],
        "labelled": {kind: sum(bool(row["functions"]) for row in rows if row["type"] == kind) for kind in KINDS},
    }
    stage.write_json(files.report, report)
    stage.log.info("%d heads; %d of %d sentences aligned with their parses", len(rows), len(sentences), len(texts))
    labelled, encoder = report["labelled"]["encoder"], sum(row["type"] == "encoder" for row in rows)
    reason = "" if labelled or not encoder else "; most likely the model is small or was trained for few updates"
    verb = "has" if labelled == 1 else "have"
    stage.log.info("%d of %d encoder heads %s a function%s", labelled, encoder, verb, reason)
