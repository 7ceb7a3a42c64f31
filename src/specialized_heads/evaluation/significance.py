"""The BLEU of the whole project: sacreBLEU's, with the p-value and confidence interval of their differences from a baseline.

Both use paired bootstrap resampling (Koehn 2004): the two systems are scored on the same resamples of sentences, so effects of
sentences that are hard for both cancel. The interval contains 95% of the differences. The p-value is two-sided: (n + 1) /
1001, where n resamples have a difference at least as far from their mean as the measured one is from zero. sacreBLEU's p-value is
smaller (half as large if it is small), since it compares absolute differences on one side.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU

from specialized_heads.languages import without_region

SAMPLES = 1000
SEED = "12345"
NGRAMS = 4
# To sacreBLEU's tokeniser 13a a sentence without spaces is one token: these have another one, or are scored by characters.
CHINESE = ("zh", "yue", "wuu", "lzh", "gan", "hak", "nan", "hsn", "cdo")
UNSEGMENTED = dict.fromkeys(CHINESE, "zh") | dict.fromkeys(("ja", "th", "lo", "km", "my", "shn", "bo", "dz"), "char")


def tokenizer(language: str) -> str:
    """sacreBLEU's tokeniser for a language code (zh, zh_TW and zh-Hant are the same)."""
    return UNSEGMENTED.get(without_region(language), "13a")


def bleu(language: str, *, lowercase: bool, effective_order: bool = False) -> BLEU:
    """The metric; set `effective_order` for single sentences, which may be shorter than four tokens."""
    return BLEU(lowercase=lowercase, tokenize=tokenizer(language), effective_order=effective_order)


class Compared(NamedTuple):
    """A system's BLEU, and the p-value and 95% interval of its difference (system minus baseline).

    differences: on each resample of the sentences (samples,); resamples are the same for all sets of this size.
    """

    bleu: float
    p_value: float
    low: float
    high: float
    differences: np.ndarray


def compare(
    baseline: list[str], systems: list[list[str]], references: list[str], *, language: str, lowercase: bool
) -> tuple[float, list[Compared], str]:
    """BLEU of the baseline, the comparison of each system with it, and sacreBLEU's signature, all from detokenised text."""
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


def significance(differences: np.ndarray, measured: float, *, sentences: int) -> tuple[float, float, float]:
    """The p-value of a measured difference and its 95% interval, from the differences (samples,) of the resamples."""
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


def _resampled(system: list[str], references: list[str], times: np.ndarray, single: BLEU) -> np.ndarray:
    """BLEU of a system on each resample, float64 (samples,), from the n-gram counts that `single` gives per sentence."""
    scores = [single.sentence_score(line, [gold]) for line, gold in zip(system, references, strict=True)]
    counts = np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores])
    rows = (times @ counts).tolist()
    resampled = [BLEU.compute_bleu(row[:NGRAMS], row[NGRAMS:-2], *row[-2:], smooth_method="exp") for row in rows]
    return np.array([score.score for score in resampled])
