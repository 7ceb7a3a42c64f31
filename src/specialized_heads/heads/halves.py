"""Test whether labels hold on other sentences: label the heads on each half of the analysis set, and compare the labels."""

from typing import Any

import numpy as np

from specialized_heads.config.sections import Heads
from specialized_heads.heads import maps, positional, syntactic
from specialized_heads.heads.functions import RARE_WORDS, SYNTACTIC, functions_of
from specialized_heads.heads.measure import Counted
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.transformer import Transformer


def labels_on_halves(model: Transformer, counted: Counted, settings: Heads) -> list[dict[str, Any]]:
    """Labels that a head has on at least one half of the analysis set: its sentences with even or with odd numbers.

    Relations count only where both halves have `heads.least_arcs` arcs. Their fixed offsets are those of the whole set.

    Returns:
        one dictionary per head and label: `type`, `layer`, `head`; `label`, a function, or the relation and direction of a
        syntactic head; `offset`, the position of a positional or diagonal head; `scores` on the two halves, the share or
        margin that decides the label, None where nothing was counted; `holds`, whether the head has the label there.
    """
    rows = []
    for kind in KINDS:
        for number, (layer, head) in enumerate(maps.head_numbers(model, kind)):
            offsets, possible = counted.offsets[kind][:, number], counted.visible[kind][:, 0]
            scores, labels = [], []
            for half in (0, 1):
                margins, rarest = {}, np.nan
                if kind == "encoder":
                    margins = _margins(counted, half, number, settings)
                    rarest = counted.rare[half, 0, number] / (counted.rare_queries[half] or np.nan)
                place = positional.preferred(kind, offsets[half], possible[half])
                functions, relations = functions_of(kind, place, settings, margins=margins, rarest=rarest)
                scores.append(margins | {RARE_WORDS: rarest})
                names = [name for name in functions if name != SYNTACTIC] + relations
                labels.append([(name, None if name in scores[half] else place.offset) for name in names])
            for label, offset in dict.fromkeys(labels[0] + labels[1]):
                row = {"type": kind, "layer": layer, "head": head, "label": label, "offset": offset}
                decisive = [score.get(label, np.nan) for score in scores]
                if offset is not None:
                    pairs = zip(offsets, possible, strict=True)
                    decisive = [positional.share_at(kind, offset, *pair) for pair in pairs]
                row["scores"] = [None if np.isnan(score) else float(score) for score in decisive]
                rows.append(row | {"holds": [(label, offset) in names for names in labels]})
    return rows


def _margins(counted: Counted, half: int, number: int, settings: Heads) -> dict[str, float]:
    """An encoder head's accuracy above the fixed offsets on one half, for relations with enough arcs in both halves."""
    in_half = counted.sentences % 2 == half
    arcs = np.array([counted.arcs[counted.sentences % 2 == each].sum(0) for each in (0, 1)])  # (2, R, 2)
    above = counted.hits[in_half, number].sum(0) - counted.fixed[in_half].sum(0)  # (R, 2)
    enough = arcs.min(0) >= settings.least_arcs
    names = syntactic.score_names(settings.relations)[enough]
    return dict(zip(names.tolist(), (above[enough] / arcs[half][enough]).tolist(), strict=True))
