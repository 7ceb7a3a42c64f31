"""Controls of pruning: each pruned model beside the models trained from scratch (section 6, footnote 8).

scratch: the same heads per layer, from random initialisation. count: as many heads of each type, spread evenly over the layers,
from random initialisation. regularised: the pruning objective from random initialisation, whose gates may leave another number
of heads. continued, continued_count, continued_regularised: these three, trained on with the schedule of pruning.
"""

import pandas as pd

from specialized_heads.experiment.names import CONTROLS
from specialized_heads.report.claims.evidence import TOTALS
from specialized_heads.report.data import Tables
from specialized_heads.report.voita import sweep

KINDS = ["baseline", "pruned", *CONTROLS]
CAPTION = (
    "Pruned models and their controls: heads left in encoder self-attention, decoder self-attention and cross-attention; "
    "updates of training, or of fine-tuning alone if the baseline was pruned; test BLEU with 95% bootstrap interval, or "
    "mean ± standard deviation over seeds; p: against the baseline of the same seed (paired bootstrap), the largest over "
    "seeds, or 1 if some seeds gain and others lose."
)
COLUMNS = ["corpus", "scope", "lam", "target_heads", "kind", "seeds", *TOTALS, "updates", "bleu", "bleu_sd", "p_value"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per model: baselines, then target by target in the order of `KINDS`; heads and BLEU are means over seeds."""
    models = tables.pruned()
    corpora = list(models["corpus"].unique())
    models = models[models["kind"].isin(KINDS)]
    places = {"corpus_place": models["corpus"].map(corpora.index), "place": models["kind"].map(KINDS.index)}
    models = models.assign(**places, scope=models["scope"].mask(models["kind"] == "baseline", ""))
    order = {"corpus_place": True, "scope": True, **sweep.WEAKEST_FIRST, "place": True, "seed": True}
    keys, same = ["corpus", "scope", "lam", "target_heads", "kind"], {"p_values": "difference", "first": ["updates"]}
    return sweep.over_seeds(sweep.in_order(models, order), ["bleu", *TOTALS], keys, sort=False, **same)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text; the number of seeds only where there are several."""
    lines = [
        {
            "corpus": row.corpus,
            "scope": row.scope,
            "target": "" if row.kind == "baseline" else sweep.target(row.lam, row.target_heads),
            "model": row.kind,
            "enc/dec/cross": sweep.heads_text(row._asdict()),
            "updates": f"{row.updates:,}",
            "BLEU": sweep.value_text(row.bleu, sd=row.bleu_sd, low=row.bleu_low, high=row.bleu_high),
            "n": str(row.seeds),
            "p": sweep.p_text(row.p_value),
        }
        for row in rows.itertuples()
    ]
    return sweep.without_constant(pd.DataFrame(lines))
