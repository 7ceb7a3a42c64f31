"""Controls of pruning: each pruned model beside its soft-gated version and the models trained from scratch (section 6,
footnote 8).

soft: before the gates are rounded to 0 or 1. scratch: the same heads per layer, from random initialisation. count: equally many
heads of each type, spread evenly over the layers, from random initialisation. regularised: the pruning objective from random
initialisation, whose gates may leave another number of heads.
"""

from functools import partial

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.inputs import SCORE_COLUMNS, Titles, read_table
from specialized_heads.report.output import save_table
from specialized_heads.report.voita import sweep
from specialized_heads.stage import arguments, run

KINDS = ["baseline", "pruned", "soft", "scratch", "count", "regularised"]
CAPTION = (
    "Pruned models and their controls: heads left in encoder self-attention, decoder self-attention and cross-attention; "
    "updates of training, or of fine-tuning where the baseline was pruned; test BLEU with 95% bootstrap interval, or "
    "mean ± standard deviation over seeds; p: against the baseline of the same seed (paired bootstrap), the largest over "
    "seeds, or 1 where some gain and others lose"
)
COLUMNS = [
    "corpus", "scope", "lam", "asked", "kind", "seeds", "encoder_heads", "decoder_heads", "cross_heads", "updates",
    "bleu", "bleu_sd", "p_value",
]  # fmt: skip


def groups(tables: dict[str, pd.DataFrame]) -> list[tuple[str, pd.DataFrame]]:
    """The seeds of each model, with the title of their corpus: baselines, then target by target in the order of `KINDS`."""
    models = []
    for title, scores in tables.items():
        rows = scores[scores["kind"].isin(KINDS)]
        rows = rows.assign(
            place=rows["kind"].map(KINDS.index), scope=rows["scope"].mask(rows["kind"] == "baseline", "")
        )
        rows = sweep.in_order(rows, {"scope": True, **sweep.WEAKEST_FIRST, "place": True, "seed": True})
        same = rows.groupby(["scope", "lam", "asked", "place"], dropna=False, sort=False)
        models += [(title, seeds) for _, seeds in same]
    return models


def numbers(models: list[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """One row per model: corpus, scope, lam or asked (number of heads), kind, seeds (how many), heads per type and BLEU
    (means over seeds), bleu_sd (missing for one seed), updates, p_value (`sweep.p_of_seeds`)."""
    rows = [
        {"corpus": title, "seeds": len(same), "bleu_sd": same["bleu"].std(), "bleu": same["bleu"].mean()}
        | {key: same[key].iloc[0] for key in ("scope", "lam", "asked", "kind", "updates")}
        | {f"{kind}_heads": same[f"{kind}_total"].mean() for kind in style.TYPES}
        | {"p_value": sweep.p_of_seeds(same["p_value"], same["difference"])}
        for title, same in models
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def shown(models: list[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """The table as text; the number of seeds only where there are several."""
    rows = []
    for title, same in models:
        first = same.iloc[0]
        target = "" if first["kind"] == "baseline" else sweep.target(first["lam"], first["asked"])
        model = [title, first["scope"], target, first["kind"], sweep.heads_text(same), f"{first['updates']:,}"]
        bleu = sweep.bleu_text(same["bleu"], first["bleu_low"], first["bleu_high"])
        p_value = sweep.p_text(sweep.p_of_seeds(same["p_value"], same["difference"]))
        rows.append([*model, bleu, str(len(same)), p_value])
    columns = ["corpus", "scope", "target", "model", "enc/dec/cross", "updates", "BLEU", "n", "p"]
    table = pd.DataFrame(rows, columns=columns)
    return table.drop(columns="n") if (table["n"] == "1").all() else table


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores"])
    reader = partial(read_table, columns=[*SCORE_COLUMNS, "updates"])
    models = groups(Titles.model_validate(args.settings).read(args.scores, reader))
    save_table(args.output, numbers(models), shown(models), caption=CAPTION + ".")


if __name__ == "__main__":
    run(main)
