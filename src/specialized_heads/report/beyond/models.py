"""Table of models: one row per model and seed of the experiment, with its heads, size, training and scores.

Parameters are given with and without the three embedding matrices (source, target, softmax), which pruning of heads leaves as
they are. Notes below the table give the signatures of the scores, each once, and how each corpus was translated.
"""

from math import nan
from pathlib import Path

import pandas as pd

from specialized_heads.config.sections import Decoding
from specialized_heads.report.experiment import Corpus, all_models
from specialized_heads.report.inputs import Files, read_log
from specialized_heads.report.voita import sweep
from specialized_heads.stage import UserError, read_json

CAPTION = (
    "All models. Target: λ per head, number of heads, or the updates of the baseline's training after which the checkpoint was "
    "kept; heads left in encoder self-attention, decoder self-attention and cross-attention; BLEU with 95% bootstrap interval, "
    "and chrF, of the test set; loss on the development set in nats per target token, if training has a log; updates of "
    "training, or of fine-tuning if the baseline was pruned; parameters with and without the embeddings of source, target "
    "and softmax."
)
KEYS = ["kind", "scope", "criterion", "lam", "asked", "moment", "seed"]
COUNTS = ["encoder_total", "decoder_total", "cross_total", "parameters"]
SIGNATURES = {
    "BLEU": "signature",
    "BLEU of Moses tokens (tok. in table 2)": "signature_tokenised",
    "chrF": "signature_chrf",
}
SCORES = ["updates", "bleu", "bleu_low", "bleu_high", "chrf", *SIGNATURES.values(), "sentences"]
COLUMNS = ["corpus", *KEYS, *COUNTS, "parameters_without_embeddings", "dev_loss", *SCORES]
READS = {"scores": Files((*KEYS, *COUNTS, *SCORES)), "results": Files(Path, by="")}


class Translated(Corpus):
    logged: list[str]  # the models with a training log
    decoding: Decoding


def numbers(
    scores: dict[str, pd.DataFrame], results: Path, *, corpora: list[Translated], seeds: list[int]
) -> pd.DataFrame:
    """One row per model; dev_loss: at the end of its training, in nats per target token, missing without a log.

    Raises:
        UserError: a model has no scores.
    """
    logged = [corpus.model_copy(update={"models": corpus.logged}) for corpus in corpora]
    with_log = {folder for _, folder in all_models(logged, seeds, results)}
    models, embedded, dev_losses = [], [], []
    for model, folder in all_models(corpora, seeds, results):
        sizes = read_json(folder / "model.json")["architecture"]
        models.append(model)
        matrices = {"all": 0, "output": 1}.get(sizes.get("tied"), 2)  # of the target, besides the source's
        embedded.append(sizes["width"] * (sizes["source_vocabulary"] + matrices * sizes["target_vocabulary"]))
        records = read_log(folder / "log.jsonl") if folder in with_log else pd.DataFrame()
        dev_losses.append(float(records["dev_loss"].iloc[-1]) if "dev_loss" in records else nan)
    known = pd.concat([table.assign(corpus=title) for title, table in scores.items()], ignore_index=True)
    known = known.astype(dict.fromkeys(("lam", "asked", "moment"), float))
    # pandas matches NaN with NaN.
    rows = pd.DataFrame(models).merge(known, on=["corpus", *KEYS], how="left", validate="one_to_one")
    if rows["bleu"].isna().any():
        model = models[int(rows["bleu"].isna().argmax())]
        raise UserError(
            f"scores of {model.corpus}: {model} is missing; delete the corpus's scores.parquet and run again"
        )
    return rows.assign(parameters_without_embeddings=rows["parameters"] - embedded, dev_loss=dev_losses)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text; the seed only where there are several."""
    lines = []
    for row in rows.to_dict("records"):
        target = "" if row["kind"] == "baseline" else sweep.target(row["lam"], row["asked"])
        lines.append(
            {
                "corpus": row["corpus"],
                "model": ", ".join(filter(None, [row["kind"], row["criterion"]])),
                "scope": row["scope"],
                "target": f"update {row['moment']:.0f}" if row["kind"] == "checkpoint" else target,
                "seed": str(row["seed"]),
                "enc/dec/cross": "/".join(str(row[name]) for name in COUNTS[:3]),
                "BLEU": sweep.value_text(row["bleu"], low=row["bleu_low"], high=row["bleu_high"]),
                "chrF": f"{row['chrf']:.1f}",
                "dev loss": sweep.value_text(row["dev_loss"], digits=3),
                "updates": f"{row['updates']:,}",
                "parameters": f"{row['parameters']:,}",
                "without embeddings": f"{row['parameters_without_embeddings']:,}",
            }
        )
    return sweep.without_constant(pd.DataFrame(lines), "seed")


def notes(rows: pd.DataFrame, *, corpora: list[Translated]) -> list[str]:
    """The signatures of the scores, with their corpora where they differ; then how each corpus was translated."""
    lines = []
    for name, column in SIGNATURES.items():
        signed = rows.groupby(column, sort=False)["corpus"].unique()
        for signature, titles in signed.items():
            of = f" of {', '.join(titles)}" if len(signed) > 1 else ""
            lines.append(f"{name}{of}: {signature}")
    sizes = rows.groupby("corpus", sort=False)["sentences"].first()
    for how in dict.fromkeys(corpus.decoding for corpus in corpora):
        titles = [corpus.title for corpus in corpora if corpus.decoding == how]
        sets = [f"{title} ({sizes[title]:,} test sentences)" for title in titles]
        penalty = f"log P / length^{how.length_penalty:g}" if how.length_penalty else "log P, not normalised by length"
        lines.append(
            f"Translation of {', '.join(sets)}: beam search with {how.beam} hypotheses, ranked by {penalty}; at most "
            f"{how.max_length_ratio:g} times the source's subwords, plus 10."
        )
    return lines
