"""Stage: sacreBLEU and chrF of a translation, with bootstrap intervals and the difference from the
baseline.

There are two kinds of BLEU. `bleu` compares detokenised text with the raw references, with
sacreBLEU's own tokeniser; use it to compare papers. Like chrF, it ignores case if the model
produces only lower case (`vocabulary.preprocess: paper`). With `preprocess: paper`,
`bleu_round_trip` is the `bleu` of the references after tokenisation and detokenisation: the most
that `bleu` can reach, because tokens do not record every space. Below 99, a warning
says so, and `bleu_tokenised`, which loses nothing, is the score to compare.

`bleu_tokenised` follows the paper's code: lower-case Moses tokens on both sides, not tokenised
again; languages written without spaces have none. The signature of each is stored, including the
source of the tokens.

Differences are compared by paired bootstrap resampling (Koehn 2004): the two systems are scored on
the same resamples of sentences, so effects of sentences that are hard for both cancel. The interval
contains 95% of the differences. The p-value, the probability of a difference at least as large
between two equal systems, is two-sided: (n + 1) / 1001, where n resamples have a difference at
least as far from their mean as the measured one is from zero. sacreBLEU's p-value is smaller (half
as large if it is small), since it compares absolute differences on one side.

`difference` is the system's `bleu` minus the baseline's. The columns `counterpart_*` are the same
for a second model, where there is one. `difference_samples` are the differences on each resample:
since all models are resampled alike, the mean of several seeds has an interval of its own.
"""

import os
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from specialized_heads import stage
from specialized_heads.corpus.preprocess import Mode, apply, undo
from specialized_heads.languages import without_region
from specialized_heads.tables import read_columns

LEAST_ROUND_TRIP = 99  # BLEU
SAMPLES = 1000
SEED = "12345"
NGRAMS = 4
# To sacreBLEU's tokeniser 13a a sentence without spaces is one token: these have another one, or
# are scored by characters.
CHINESE = ("zh", "yue", "wuu", "lzh", "gan", "hak", "nan", "hsn", "cdo")
OTHERS = ("ja", "th", "lo", "km", "my", "shn", "bo", "dz")
UNSEGMENTED = dict.fromkeys(CHINESE, "zh") | dict.fromkeys(OTHERS, "char")


def tokenizer(language: str) -> str:
    """sacreBLEU's tokeniser for a language code (zh, zh_TW and zh-Hant are the same)."""
    return UNSEGMENTED.get(without_region(language), "13a")


def bleu(language: str, *, lowercase: bool, effective_order: bool = False) -> BLEU:
    """The metric; set `effective_order` for single sentences, which may have under four tokens."""
    return BLEU(lowercase=lowercase, tokenize=tokenizer(language), effective_order=effective_order)


class Compared(NamedTuple):
    """A system's BLEU, and the p-value and 95% interval of its difference (system minus baseline).

    differences: on each resample of the sentences (samples,); resamples are the same for all sets
    of this size.
    """

    bleu: float
    p_value: float
    low: float
    high: float
    differences: np.ndarray


def compare(
    baseline: list[str],
    systems: list[list[str]],
    references: list[str],
    *,
    language: str,
    lowercase: bool,
) -> tuple[float, list[Compared], str]:
    """BLEU of the baseline, the comparison of each system with it, and sacreBLEU's signature, all
    from detokenised text."""
    metric = bleu(language, lowercase=lowercase)
    full = metric.corpus_score(baseline, [references]).score
    signature = str(metric.get_signature())
    single = bleu(language, lowercase=lowercase, effective_order=True)
    times = resamples(len(references))
    reference = _resampled(baseline, references, times, single)
    compared = []
    for system in systems:
        if system == baseline:
            compared.append(Compared(full, 1.0, 0.0, 0.0, np.zeros(SAMPLES)))
            continue
        score = metric.corpus_score(system, [references]).score
        differences = _resampled(system, references, times, single) - reference
        found = significance(differences, score - full, sentences=len(references))
        compared.append(Compared(score, *found, differences))
    return full, compared, signature


def significance(
    differences: np.ndarray, measured: float, *, sentences: int
) -> tuple[float, float, float]:
    """The p-value of a measured difference and its 95% interval, from the differences (samples,) of
    the resamples."""
    as_far = np.abs(differences - differences.mean()) >= abs(measured)
    # One sentence has only one resample, which proves nothing.
    p_value = (as_far.sum() + 1) / (SAMPLES + 1) if sentences > 1 else 1.0
    low, high = np.quantile(differences, (0.025, 0.975))
    return float(p_value), float(low), float(high)


@cache
def resamples(sentences: int) -> np.ndarray:
    """Number of times each sentence occurs in each resample: int (samples, sentences)."""
    drawn = np.random.default_rng(int(SEED)).integers(sentences, size=(SAMPLES, sentences))
    return np.stack([np.bincount(row, minlength=sentences) for row in drawn])


