"""Stage: sacreBLEU and chrF of a translation, with bootstrap intervals, and its difference from the baseline's.

There are two kinds of BLEU. `bleu` is that of detokenised text against the raw references, with sacreBLEU's own tokeniser:
the one to compare between papers. It ignores case where the model knows lower case alone (`vocabulary.preprocess: paper`),
as chrF then does. `bleu_tokenised` is computed as the paper's code computes it on the development set: of lower-case Moses
tokens, as they are, on both sides; a language whose words are not written apart has none. Each has its signature, which
also says how `bleu_tokenised` got its tokens. Where Moses cannot put tokens of the references back together (apostrophes of
Ukrainian, say), no translation out of such tokens can reach a `bleu` of 100: a warning says what it can reach.

The p-value (`significance`) is the chance of a difference at least as large, in either direction, if the two systems were the
same; `difference` is that of `bleu` from the baseline's, with the 95% interval of the same paired bootstrap.
"""

import os
from importlib.metadata import version
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from specialized_heads import stage
from specialized_heads.corpus.preprocess import Mode, apply, undo
from specialized_heads.evaluation.bleu import bleu, tokenizer
from specialized_heads.evaluation.significance import SAMPLES, SEED, compare
from specialized_heads.stage import Section
from specialized_heads.tables import read_table

CLOSE = 99.0  # BLEU of the references themselves, below which a warning is due


class Settings(Section):
    preprocess: Mode
    language: str  # of the translation


def read_lines(path: Path, *, references: list[str]) -> list[str]:
    """The lines of a translation; another number of lines than there are references is a `UserError`."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise stage.UserError(f"{path}: damaged ({error}); delete it and run again") from None
    if len(lines) != len(references):
        raise stage.UserError(
            f"{path}: {len(lines)} lines for {len(references)} sentences of the test set; delete it and run again"
        )
    return lines


def of_moses_tokens(tokens: list[str], reference_tokens: list[str], language: str) -> dict[str, float | str | None]:
    """BLEU of a translation in lower-case Moses tokens, with its interval and signature; None where Moses finds no words."""
    names = ("bleu_tokenised", "bleu_tokenised_low", "bleu_tokenised_high", "signature_tokenised")
    if tokenizer(language) != "13a":
        return dict.fromkeys(names)
    metric = BLEU(lowercase=True, tokenize="none", force=True)  # force: tokens are meant to be tokens
    score = metric.corpus_score(tokens, [reference_tokens], n_bootstrap=SAMPLES)
    moses = f"moses.{language}-sacremoses-{version('sacremoses')}"
    values = (score.score, score._mean - score._ci, score._mean + score._ci, f"{metric.get_signature()}|tokens:{moses}")
    return dict(zip(names, values, strict=True))


def warn_of_bound(reference_tokens: list[str], references: list[str], language: str) -> None:
    """Say how high `bleu` can be where tokens, put back together, are not the references."""
    joined = undo(reference_tokens, language=language, mode="paper")
    reached = bleu(language, lowercase=True).corpus_score(joined, [references]).score
    if reached < CLOSE:
        stage.log.warning(
            "out of Moses tokens of %r even the references have a BLEU of %.1f, which no model can pass; compare models by "
            "bleu_tokenised, or set vocabulary.preprocess: none",
            language,
            reached,
        )


def main() -> None:
    files = stage.arguments(__doc__, files=("translation", "tokenised", "references", "output"), optional=("baseline",))
    settings = Settings.model_validate(files.settings)
    os.environ["SACREBLEU_SEED"] = SEED
    references = read_table(files.references, columns=["target"]).column("target").to_pylist()
    translation = read_lines(files.translation, references=references)
    lowercase = settings.preprocess == "paper"
    metric, chrf = bleu(settings.language, lowercase=lowercase), CHRF(lowercase=lowercase)
    reference_tokens = apply(references, language=settings.language, mode="paper")
    if settings.preprocess == "paper":
        warn_of_bound(reference_tokens, references, settings.language)
    score = metric.corpus_score(translation, [references], n_bootstrap=SAMPLES)
    result = {
        "bleu": score.score,
        "bleu_low": score._mean - score._ci,
        "bleu_high": score._mean + score._ci,
        "chrf": chrf.corpus_score(translation, [references]).score,
        **dict.fromkeys(("p_value", "difference", "difference_low", "difference_high")),
        "signature": str(metric.get_signature()),
        "signature_chrf": str(chrf.get_signature()),
        **of_moses_tokens(read_lines(files.tokenised, references=references), reference_tokens, settings.language),
        "sentences": len(references),
    }
    if files.baseline:
        baseline = read_lines(files.baseline, references=references)
        whole, [found], _ = compare(
            baseline, [translation], references, language=settings.language, lowercase=lowercase
        )
        result |= {"p_value": found.p_value, "difference": found.bleu - whole}
        result |= {"difference_low": found.low, "difference_high": found.high}
    stage.write_json(files.output, result)
    stage.log.info("BLEU %.2f; chrF %.2f", result["bleu"], result["chrf"])


if __name__ == "__main__":
    stage.run(main)
