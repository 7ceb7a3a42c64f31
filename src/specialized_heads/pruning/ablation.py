"""Stage: BLEU without some of the heads, which are masked, not removed (Michel et al. 2019).

Without `--importance`, each single head is removed and, with `alone`, all heads of a layer but one
(sections 3.2 and 3.3). With it, heads are removed in order, the least important first (section 4):
each step removes a share of the heads, of all types together and, with `by_type`, of each type
separately. The model is not trained in between, and importance is that of the whole model. The
difference from the whole model has the p-value and the interval of a paired bootstrap.

A removal is a set of heads whose output is multiplied by zero, which equals removing them from the
weights: the only bias that stays is that of the layer's output projection. A pass translates every
sentence under several removals: the batch is tiled, one tile per removal. If no removal of a pass
includes encoder heads, the encoder runs once for all tiles. Runs are resumable: each pass saves the
outputs so far, with a fingerprint of everything that affects them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.preprocess import undo
from specialized_heads.corpus.tokens import TokenStore, load_bpe, load_tokens
from specialized_heads.evaluation import compare
from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.architecture import KINDS, Architecture, Head, heads_of
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.decoding import TOKENS, in_batches, translate
from specialized_heads.model.decoding import Settings as Decoded
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Network, Transformer
from specialized_heads.tables import HEAD, read_columns, read_table, write_table
from specialized_heads.training import state as run_state

Removal = frozenset[Head]
NOTHING: Removal = frozenset()
Row = dict[str, Any]

REMOVALS = 8  # in one pass
STEPS = 10  # of systematic pruning, as in the paper
SINGLE = {"what": pa.string()} | HEAD
SYSTEMATIC = {"pruned": pa.string(), "removed": pa.int64()}
SYSTEMATIC |= {"heads": pa.int64(), "share": pa.float64()}
NUMBERS = ("bleu", "bleu_full", "delta", "delta_low", "delta_high", "p_value")
SCORES = dict.fromkeys(NUMBERS, pa.float64())
SCORES |= {"sentences": pa.int64(), "signature": pa.string()}


def removals(architecture: Architecture, *, alone: bool) -> list[tuple[Row, Removal]]:
    """The heads to remove, with their row: what (without | alone), type, layer, head (from 1)."""
    heads = heads_of(architecture, scope="all")
    removed = [("without", head, frozenset([head])) for head in heads]
    for head in heads if alone else []:
        layer = frozenset(other for other in heads if other[:2] == head[:2])
        removed.append(("alone", head, layer - {head}))
    return [({"what": what} | dict(zip(HEAD, head)), removal) for what, head, removal in removed]


def ranking(importance: pd.DataFrame, kind: str) -> list[Head]:
    """Heads of a type, or of "all", from the least to the most important; ties by type, layer and
    number.

    By importance divided by its norm in the layer, as in the paper.
    """
    rows = importance if kind == "all" else importance[importance["type"] == kind]
    places = rows.assign(place=rows["type"].map(KINDS.index))
    ordered = places.sort_values(["importance_normalised", "place", "layer", "head"])
    return [(row.type, int(row.layer), int(row.head)) for row in ordered.itertuples()]


def steps(heads: int) -> list[int]:
    """The numbers of heads removed, from none to all, without duplicates; halves are rounded up."""
    return sorted({(2 * n * heads + STEPS) // (2 * STEPS) for n in range(STEPS + 1)})


def removals_by_importance(importance: pd.DataFrame, *, by_type: bool) -> list[tuple[Row, Removal]]:
    """The heads removed at every step, with their row of the table: pruned (all or a type),
    removed, heads, share."""
    rows = []
    for kind in ("all", *KINDS) if by_type else ("all",):
        order = ranking(importance, kind)
        for number in steps(len(order)):
            share = number / len(order) if order else 0.0
            row = {"pruned": kind, "removed": number, "heads": len(order), "share": share}
            rows.append((row, frozenset(order[:number])))
    return rows


def ablate(
    files: stage.Files,
    architecture: Architecture,
    outputs: Callable[[list[Removal]], Iterable[Any]],
    scores: Callable[[dict[Removal, Any]], dict[Removal, Row]],
    *,
    fingerprint: str,
    columns: dict[str, pa.DataType],
    alone: bool = False,
    by_type: bool = False,
) -> None:
    """Compute outputs under each removal and with all heads, score them, and write one row per
    removal.

    Args:
        files: `importance` or None; `output`; `state`, a folder for finished passes, from which a
        run resumes.
        outputs: computes those of one pass; see `resumed`.
        scores: from the outputs under each removal and NOTHING, the same `columns` for all.
    """
    if files.importance:
        importance = read_table(files.importance).to_pandas()
        wanted, named = removals_by_importance(importance, by_type=by_type), SYSTEMATIC
    else:
        wanted, named = removals(architecture, alone=alone), SINGLE
    sets = [removal for _, removal in wanted]
    under = resumed(outputs, sets, state=files.state, fingerprint=fingerprint)
    scored = scores(under)
    rows = [row | scored[removal] for row, removal in wanted]
    run_state.check(files.state)
    write_table(files.output, pa.Table.from_pylist(rows, schema=pa.schema(named | columns)))
    metric, said = next(iter(columns)), "%d removals, %s of the whole model %.2f"
    stage.log.info(said, len(rows), metric, scored[NOTHING][metric])


def resumed(
    outputs: Callable[[list[Removal]], Iterable[Any]],
    removals: Iterable[Removal],
    *,
    state: Path,
    fingerprint: str,
) -> dict[Removal, Any]:
    """The outputs under each removal, and with all heads; `outputs` computes those of one pass, as
    plain numbers in lists.

    Finished passes are kept in the folder `state`; those with another `fingerprint`, of everything
    that affects the outputs, are discarded.
    """
    wanted = dict.fromkeys([NOTHING, *removals])
    run_state.claim(state)
    saved = run_state.read_state(state, fingerprint=fingerprint, checkpoints=())
    found = {
        frozenset(map(tuple, heads)): output
        for heads, output in json.loads(saved["outputs"] if saved else "[]")
    }
    if found:
        stage.log.info("resuming after %d removals", len(found))
    for group in stage.progress(passes(set(wanted) - set(found)), what="ablation", unit="pass"):
        found |= zip(group, outputs(group), strict=True)
        text = json.dumps([[sorted(removal), output] for removal, output in found.items()])
        with stage.disk_errors(state):
            run_state.write_state(state, {"fingerprint": fingerprint, "outputs": text})
        stage.log.info("%d of %d removals finished", len(set(wanted) & set(found)), len(wanted))
    return {removal: found[removal] for removal in wanted}


def passes(removals: Iterable[Removal]) -> list[list[Removal]]:
    """Group removals by pass: the unmasked model separately, and removals with and without encoder
    heads separately."""
    kinds: dict[str, list[Removal]] = {"nothing": [], "decoder": [], "encoder": []}
    for removal in sorted(removals, key=sorted):
        in_encoder = any(kind == "encoder" for kind, _, _ in removal)
        kinds["encoder" if in_encoder else "decoder" if removal else "nothing"].append(removal)
    return [
        same[start : start + REMOVALS]
        for same in kinds.values()
        for start in range(0, len(same), REMOVALS)
    ]


def fingerprint(*paths: Path, settings: dict[str, Any], code: Iterable[str] = ()) -> str:
    """Hash of files, settings, and the code of `corpus`, `model`, `pruning` and other packages."""
    parts = [stage.file_hash(path) for path in paths] + [json.dumps(settings, sort_keys=True)]
    parts.append(stage.code_hash("corpus", "model", "pruning", *code))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def mask(model: Network, removals: list[Removal], *, sentences: int = 1) -> None:
    """Mask heads for a tiled batch: all B `sentences` under the first of R removals, then all under
    the next; R · B rows."""
    for attention in model.attentions():
        names = [(attention.kind, attention.layer + 1, head + 1) for head in attention.heads]
        open_ = [[name not in removal for name in names] for removal in removals]
        values = torch.tensor(open_, dtype=torch.float32)
        attention.gate = None
        if values.numel() and not values.all():
            rows = values.repeat_interleave(sentences, dim=0)
            attention.gate = Mask(rows.to(attention.output.device))


def translate_without(
    model: Transformer, sources: list[list[int]], removals: list[Removal], *, decoding: Decoding
) -> list[list[list[int]]]:
    """For each removal, the ids of each sentence's translation, without EOS, from one pass."""
    mask(model, removals, sentences=len(sources))
    try:
        outputs = translate(model, sources, copies=len(removals), **decoding.model_dump())
    finally:
        mask(model, [NOTHING])
    return [outputs[start : start + len(sources)] for start in range(0, len(outputs), len(sources))]


