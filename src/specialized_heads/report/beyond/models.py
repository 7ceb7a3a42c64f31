"""Table of models: one row per model and seed of the experiment, with its heads, size, training and scores.

Parameters are given with and without the three embedding matrices (source, target, softmax), which pruning of heads leaves as
they are. Notes below the table give the signatures of the scores, each once, and how each corpus was translated.
"""

import pandas as pd

from specialized_heads.evaluation.score import LEAST_ROUND_TRIP
from specialized_heads.pruning.prune import MIN_DECIDED
from specialized_heads.report.claims.evidence import TOTALS
from specialized_heads.report.data import Tables, with_ends
from specialized_heads.report.voita import sweep

CAPTION = (
    "All models. Target: λ per head, number of heads, or the updates of the baseline's training after which the checkpoint was "
    "kept; heads left in encoder self-attention, decoder self-attention and cross-attention; gates that end closed or fully open "
    f"with probability above 0.9 (with less than {MIN_DECIDED:.0%}, the choice of heads is a rounding; by order: too many or too "
    "few gates were open when a number of heads was chosen, so that the order of log α alone chose them); BLEU with 95% "
    "bootstrap interval, and chrF, of the test set; loss on the development set in nats per target token, if training has a log; "
    "updates of training, or of fine-tuning if the baseline was pruned; parameters with and without the embeddings of source, "
    "target and softmax."
)
KEYS = ["kind", "scope", "criterion", "lam", "target_heads", "update", "seed"]
SIGNATURES = {
    "BLEU": "signature",
    "BLEU of Moses tokens (tok. in table 2)": "signature_tokenised",
    "chrF": "signature_chrf",
}
SCORES = ["updates", *with_ends("bleu"), "chrf", *SIGNATURES.values(), "sentences"]
DECODING = ["beam", "max_length_ratio"]
COLUMNS = ["corpus", *KEYS, *TOTALS, "gates_decided", "parameters", "parameters_without_embeddings"]
COLUMNS += ["dev_loss", *SCORES]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per model; dev_loss: at the end of its training, in nats per target token, missing without a log."""
    return tables.translation().reset_index(drop=True)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text; the seed only where there are several."""
    lines = []
    for row in rows.to_dict("records"):
        target = "" if row["kind"] == "baseline" else sweep.target(row["lam"], row["target_heads"])
        line = {
            "corpus": row["corpus"],
            "model": ", ".join(filter(None, [row["kind"], row["criterion"]])),
            "scope": row["scope"],
            "target": f"update {row['update']:.0f}" if row["kind"] == "checkpoint" else target,
            "seed": str(row["seed"]),
            "enc/dec/cross": sweep.heads_text(row),
            "gates decided": _decided(row),
            "BLEU": sweep.interval_text(row, "bleu"),
            "chrF": f"{row['chrf']:.1f}",
            "dev loss": sweep.value_text(row["dev_loss"], digits=3),
            "updates": f"{row['updates']:,}",
            "parameters": f"{row['parameters']:,}",
            "without embeddings": f"{row['parameters_without_embeddings']:,}",
        }
        lines.append(line)
    return sweep.without_constant(pd.DataFrame(lines), "seed")


def _decided(row: dict) -> str:
    if row["lam"] == 0 or pd.isna(row["gates_decided"]):
        return ""
    return f"{row['gates_decided']:.0%}" + ", by order" * (row.get("gates_by_order") == 1)


def notes(rows: pd.DataFrame) -> list[str]:
    """The signatures of the scores, with their corpora where they differ; then how each corpus was translated."""
    lines = []
    for name, column in SIGNATURES.items():
        signed = rows.groupby(column, sort=False)["corpus"].unique()
        for signature, titles in signed.items():
            of = f" of {', '.join(titles)}" if len(signed) > 1 else ""
            lines.append(f"{name}{of}: {signature}")
    if "bleu_round_trip" in rows:
        for title, most in rows.groupby("corpus", sort=False)["bleu_round_trip"].first().dropna().items():
            low = "; BLEU is too low by about as much, so compare tok. in table 2" if most < LEAST_ROUND_TRIP else ""
            lines.append(f"References of {title}, made lower-case Moses tokens and text again: BLEU {most:.2f}{low}.")
    for (beam, longest), same in rows.groupby(DECODING, sort=False):
        sizes = same.groupby("corpus", sort=False)["sentences"].first()
        sets = ", ".join(f"{title} ({size:,} test sentences)" for title, size in sizes.items())
        lines.append(
            f"Translation of {sets}: beam search with {beam} hypotheses, ranked by log P / length; at most "
            f"{longest:g} times the source's subwords, plus 10."
        )
    return lines
