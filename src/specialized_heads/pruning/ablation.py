"""Stage: BLEU without each single head, and with each head alone in its layer (Michel et al. 2019, sections 3.2 and 3.3).

All three attention types. Heads are masked, not removed, and the translations come from `masking`, many heads in a pass.
A difference from the whole model has the p-value and the interval of a paired bootstrap.
"""

import argparse
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.preprocess import Mode, undo
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.evaluation.significance import compare
from specialized_heads.model.checkpoint import architecture_of, load
from specialized_heads.model.devices import choose_device
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import Architecture
from specialized_heads.pruning.masking import NOTHING, Removal, State, fingerprint, translate_set
from specialized_heads.pruning.scopes import heads_of
from specialized_heads.sections import Decoding
from specialized_heads.stage import Section
from specialized_heads.tables import read_table, write_table

SCORES: dict[str, pa.DataType] = {
    **dict.fromkeys(("bleu", "bleu_full", "delta", "delta_low", "delta_high", "p_value"), pa.float64()),
    "sentences": pa.int64(),
    "signature": pa.string(),
}
SCHEMA = pa.schema(
    {"what": pa.string(), "type": pa.string(), "layer": pa.int32(), "head": pa.int32(), **SCORES}  # type: ignore[arg-type]
)


class Decoded(Section):
    """What affects a translation and its score, besides the model and the set."""

    decoding: Decoding
    preprocess: Mode
    language: str  # of the translations
    device: str


class Settings(Decoded):
    alone: bool  # also with each head alone in its layer


def removals(architecture: Architecture, *, alone: bool) -> list[tuple[dict[str, Any], Removal]]:
    """What is removed in turn, with what the table says of it: what (without | alone), type, layer, head (from 1)."""
    found = []
    heads = heads_of(architecture, scope="all")
    for kind, layer, head in heads:
        found.append(
            ({"what": "without", "type": kind, "layer": layer, "head": head}, frozenset([(kind, layer, head)]))
        )
    for kind, layer, head in heads if alone else []:
        others = frozenset(other for other in heads if other[:2] == (kind, layer) and other[2] != head)
        found.append(({"what": "alone", "type": kind, "layer": layer, "head": head}, others))
    return found


def score_removals(
    wanted: list[Removal], settings: Decoded, *, model: Path, tokens: Path, bpe: Path, references: Path, state: Path
) -> tuple[dict[Removal, dict[str, Any]], State]:
    """Translate a set without these heads, without those, and so on, and score it.

    Args:
        wanted: the removals.
        settings: beam search, text, device.
        model, tokens, bpe: weights, token ids of the set, BPE model of the target side.
        references: the set's text, its column `target`.
        state: folder for what a kill must not lose.

    Returns:
        per removal: bleu, bleu_full (of the whole model), delta with its 95% interval (_low, _high), p_value, sentences,
        signature; and the state, to be finished once these are written.
    """
    prepare_cpu()
    device = choose_device(settings.device)
    computed = {"device": device.type, "torch": torch.__version__}
    stamp = fingerprint(model, model.with_suffix(".json"), tokens, settings=settings.decoding.model_dump() | computed)
    saved, store, pieces = State(state, fingerprint=stamp), load_tokens(tokens), load_bpe(bpe)
    network = load(model, device=device)
    texts = {}
    for removal, outputs in translate_set(network, store, wanted, decoding=settings.decoding, state=saved).items():
        lines = [pieces.decode(ids).replace("\n", " ") for ids in outputs]
        texts[removal] = undo(lines, language=settings.language, mode=settings.preprocess)
    gold = read_table(references, columns=["target"]).column("target").to_pylist()
    if len(gold) != len(store):
        raise stage.UserError(f"{references}: {len(gold)} sentences, but {tokens} has {len(store)}; make it again")
    lowercase = settings.preprocess == "paper"
    full, scores, signature = compare(
        texts[NOTHING], list(texts.values()), gold, language=settings.language, lowercase=lowercase
    )
    common = {"bleu_full": full, "sentences": len(gold), "signature": signature}
    rows = {
        removal: {"bleu": found.bleu, "p_value": found.p_value}
        | {"delta": found.bleu - full, "delta_low": found.low, "delta_high": found.high}
        | common
        for removal, found in zip(texts, scores, strict=True)
    }
    return rows, saved


def write_scores(
    wanted: list[tuple[dict[str, Any], Removal]], settings: Decoded, files: argparse.Namespace, *, schema: pa.Schema
) -> None:
    """Score removals and write one row for each: what is said of it, and its scores.

    Args:
        wanted: the rows, each with its removal.
        settings: beam search, text, device.
        files: model, tokens, bpe, references (read); output (written); state.
        schema: of the table.
    """
    scores, saved = score_removals(
        [removal for _, removal in wanted],
        settings,
        model=files.model,
        tokens=files.tokens,
        bpe=files.bpe,
        references=files.references,
        state=files.state,
    )
    write_table(files.output, pa.Table.from_pylist([row | scores[heads] for row, heads in wanted], schema=schema))
    saved.finish()
    stage.log.info("%d removals scored, BLEU of the whole model %.2f", len(wanted), scores[NOTHING]["bleu"])


def main() -> None:
    files = stage.arguments(__doc__, files=("model", "tokens", "bpe", "references", "output", "state"))
    settings = Settings.model_validate(files.settings)
    write_scores(removals(architecture_of(files.model), alone=settings.alone), settings, files, schema=SCHEMA)


if __name__ == "__main__":
    stage.run(main)
