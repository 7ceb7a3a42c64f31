"""Table 2: heads left per attention type, BLEU after pruning, and BLEU of the same configuration trained from scratch.

One row per target, a λ or a number of heads (section 6.3.1): scope `all`, and scope `encoder` too where its
configurations were trained from scratch. Seeds are one row of the table as it is read, and one each of its numbers. The
paper's rows follow ours.
"""

import math

import pandas as pd

from specialized_heads.report import paper, sweep
from specialized_heads.report.inputs import SCORE_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_table
from specialized_heads.stage import arguments, run

CAPTION = (
    "Heads left in encoder self-attention, decoder self-attention and cross-attention, and test BLEU with 95% "
    "bootstrap intervals, after pruning and trained from scratch; p: against the baseline of the same seed (paired "
    "bootstrap); tok.: BLEU of lower-case Moses tokens, nearer to the paper's"
)
SCORES = ["bleu", "bleu_low", "bleu_high", "p_value", "difference", "bleu_tokenised"]
KEYS = ["scope", "lam", "asked", "seed"]
COLUMNS = ["corpus", "kind", *KEYS, "encoder_total", "decoder_total", "cross_total", "sentences"]
COLUMNS += ["updates", *SCORES, "scratch_updates", *(f"scratch_{name}" for name in SCORES)]


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Models of every corpus, each with its twin from scratch, then the paper's.

    Returns:
        one row per baseline and per pruned model: corpus, kind (baseline, pruned), scope, lam or asked, seed, heads
        per type, sentences (of the test set), its updates and scores, and under `scratch_` those of its twin (missing where
        there is none).
    """
    frames = []
    for title, scores in tables.items():
        twins = scores.loc[scores["kind"] == "scratch", [*KEYS, "updates", *SCORES]].rename(
            columns={n: f"scratch_{n}" for n in ("updates", *SCORES)}
        )
        scopes = {"all"} | set(twins["scope"])
        pruned = scores[(scores["kind"] == "pruned") & scores["scope"].isin(scopes)]
        pruned = sweep.in_order(pruned, {"scope": True, **sweep.WEAKEST_FIRST, "seed": True})
        pruned = pruned.merge(twins, on=KEYS, how="left")
        baselines = scores[scores["kind"] == "baseline"].sort_values("seed")
        frames += [frame.assign(corpus=title).reindex(columns=COLUMNS) for frame in (baselines, pruned) if len(frame)]
    for corpus, bleu in paper.BASELINE_BLEU.items():
        frames.append(pd.DataFrame(_reported(corpus, bleu)).reindex(columns=COLUMNS))
    rows = pd.concat([frame.astype(object) for frame in frames], ignore_index=True)
    whole = ["seed", "encoder_total", "decoder_total", "cross_total", "sentences", "updates", "scratch_updates"]
    real = ["lam", "asked", *SCORES, *(f"scratch_{name}" for name in SCORES)]
    return rows.astype(dict.fromkeys(whole, "Int64") | dict.fromkeys(real, float))


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text, the seeds of a target in one row; columns for seeds and scopes only where there are several."""
    groups = rows.groupby(["corpus", "kind", "scope", "lam", "asked", rows["seed"].notna()], dropna=False, sort=False)
    # The paper's models have no target of their own: each is a row.
    models = [[same] if whose else [same.iloc[[n]] for n in range(len(same))] for (*_, whose), same in groups]
    table = pd.DataFrame([_row(same) for group in models for same in group])
    if (table["seeds"].replace("", "1") == "1").all():
        table = table.drop(columns="seeds")
    if rows["scope"].replace("", pd.NA).nunique() < 2:
        table = table.drop(columns="scope")
    return table


def caption(rows: pd.DataFrame) -> str:
    """What stands above the table."""
    ours = rows[rows["seed"].notna()]
    text = CAPTION
    if ours["seed"].nunique() > 1:
        text += "; with several seeds, BLEU is mean ± standard deviation, heads are means, and p is the largest, or 1 where "
        text += "some seeds gain and others lose"
    for corpus, same in ours.groupby("corpus", sort=False):
        updates, full = same["scratch_updates"].min(), same.loc[same["kind"] == "baseline", "updates"].min()
        if pd.notna(updates) and updates < full:
            text += f"; {corpus} from scratch: {updates:,} updates where the baseline has {full:,}, so no equal match"
    return text + (f"; {sweep.NO_PRUNED}." if (ours["kind"] == "baseline").all() else ".")


def _reported(corpus: str, bleu: float) -> list[dict]:
    whole = dict.fromkeys(("encoder_total", "decoder_total", "cross_total"), paper.HEADS_PER_TYPE)
    return [{"corpus": corpus, "kind": "baseline", "scope": "", "bleu": bleu, **whole}] + [
        {
            "corpus": corpus,
            "kind": "pruned",
            "scope": "all",
            "encoder_total": row.encoder,
            "decoder_total": row.decoder,
            "cross_total": row.cross,
            "bleu": row.pruned,
            "scratch_bleu": row.scratch,
        }
        for row in paper.TABLE2
        if row.corpus == corpus
    ]


def _row(same: pd.DataFrame) -> dict[str, str]:
    """One row of the table: the seeds of one model."""
    first = same.iloc[0]
    ours = pd.notna(first["seed"])
    model = first["kind"]  # what the paper calls its models
    if ours and model == "pruned":
        model = sweep.target(first["lam"], first["asked"])
    digits = 1 if ours or first["kind"] == "baseline" else 2

    def bleu(prefix: str) -> str:
        low, high = first[f"{prefix}bleu_low"], first[f"{prefix}bleu_high"]
        return sweep.bleu_text(same[f"{prefix}bleu"], low, high, digits=digits)

    return {
        "corpus": first["corpus"],
        "n": f"{first['sentences']:,}" if ours else "",
        "model": model,
        "scope": first["scope"],
        "seeds": str(len(same)) if ours else "",
        "enc/dec/cross": sweep.heads_text(same),
        "BLEU": bleu(""),
        "tok.": sweep.bleu_text(same["bleu_tokenised"], math.nan, math.nan),
        "p": sweep.p_text(sweep.p_of_seeds(same["p_value"], same["difference"])),
        "BLEU from scratch": bleu("scratch_"),
        "tok. (scratch)": sweep.bleu_text(same["scratch_bleu_tokenised"], math.nan, math.nan),
        "p (scratch)": sweep.p_text(sweep.p_of_seeds(same["scratch_p_value"], same["scratch_difference"])),
    }


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores"])
    titles = Titles.model_validate(args.settings).titles
    rows = numbers(read_all(args.scores, titles, columns=(*SCORE_COLUMNS, "updates")))
    save_table(args.output, rows, shown(rows), caption=caption(rows))


if __name__ == "__main__":
    run(main)
