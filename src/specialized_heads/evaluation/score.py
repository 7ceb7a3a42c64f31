"""Stage: sacreBLEU and chrF of a translation, with bootstrap intervals and the difference from the baseline.

There are two kinds of BLEU. `bleu` compares detokenised text with the raw references, with sacreBLEU's own tokeniser; use it to
compare papers. Like chrF, it ignores case if the model produces only lower case (`vocabulary.preprocess: paper`).
With `preprocess: paper`, `bleu_round_trip` is the `bleu` of the references themselves after they were made tokens and text
again: the most that `bleu` can reach, because tokens do not tell all spaces. Below 99, a warning says so, and `bleu_tokenised`,
which loses nothing, is the score to compare.

`bleu_tokenised` follows the paper's code: lower-case Moses tokens on both sides, not tokenised again; languages written without
spaces have none. The signature of each is stored, including the source of the tokens.

The p-value (`significance`) is the probability of a difference at least as large, in either direction, between two equal
systems. `difference` is the system's `bleu` minus the baseline's, with the 95% interval of the same paired bootstrap. The
columns `counterpart_*` are the same for a second model, where there is one. `difference_samples` are the differences on
each resample: since all models are resampled alike, the mean of several seeds has an interval of its own.
"""

import os
from importlib.metadata import version
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from specialized_heads import stage
from specialized_heads.corpus.preprocess import Mode, apply, undo
from specialized_heads.evaluation.significance import SAMPLES, SEED, bleu, compare, tokenizer
from specialized_heads.tables import read_columns

LEAST_ROUND_TRIP = 99  # BLEU


class Settings(stage.Section):
    preprocess: Mode
    language: str  # of the translation


def read_lines(path: Path, *, references: list[str]) -> list[str]:
    """Read a translation; a `UserError` unless it has one line per reference."""
    lines = path.read_bytes().decode("utf-8").split("\n")[:-1]
    if len(lines) != len(references):
        problem = f"{len(lines)} lines for {len(references)} sentences of the test set"
        raise stage.UserError(f"{path}: {problem}; delete it and run again")
    return lines


def of_moses_tokens(tokens: list[str], reference_tokens: list[str], language: str) -> dict[str, float | str | None]:
    """BLEU of lower-case Moses tokens, with interval and signature; None for languages without spaces."""
    names = ("bleu_tokenised", "bleu_tokenised_low", "bleu_tokenised_high", "signature_tokenised")
    if tokenizer(language) != "13a":
        return dict.fromkeys(names)
    metric = BLEU(lowercase=True, tokenize="none", force=True)  # force: no warning about tokenised text
    score = metric.corpus_score(tokens, [reference_tokens], n_bootstrap=SAMPLES)
    moses = f"moses.{language}-sacremoses-{version('sacremoses')}"
    values = (score.score, score._mean - score._ci, score._mean + score._ci, f"{metric.get_signature()}|tokens:{moses}")
    return dict(zip(names, values, strict=True))


@stage.command(
    "translation", "tokenised", "references", "output", optional=("baseline", "counterpart"), settings=Settings
)
def main(files: stage.Files, settings: Settings) -> None:
    os.environ["SACREBLEU_SEED"] = SEED
    [references] = read_columns(files.references, "target")
    translation = read_lines(files.translation, references=references)
    lowercase = settings.preprocess == "paper"
    metric, chrf = bleu(settings.language, lowercase=lowercase), CHRF(lowercase=lowercase)
    reference_tokens = apply(references, language=settings.language, mode="paper")
    score = metric.corpus_score(translation, [references], n_bootstrap=SAMPLES)
    result = {
        "bleu": score.score,
        "bleu_low": score._mean - score._ci,
        "bleu_high": score._mean + score._ci,
        "chrf": chrf.corpus_score(translation, [references]).score,
        "signature": str(metric.get_signature()),
        "signature_chrf": str(chrf.get_signature()),
        **of_moses_tokens(read_lines(files.tokenised, references=references), reference_tokens, settings.language),
        "sentences": len(references),
    }
    if lowercase:
        back = undo(reference_tokens, language=settings.language, mode="paper")
        result["bleu_round_trip"] = metric.corpus_score(back, [references]).score
        if result["bleu_round_trip"] < LEAST_ROUND_TRIP:
            stage.log.warning(
                "the references, made tokens and text again, reach %.1f BLEU, not 100: scores of text from tokens of %s are "
                "too low; compare bleu_tokenised, or set vocabulary.preprocess: none",
                result["bleu_round_trip"],
                settings.language,
            )
    for start, path in (("", files.baseline), ("counterpart_", files.counterpart)):
        values: tuple[float | list[float] | None, ...] = (None,) * 5
        if path:
            options = {"language": settings.language, "lowercase": lowercase}
            other, [system], _ = compare(read_lines(path, references=references), [translation], references, **options)
            drawn = system.differences.round(3).tolist()
            values = (system.bleu - other, system.low, system.high, system.p_value, drawn)
        names = ("difference", "difference_low", "difference_high", "p_value", "difference_samples")
        result |= {f"{start}{name}": value for name, value in zip(names, values, strict=True)}
    stage.write_json(files.output, result)
    stage.log.info("BLEU %.2f; chrF %.2f", result["bleu"], result["chrf"])
