"""BLEU of many translations of one set, each with the p-value and the interval of its difference from one of them.

Both come from paired bootstrap resampling (Koehn 2004): the two systems are scored on the same resamples of sentences, so that
what makes a sentence hard for both cancels out. The interval holds 95% of the differences. The p-value is two-sided: how often
a resample's difference is at least as far from the mean of all as the measured one is from zero. sacreBLEU's own is smaller,
half as large where it is small, for it compares absolute differences, from one side.
"""

import os
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU

from specialized_heads.evaluation.bleu import bleu

SAMPLES = 1000
SEED = "12345"
NGRAMS = 4


class Compared(NamedTuple):
    """A system beside the baseline: BLEU, p-value of the difference, and its 95% interval (system minus baseline)."""

    bleu: float
    p_value: float
    low: float
    high: float


def compare(
    baseline: list[str], systems: list[list[str]], references: list[str], *, language: str, lowercase: bool
) -> tuple[float, list[Compared], str]:
    """Score a baseline, and other systems against it.

    Args:
        baseline: its detokenised translations.
        systems: those of the others.
        references: one per sentence.
        language: of all of these.
        lowercase: whether case is ignored.

    Returns:
        BLEU of the baseline; each system beside it; sacreBLEU's signature.
    """
    os.environ["SACREBLEU_SEED"] = SEED
    metric = bleu(language, lowercase=lowercase)
    full = metric.corpus_score(baseline, [references]).score
    signature = str(metric.get_signature())
    single = bleu(language, lowercase=lowercase, effective_order=True)
    times = _resamples(len(references))
    reference = _resampled(baseline, references, times, single)
    found = []
    for system in systems:
        if system == baseline:
            found.append(Compared(full, 1.0, 0.0, 0.0))
            continue
        score = metric.corpus_score(system, [references]).score
        differences = _resampled(system, references, times, single) - reference
        as_far = np.abs(differences - differences.mean()) >= abs(score - full)
        p_value = (as_far.sum() + 1) / (SAMPLES + 1) if np.ptp(differences) else 1.0  # a single sentence does not vary
        low, high = np.quantile(differences, (0.025, 0.975))
        found.append(Compared(score, float(p_value), float(low), float(high)))
    return full, found, signature


def _resamples(sentences: int) -> np.ndarray:
    """How often each sentence is in each resample: int, (samples, sentences)."""
    drawn = np.random.default_rng(int(SEED)).integers(sentences, size=(SAMPLES, sentences))
    return np.stack([np.bincount(row, minlength=sentences) for row in drawn])


def _resampled(system: list[str], references: list[str], times: np.ndarray, single: BLEU) -> np.ndarray:
    """BLEU of a system on resamples of the sentences: float64, (samples,); `single` is that of one sentence, of which only
    the counts are used."""
    scores = [single.sentence_score(line, [gold]) for line, gold in zip(system, references, strict=True)]
    counts = np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores])
    return np.array([_bleu(row.tolist()) for row in times @ counts])


def _bleu(row: list[int]) -> float:
    """BLEU of summed counts: matches and n-grams of each order, length of the translation and of the reference."""
    matches, ngrams, (length, reference_length) = row[:NGRAMS], row[NGRAMS : 2 * NGRAMS], row[2 * NGRAMS :]
    return BLEU.compute_bleu(matches, ngrams, length, reference_length, smooth_method="exp").score
