"""Controls of pruning: each pruned model beside its soft-gated self and the models from scratch (section 6, footnote 8).

soft: the gates not yet made 0 or 1. scratch: the same heads per layer, from random initialisation. count: as many heads
of each type, spread evenly over the layers, from random initialisation. regularised: the pruning objective from random
initialisation, whose gates may leave another number of heads.
"""

import pandas as pd

from specialized_heads.report import sweep
from specialized_heads.report.inputs import SCORE_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_table
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
    found = []
    for title, scores in tables.items():
        own = scores[scores["kind"].isin(KINDS)]
        order = own.assign(place=own["kind"].map(KINDS.index))
        order.loc[order["kind"] == "baseline", "scope"] = ""
        order = sweep.in_order(order, {"scope": True, **sweep.WEAKEST_FIRST, "place": True, "seed": True})
        for _, same in order.groupby(["scope", "lam", "asked", "place"], dropna=False, sort=False):
            found.append((title, same))
    return found


def numbers(models: list[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """One row per model: corpus, scope, lam or asked (number of heads), kind, seeds (how many), heads per type and BLEU
    (means over seeds), bleu_sd (missing with one seed), updates, p_value (`sweep.p_of_seeds`)."""
    rows = [
        {"corpus": title, "seeds": len(same), "bleu_sd": same["bleu"].std(), "bleu": same["bleu"].mean()}
        | {key: same[key].iloc[0] for key in ("scope", "lam", "asked", "kind", "updates")}
        | {f"{kind}_heads": same[f"{kind}_total"].mean() for kind in ("encoder", "decoder", "cross")}
        | {"p_value": sweep.p_of_seeds(same["p_value"], same["difference"])}
        for title, same in models
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def shown(models: list[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """The table as text; the number of seeds only where there are several."""
    rows = []
    for title, same in models:
        first = same.iloc[0]
        whole = first["kind"] == "baseline"
        rows.append(
            {
                "corpus": title,
                "scope": first["scope"],
                "target": "" if whole else sweep.target(first["lam"], first["asked"]),
                "model": first["kind"],
                "enc/dec/cross": sweep.heads_text(same),
                "updates": f"{first['updates']:,}",
                "BLEU": sweep.bleu_text(same["bleu"], first["bleu_low"], first["bleu_high"]),
                "n": str(len(same)),
                "p": sweep.p_text(sweep.p_of_seeds(same["p_value"], same["difference"])),
            }
        )
    columns = ["corpus", "scope", "target", "model", "enc/dec/cross", "updates", "BLEU", "n", "p"]
    table = pd.DataFrame(rows, columns=columns)
    return table.drop(columns="n") if (table["n"] == "1").all() else table


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores"])
    titles = Titles.model_validate(args.settings).titles
    models = groups(read_all(args.scores, titles, columns=[*SCORE_COLUMNS, "updates"]))
    save_table(args.output, numbers(models), shown(models), caption=CAPTION + ".")


if __name__ == "__main__":
    run(main)