def translate_set(
    model: Transformer, store: TokenStore, removals: list[Removal], *, decoding: Decoding
) -> list[list[list[int]]]:
    """Translate a set under each removal of a pass.

    The unmasked model translates the same batches as the stage `translate`, so its translations are
    identical.
    """

    def under_each(batch: list[list[int]]) -> list[tuple[list[int], ...]]:
        """The translations of each sentence, one per removal."""
        return list(zip(*translate_without(model, batch, removals, decoding=decoding), strict=True))

    sources = [store.source_ids(i).tolist() for i in range(len(store))]
    outputs = in_batches(under_each, sources, tokens=max(1, TOKENS // len(removals)))
    return list(map(list, zip(*outputs, strict=True)))


class Settings(Decoded):
    alone: bool = False  # also with each head alone in its layer
    by_type: bool = False  # by importance: also the heads of each type separately


FILES = ("model", "tokens", "bpe", "references", "output", "state")


@stage.command(*FILES, optional=("importance",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    # Before it may wait for a GPU that an earlier process holds, which then stops.
    run_state.claim(files.state)
    model = load_on(files.model, settings.device)
    store, pieces = load_tokens(files.tokens), load_bpe(files.bpe)
    [gold] = read_columns(files.references, "target")

    def scores(under: dict[Removal, list[list[int]]]) -> dict[Removal, Row]:
        texts = {}
        for removal, outputs in under.items():
            lines = [pieces.decode(ids).replace("\n", " ") for ids in outputs]
            texts[removal] = undo(lines, language=settings.language, mode=settings.preprocess)
        how = {"language": settings.language, "lowercase": settings.preprocess == "paper"}
        full, compared, signature = compare(texts[NOTHING], list(texts.values()), gold, **how)
        common = {"bleu_full": full, "sentences": len(gold), "signature": signature}
        rows = {}
        for removal, score in zip(texts, compared, strict=True):
            delta = {"delta": score.bleu - full, "delta_low": score.low, "delta_high": score.high}
            rows[removal] = {"bleu": score.bleu, "p_value": score.p_value} | delta | common
        return rows

    computed = {"device": model.device.type, "torch": torch.__version__}
    read = (files.model, files.model.with_suffix(".json"), files.tokens)
    ablate(
        files,
        model.architecture,
        lambda group: translate_set(model, store, group, decoding=settings.decoding),
        scores,
        fingerprint=fingerprint(*read, settings=settings.decoding.model_dump() | computed),
        columns=SCORES,
        alone=settings.alone,
        by_type=settings.by_type,
    )
