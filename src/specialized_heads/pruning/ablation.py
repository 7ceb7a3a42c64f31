"""Stage: BLEU without each single head, and with each head alone in its layer (Michel et al. 2019, sections 3.2 and 3.3).

All three attention types. Heads are masked, not removed; `masking` translates with many masks in one pass. The difference from
the whole model has the p-value and the interval of a paired bootstrap.
"""

from typing import Any

import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.preprocess import undo
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.evaluation.score import compare
from specialized_heads.evaluation.translate import Settings as Decoded
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.checkpoint import architecture_of, load_on
from specialized_heads.pruning.masking import NOTHING, Removal, fingerprint, translate_set
from specialized_heads.pruning.scopes import heads_of
from specialized_heads.tables import HEAD, read_columns, write_table
from specialized_heads.training.state import claim, finishing

SCORES: dict[str, pa.DataType] = {
    **dict.fromkeys(("bleu", "bleu_full", "delta", "delta_low", "delta_high", "p_value"), pa.float64()),
    "sentences": pa.int64(),
    "signature": pa.string(),
}
SCHEMA = pa.schema({"what": pa.string()} | HEAD | SCORES)


class Settings(Decoded):
    alone: bool  # also with each head alone in its layer


def removals(architecture: Architecture, *, alone: bool) -> list[tuple[dict[str, Any], Removal]]:
    """The heads to remove, with their row of the table: what (without | alone), type, layer, head (from 1)."""
    heads = heads_of(architecture, scope="all")
    removed = [("without", head, frozenset([head])) for head in heads]
    for head in heads if alone else []:
        removed.append(("alone", head, frozenset(other for other in heads if other[:2] == head[:2]) - {head}))
    return [({"what": what} | dict(zip(HEAD, head, strict=True)), removal) for what, head, removal in removed]


def write_scores(
    wanted: list[tuple[dict[str, Any], Removal]], settings: Decoded, files: stage.Files, *, schema: pa.Schema
) -> None:
    """Translate a set under each removal of heads, score the translations, and write one row for each.

    Args:
        wanted: the removals, each with the columns that stand beside its scores (`SCORES`).
        settings: how to translate.
        files: `model`; `tokens` of the set; `bpe` of the target side; `references`, the set's text, in the column `target`;
            `output`; `state`, a folder for finished translations, from which a run resumes.
        schema: of the table.
    """
    claim(files.state)  # before it may wait for a GPU that an earlier process holds, which then stops
    network = load_on(files.model, settings.device)
    computed = {"device": network.device.type, "torch": torch.__version__}
    stamp = fingerprint(
        files.model, files.model.with_suffix(".json"), files.tokens, settings=settings.decoding.model_dump() | computed
    )
    store, pieces = load_tokens(files.tokens), load_bpe(files.bpe)
    [gold] = read_columns(files.references, "target")
    how = {"decoding": settings.decoding, "state": files.state, "fingerprint": stamp}
    texts = {}
    for removal, outputs in translate_set(network, store, [removal for _, removal in wanted], **how).items():
        lines = [pieces.decode(ids).replace("\n", " ") for ids in outputs]
        texts[removal] = undo(lines, language=settings.language, mode=settings.preprocess)
    how = {"language": settings.language, "lowercase": settings.preprocess == "paper"}
    full, compared, signature = compare(texts[NOTHING], list(texts.values()), gold, **how)
    common = {"bleu_full": full, "sentences": len(gold), "signature": signature}
    scores = {
        removal: {"bleu": score.bleu, "p_value": score.p_value}
        | {"delta": score.bleu - full, "delta_low": score.low, "delta_high": score.high}
        | common
        for removal, score in zip(texts, compared, strict=True)
    }
    with finishing(files.state):
        write_table(files.output, pa.Table.from_pylist([row | scores[heads] for row, heads in wanted], schema=schema))
    stage.log.info("%d removals scored, BLEU of the whole model %.2f", len(wanted), scores[NOTHING]["bleu"])


@stage.command("model", "tokens", "bpe", "references", "output", "state", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    write_scores(removals(architecture_of(files.model), alone=settings.alone), settings, files, schema=SCHEMA)
