"""Stage: everything that is measured of the heads of one model, one row per head (sections 4 and 5).

Relevance is that of the relevance stage, over the development set; all else comes from the attention maps on the analysis set.
The functions of section 5 are those of encoder heads; heads of the decoder and of cross-attention have a position.
"""

import pyarrow as pa

from specialized_heads import stage
from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads import positional
from specialized_heads.heads.examples import examples
from specialized_heads.heads.measure import Counted, measure
from specialized_heads.heads.rare_words import frequency_ranks
from specialized_heads.heads.table import baseline_accuracies, baseline_offsets, head_rows, read_relevance, table_schema
from specialized_heads.heads.trees import align
from specialized_heads.model.checkpoint import load
from specialized_heads.model.devices import choose_device
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import KINDS
from specialized_heads.parsing.alignment import check_pieces, check_words
from specialized_heads.parsing.relations import explain_absent, relation_table
from specialized_heads.parsing.words import read_parses
from specialized_heads.sections import Heads
from specialized_heads.stage import Section
from specialized_heads.tables import read_table, write_table


class Settings(Section):
    heads: Heads
    preprocess: Mode
    language: str  # of the source side
    seed: int
    device: str


def reachable(counted: Counted, threshold: float) -> dict[str, float | None]:
    """Per type of self-attention, the share of a head that always looks at the previous token; warns where it is no label."""
    shares: dict[str, float | None] = {}
    for kind in ("encoder", "decoder"):
        share = positional.ceiling(kind, -1, counted.lengths[kind])
        shares[kind] = share if counted.queries[kind] else None
        if share < threshold:
            stage.log.warning(
                "the sentences are so short that a head which always looks at the previous token does so in %.1f%% of the "
                "%s's queries: none can be positional at positional_share %g",
                100 * share,
                kind,
                threshold,
            )
    return shares


def main() -> None:
    """Write `--output` (one row per head), `--examples` (maps for figure 5) and `--report` (what was counted)."""
    files = stage.arguments(
        __doc__,
        files=("model", "bpe", "text", "analysis", "train", "parses", "relevance", "output", "examples", "report"),
    )
    settings = Settings.model_validate(files.settings)
    prepare_cpu()
    model = load(files.model, device=choose_device(settings.device))
    relevance, rules = read_relevance(files.relevance)
    bpe = load_bpe(files.bpe)
    store, train = load_tokens(files.analysis), load_tokens(files.train)
    texts = read_table(files.text, columns=["source"]).column("source").to_pylist()
    parses = read_parses(files.parses)
    check_words(files.parses, parses, texts)
    processed = apply(texts, language=settings.language, mode=settings.preprocess)
    check_pieces(files.analysis, store, processed, bpe)
    sentences, left_out = align(parses, texts, bpe, settings.heads.relations, processed=processed)
    if not sentences:
        raise stage.UserError(
            f"{files.parses}: no parsed sentence could be aligned with {files.text}; parse that text again"
        )
    fixed = relation_table((sentence.arcs for sentence in sentences.values()), settings.heads.relations)
    baselines = baseline_accuracies(fixed)
    ranks = frequency_ranks(train, vocabulary=bpe.vocab_size())
    counted = measure(model, store, sentences, baseline_offsets(fixed), ranks, settings.heads)
    rows = head_rows(model, counted, relevance, baselines, settings.heads, seed=settings.seed)
    arcs = dict(zip(settings.heads.relations, counted.arcs.sum(0)[:, 0].tolist()))
    absent = [relation for relation, number in arcs.items() if not number]
    if absent:
        stage.log.warning("%s: no arc of %s", files.parses, explain_absent(absent, parses.values()))
    schema = table_schema(settings.heads.relations, rules)
    write_table(files.output, pa.Table.from_pylist(rows, schema=schema))
    stage.write_json(files.examples, examples(model, store, bpe, ranks, counted, settings.heads))
    report = {
        "sentences": len(texts),
        "parsed": len(parses),
        "aligned": len(sentences),
        "queries": counted.queries,
        "rare_words_queries": counted.rare_queries,
        "arcs": arcs,
        "arcs_within_pieces": {relation: left_out[relation] for relation in arcs},
        "fewer_than_least_arcs": [relation for relation, number in arcs.items() if number < settings.heads.least_arcs],
        "previous_token_ceiling": reachable(counted, settings.heads.positional_share),
        "relevance_rules": rules,
        "labelled": {kind: sum(bool(row["functions"]) for row in rows if row["type"] == kind) for kind in KINDS},
    }
    stage.write_json(files.report, report)
    stage.log.info("%d heads; %d of %d sentences aligned with their parses", len(rows), len(sentences), len(texts))


if __name__ == "__main__":
    stage.run(main)
