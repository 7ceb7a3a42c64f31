"""Table 2: heads left per attention type, BLEU after pruning, and BLEU of the same configuration trained from scratch.

One row per target, a λ or a number of heads (section 6.3.1): for scope `all`, and also for scope `encoder` where its
configurations were trained from scratch. The seeds of a model share a row of the table, but have one row each in the CSV. The
paper's rows follow ours.
"""

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.claims.evidence import TOTALS
from specialized_heads.report.data import Tables, with_ends
from specialized_heads.report.voita import paper, sweep

CAPTION = (
    "Heads left in encoder self-attention, decoder self-attention and cross-attention, and test BLEU with 95% "
    "bootstrap intervals, after pruning and trained from scratch; p: against the baseline of the same seed (paired "
    "bootstrap); tok.: BLEU of lower-case Moses tokens, closer to the paper's"
)
SEVERAL = (
    "with several seeds, BLEU is mean ± standard deviation, heads are means, and p is the largest, or 1 if "
    "some seeds gain and others lose"
)
SCORES = [*with_ends("bleu"), "p_value", "difference", "bleu_tokenised"]
KEYS = ["scope", "lam", "target_heads", "seed"]
SHOWN = {"": ("BLEU", "tok.", "p"), "scratch_": ("BLEU from scratch", "tok. (scratch)", "p (scratch)")}
SCRATCH = {name: f"scratch_{name}" for name in ("updates", *SCORES)}
COLUMNS = ["corpus", "kind", *KEYS, *TOTALS, "sentences", "updates", *SCORES, *SCRATCH.values()]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per baseline and pruned model of each corpus, with its twin from scratch under `scratch_`, then the paper's."""
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        twins = scores.loc[scores["kind"] == "scratch", [*KEYS, *SCRATCH]].rename(columns=SCRATCH)
        scopes = {"all"} | set(twins["scope"])
        pruned = scores[(scores["kind"] == "pruned") & scores["scope"].isin(scopes)]
        pruned = sweep.in_order(pruned, {"scope": True, **sweep.WEAKEST_FIRST, "seed": True})
        baselines = scores[scores["kind"] == "baseline"].sort_values("seed")
        models = [baselines, pruned.merge(twins, on=KEYS, how="left")]
        frames += [frame.assign(corpus=title) for frame in models if len(frame)]
    frames += [_reported(corpus, bleu) for corpus, bleu in paper.BASELINE_BLEU.items()]
    rows = pd.concat([frame.reindex(columns=COLUMNS).astype(object) for frame in frames], ignore_index=True)
    whole = ["seed", *TOTALS, "sentences", "updates", "scratch_updates"]
    types = dict.fromkeys(("corpus", "kind", "scope"), object) | dict.fromkeys(whole, "Int64")
    return rows.astype(dict.fromkeys(COLUMNS, float) | types)


def _reported(corpus: str, bleu: float) -> pd.DataFrame:
    """The paper's models of one corpus."""
    rows = [["baseline", "", *[paper.HEADS_PER_TYPE] * 3, bleu, None]]
    rows += [["pruned", "all", *row[1:]] for row in paper.TABLE2 if row.corpus == corpus]
    return pd.DataFrame(rows, columns=["kind", "scope", *TOTALS, "bleu", "scratch_bleu"]).assign(corpus=corpus)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text, the seeds of a model in one row; columns for seeds and scopes only where there are several."""
    # The paper's models have no target to tell them apart: each is a row.
    reported = rows["seed"].isna()
    keys = ["corpus", "kind", "scope", "lam", "target_heads", reported.cumsum().where(reported, 0)]
    cells = pd.DataFrame([_row(same) for _, same in rows.groupby(keys, dropna=False, sort=False)])
    if cells["seeds"].isin(["", "1"]).all():
        cells = cells.drop(columns="seeds")
    return cells.drop(columns="scope") if rows["scope"].replace("", pd.NA).nunique() < 2 else cells


def _row(same: pd.DataFrame) -> dict[str, str]:
    """One row of the table: the seeds of one model."""
    first = same.iloc[0]
    ours = pd.notna(first["seed"])
    digits = 1 if ours or first["kind"] == "baseline" else 2  # as in the paper
    target = sweep.target(first["lam"], first["target_heads"]) if ours and first["kind"] == "pruned" else ""
    line = {
        "corpus": first["corpus"],
        "n": f"{first['sentences']:,}" if ours else "",
        "model": target or first["kind"],
        "scope": first["scope"],
        "seeds": str(len(same)) if ours else "",
        "enc/dec/cross": sweep.heads_text(same[TOTALS].mean()),
    }
    for prefix, names in SHOWN.items():
        bleu, tokens = same[f"{prefix}bleu"], same[f"{prefix}bleu_tokenised"]
        low, high = first[f"{prefix}bleu_low"], first[f"{prefix}bleu_high"]
        p_value = sweep.p_of_seeds(same[f"{prefix}p_value"], same[f"{prefix}difference"])
        text = sweep.value_text(bleu.mean(), sd=bleu.std(), low=low, high=high, digits=digits)
        texts = [text, sweep.value_text(tokens.mean(), sd=tokens.std()), sweep.p_text(p_value)]
        line |= dict(zip(names, texts, strict=True))
    return line


def caption(rows: pd.DataFrame) -> str:
    """The caption, which names the seeds, unequal training, and a table without pruned models."""
    ours = rows[rows["seed"].notna()]
    parts = [CAPTION]
    if ours["seed"].nunique() > 1:
        parts.append(SEVERAL)
    for corpus, same in ours.groupby("corpus", sort=False):
        updates, full = same["scratch_updates"].min(), same.loc[same["kind"] == "baseline", "updates"].min()
        if pd.notna(updates) and updates < full:
            unequal = f"{updates:,} updates against {full:,} of the baseline, so the comparison is not equal"
            parts.append(f"{corpus} from scratch: {unequal}")
    if (ours["kind"] == "baseline").all():
        parts.append(sweep.NO_PRUNED)
    return "; ".join(parts) + "."
