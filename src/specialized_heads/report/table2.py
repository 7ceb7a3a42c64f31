"""Table 2: heads left per attention type, BLEU after pruning, and BLEU of the same configuration trained from scratch.

One row per λ and seed (section 6.3.1): scope `all`, and scope `encoder` too where its configurations were trained from
scratch. The paper's rows follow ours.
"""

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
SCORES = ["bleu", "bleu_low", "bleu_high", "p_value", "bleu_tokenised"]
KEYS = ["scope", "lam", "seed"]
COLUMNS = ["corpus", "kind", *KEYS, "encoder_total", "decoder_total", "cross_total", "sentences"]
COLUMNS += [*SCORES, *(f"scratch_{name}" for name in SCORES)]


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Models of every corpus, each with its twin from scratch, then the paper's.

    Returns:
        one row per baseline and per pruned model: corpus, kind (baseline, pruned), scope, lam, seed, heads per type,
        sentences (of the test set), its scores, and under `scratch_` those of its twin (missing where there is none).
    """
    frames = []
    for title, scores in tables.items():
        twins = scores.loc[scores["kind"] == "scratch", [*KEYS, *SCORES]].rename(
            columns={n: f"scratch_{n}" for n in SCORES}
        )
        scopes = {"all"} | set(twins["scope"])
        pruned = scores[(scores["kind"] == "pruned") & scores["scope"].isin(scopes)]
        pruned = pruned.sort_values(KEYS).merge(twins, on=KEYS, how="left")
        baselines = scores[scores["kind"] == "baseline"].sort_values("seed")
        frames += [frame.assign(corpus=title).reindex(columns=COLUMNS) for frame in (baselines, pruned) if len(frame)]
    for corpus, bleu in paper.BASELINE_BLEU.items():
        frames.append(pd.DataFrame(_reported(corpus, bleu)).reindex(columns=COLUMNS))
    rows = pd.concat([frame.astype(object) for frame in frames], ignore_index=True)
    whole = dict.fromkeys(["seed", "encoder_total", "decoder_total", "cross_total", "sentences"], "Int64")
    return rows.astype(whole | dict.fromkeys(["lam", *COLUMNS[-2 * len(SCORES) :]], float))


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text; the columns for seeds and scopes only where there are several."""
    table = pd.DataFrame([_row(row) for row in rows.to_dict("records")])
    if rows["seed"].nunique() < 2:
        table = table.drop(columns="seed")
    if rows["scope"].replace("", pd.NA).nunique() < 2:
        table = table.drop(columns="scope")
    return table


def caption(rows: pd.DataFrame) -> str:
    """What stands above the table."""
    ours = rows[rows["seed"].notna()]
    return CAPTION + (f"; {sweep.NO_PRUNED}." if (ours["kind"] == "baseline").all() else ".")


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


def _row(row: dict) -> dict[str, str]:
    digits = 2 if pd.isna(row["seed"]) and row["kind"] == "pruned" else 1
    return {
        "corpus": row["corpus"],
        "n": "" if pd.isna(row["sentences"]) else f"{row['sentences']:,}",
        "model": "baseline" if row["kind"] == "baseline" else "pruned" if pd.isna(row["lam"]) else f"λ {row['lam']:g}",
        "scope": row["scope"],
        "seed": "" if pd.isna(row["seed"]) else str(row["seed"]),
        "enc/dec/cross": f"{row['encoder_total']}/{row['decoder_total']}/{row['cross_total']}",
        "BLEU": _bleu(row, "", digits),
        "tok.": "" if pd.isna(row["bleu_tokenised"]) else f"{row['bleu_tokenised']:.1f}",
        "p": _p_value(row["p_value"]),
        "BLEU from scratch": _bleu(row, "scratch_", digits),
        "tok. (scratch)": "" if pd.isna(row["scratch_bleu_tokenised"]) else f"{row['scratch_bleu_tokenised']:.1f}",
        "p (scratch)": _p_value(row["scratch_p_value"]),
    }


def _bleu(row: dict, prefix: str, digits: int) -> str:
    value, low, high = (row[f"{prefix}{name}"] for name in SCORES[:3])
    if pd.isna(value):
        return ""
    return f"{value:.{digits}f}" + ("" if pd.isna(low) else f" [{low:.1f}, {high:.1f}]")


def _p_value(value: float) -> str:
    if pd.isna(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores"])
    titles = Titles.model_validate(args.settings).titles
    rows = numbers(read_all(args.scores, titles, columns=SCORE_COLUMNS))
    save_table(args.output, rows, shown(rows), caption=caption(rows))


if __name__ == "__main__":
    run(main)
