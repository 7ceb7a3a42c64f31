"""Table: relevance of the baseline's encoder heads by each configured rule: what it adds up to, and what it agrees with.

The measures are those of the claims about relevance (section 4), whose verdicts rest on the first rule.
"""

from contextlib import suppress

import numpy as np
import pandas as pd

from specialized_heads.report.beyond.functions import between
from specialized_heads.report.claims.evidence import NotTestable
from specialized_heads.report.claims.inference import area, area_interval, associated, correlation_of, ranked
from specialized_heads.report.claims.of_heads import top_share
from specialized_heads.report.data import Tables, spearman, with_ends
from specialized_heads.report.style import minus
from specialized_heads.report.voita.sweep import interval_text

NAMES = {"z_plus": "z⁺", "alpha_beta": "αβ", "epsilon": "ε"}
COLUMNS = ["corpus", "seed", "rule", "layer", "heads", "sum", "top_head", "top_quarter", *with_ends("confidence")]
COLUMNS += ["order", "labelled", "mean_rank", *with_ends("auc")]
CAPTION = (
    "Relevance of the baseline's encoder heads by rule, as shares of their layer; lowest to highest over layers. halves agree: "
    "share of 100 random splits of the development set whose halves have the same most relevant head. ρ: Spearman's, by layer "
    "and within all layers together. mean rank of the heads with a function in their layers, 1 for the most relevant. AUC: "
    "probability that a head with a function is more relevant than one of its layer without (Newcombe's interval). top quarter: "
    "its share of the layer's relevance, signs ignored. Intervals: 95%."
)


def numbers(tables: Tables) -> pd.DataFrame:
    """For each baseline and rule, a row per encoder layer and one, without a layer, of all together.

    sum: of the relevances, of which 1 is left if their signs never differ; top_head: how often halves of the development set
    agree; confidence, order: rank correlation with confidence and with the first rule.
    """
    encoder_heads = tables.heads[(tables.heads["kind"] == "baseline") & (tables.heads["type"] == "encoder")]
    rules = [name for name in NAMES if f"relevance_{name}" in tables.heads]
    rows = []
    for (corpus, seed), encoder in encoder_heads.groupby(["corpus", "seed"], sort=False):
        measured = [name for name in rules if encoder[f"relevance_{name}"].notna().any()]
        if not measured:
            continue
        # The column `relevance` is that of the first rule.
        measured.sort(key=lambda name: not np.allclose(encoder[f"relevance_{name}"], encoder["relevance"]))
        first, labelled = f"relevance_{measured[0]}", encoder["functions"].map(len) > 0
        for name in measured:
            rule, same_rule = f"relevance_{name}", {"corpus": corpus, "seed": seed, "rule": name}
            for layer, same in encoder.groupby("layer"):
                row = {"layer": layer, "heads": len(same), "sum": same[rule].sum()}
                row |= {"top_head": same[f"halves_{name}"].iloc[0], "top_quarter": top_share(same[rule])}
                row["confidence"] = spearman(same[rule], same["confidence"])
                rows.append(same_rule | row | {"order": spearman(same[rule], same[first])})
            rows.append(same_rule | _together(encoder, rule, first, labelled))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"layer": "Int64", "labelled": "Int64"})


def _together(encoder: pd.DataFrame, rule: str, first: str, labelled: pd.Series) -> dict[str, float]:
    """The measures over all layers, as far as the heads have what they need."""
    layers = encoder[["layer"]]
    ranks = encoder.groupby("layer")[rule].rank(ascending=False)
    row = {"heads": len(encoder), "labelled": labelled.sum(), "mean_rank": ranks[labelled].mean()}
    with suppress(NotTestable):
        row["order"] = _correlation(encoder, rule, first)[0]
        row |= dict(zip(with_ends("confidence"), _correlation(encoder, rule, "confidence"), strict=True))
    with suppress(NotTestable):
        ends = area_interval(encoder[rule], labelled, layers)
        row |= dict(zip(with_ends("auc"), (area(encoder[rule], labelled, layers), *ends), strict=True))
    return row


def _correlation(encoder: pd.DataFrame, one: str, other: str) -> tuple[float, float, float]:
    """Spearman's correlation of two columns within the layers of a baseline, with its interval."""
    values, ends = associated(
        encoder, [ranked(encoder[name], encoder[["layer"]]) for name in (one, other)], correlation_of
    )
    return values.iloc[0], *ends


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (corpus, seed, rule), same in rows.groupby(["corpus", "seed", "rule"], sort=False):
        layers, whole = same[same["layer"].notna()], same[same["layer"].isna()].squeeze()
        line = {"corpus": corpus, "seed": str(seed), "rule": NAMES[rule]}
        line["sum over a layer"] = minus(between(layers["sum"], "{:.2f}"))
        line["halves agree on the top head"] = between(layers["top_head"], "{:.2f}")
        line["ρ with confidence, by layer"] = minus(" ".join(f"{value:.2f}" for value in layers["confidence"]))
        line["ρ with confidence"] = interval_text(whole, "confidence", digits=2) or "–"
        rank = f"{whole['mean_rank']:.1f} of {layers['heads'].max()}" if whole["labelled"] else "–"
        line["mean rank of heads with a function"] = rank
        line["AUC, function against none"] = interval_text(whole, "auc", digits=2) or "–"
        line["share of the top quarter"] = between(layers["top_quarter"], "{:.2f}")
        line[f"ρ with {NAMES[rows['rule'].iloc[0]]}"] = minus(f"{whole['order']:.2f}")
        lines.append(line)
    return pd.DataFrame(lines)