def _resampled(
    system: list[str], references: list[str], times: np.ndarray, single: BLEU
) -> np.ndarray:
    """BLEU of a system on each resample, float64 (samples,), from the n-gram counts that `single`
    gives per sentence."""
    counts = []
    for line, gold in zip(system, references, strict=True):
        score = single.sentence_score(line, [gold])
        counts.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    resampled = []
    for row in (times @ np.array(counts)).tolist():
        numbers = row[:NGRAMS], row[NGRAMS:-2], *row[-2:]
        resampled.append(BLEU.compute_bleu(*numbers, smooth_method="exp").score)
    return np.array(resampled)


def read_lines(path: Path, *, references: list[str]) -> list[str]:
    """Read a translation, whose lines end with a line feed only; a `UserError` unless it has one
    line per reference: sacreBLEU would score the shorter text without a word."""
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError:
        raise stage.UserError(f"{path}: not UTF-8; delete it and run again") from None
    if len(lines) != len(references):
        problem = f"{len(lines)} lines for {len(references)} sentences of the test set"
        raise stage.UserError(f"{path}: {problem}; delete it and run again")
    return lines


def with_interval(
    metric: BLEU, lines: list[str], references: list[str]
) -> tuple[float, float, float]:
    """BLEU and the ends of its 95% bootstrap interval, which sacreBLEU only prints."""
    score = metric.corpus_score(lines, [references], n_bootstrap=SAMPLES)
    return score.score, score._mean - score._ci, score._mean + score._ci


def of_moses_tokens(
    tokens: list[str], reference_tokens: list[str], language: str
) -> dict[str, float | str | None]:
    """BLEU of lower-case Moses tokens, with interval and signature; None for languages without
    spaces."""
    names = ("bleu_tokenised", "bleu_tokenised_low", "bleu_tokenised_high", "signature_tokenised")
    if tokenizer(language) != "13a":
        return dict.fromkeys(names)
    metric = BLEU(lowercase=True, tokenize="none", force=True)  # without a warning about tokens
    values = with_interval(metric, tokens, reference_tokens)
    moses = f"moses.{language}-sacremoses-{version('sacremoses')}"
    signature = f"{metric.get_signature()}|tokens:{moses}"
    return dict(zip(names, (*values, signature), strict=True))


class Settings(stage.Section):
    preprocess: Mode
    language: str  # of the translation


FILES = ("translation", "tokenised", "references", "output")


@stage.command(*FILES, optional=("baseline", "counterpart"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    os.environ["SACREBLEU_SEED"] = SEED
    [references] = read_columns(files.references, "target")
    translation = read_lines(files.translation, references=references)
    lowercase = settings.preprocess == "paper"
    metric, chrf = bleu(settings.language, lowercase=lowercase), CHRF(lowercase=lowercase)
    reference_tokens = apply(references, language=settings.language, mode="paper")
    tokens = read_lines(files.tokenised, references=references)
    score, low, high = with_interval(metric, translation, references)
    result = {
        "bleu": score,
        "bleu_low": low,
        "bleu_high": high,
        "chrf": chrf.corpus_score(translation, [references]).score,
        "signature": str(metric.get_signature()),
        "signature_chrf": str(chrf.get_signature()),
        **of_moses_tokens(tokens, reference_tokens, settings.language),
        "sentences": len(references),
    }
    if lowercase:
        back = undo(reference_tokens, language=settings.language, mode="paper")
        result["bleu_round_trip"] = metric.corpus_score(back, [references]).score
        if result["bleu_round_trip"] < LEAST_ROUND_TRIP:
            stage.log.warning(
                "the references, made tokens and text again, reach %.1f BLEU, not 100: scores of "
                "text from tokens of %s are too low; compare bleu_tokenised, or set "
                "vocabulary.preprocess: none",
                result["bleu_round_trip"],
                settings.language,
            )
    for start, path in (("", files.baseline), ("counterpart_", files.counterpart)):
        values: tuple[float | list[float] | None, ...] = (None,) * 5
        if path:
            options = {"language": settings.language, "lowercase": lowercase}
            others = read_lines(path, references=references)
            other, [system], _ = compare(others, [translation], references, **options)
            drawn = system.differences.round(3).tolist()
            values = (system.bleu - other, system.low, system.high, system.p_value, drawn)
        names = ("difference", "difference_low", "difference_high", "p_value", "difference_samples")
        result |= {f"{start}{name}": value for name, value in zip(names, values, strict=True)}
    stage.write_json(files.output, result)
    stage.log.info("BLEU %.2f; chrF %.2f", result["bleu"], result["chrf"])
