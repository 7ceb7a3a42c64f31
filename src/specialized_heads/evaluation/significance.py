"""BLEU of many translations of one set, each with the p-value and the interval of its difference from one of them.

The p-value is that of paired bootstrap resampling (Koehn 2004) as sacreBLEU computes it. The interval comes from the same
idea: both systems are scored on the same resamples of sentences, so that what makes a sentence hard for both cancels out.
"""

import os
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

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
    baseline: list[str], systems: list[list[str]], references: list[str], *, lowercase: bool
) -> tuple[float, list[Compared], str]:
    """Score a baseline, and other systems against it.

    Args:
        baseline: its detokenised translations.
        systems: those of the others.
        references: one per sentence.
        lowercase: whether case is ignored.

    Returns:
        BLEU of the baseline; each system beside it; sacreBLEU's signature.
    """
    os.environ["SACREBLEU_SEED"] = SEED
    bleu = BLEU(lowercase=lowercase)
    full = bleu.corpus_score(baseline, [references]).score
    signature = str(bleu.get_signature())
    scores: dict[int, Compared] = {}
    for number, system in enumerate(systems):
        # sacreBLEU counts strictly larger differences only and would call no difference at all significant.
        if (score := bleu.corpus_score(system, [references]).score) == full:
            scores[number] = Compared(score, 1.0, 0.0, 0.0)
    different = [number for number in range(len(systems)) if number not in scores]
    if different:
        named = [("baseline", baseline), *((str(number), systems[number]) for number in different)]
        metrics = {"BLEU": BLEU(references=[references], lowercase=lowercase)}
        _, tested = PairedTest(named, metrics, references=None, test_type="bs", n_samples=SAMPLES)()
        times = _resamples(len(references))
        reference = _resampled(baseline, references, times, lowercase=lowercase)
        for number, result in zip(different, tested["BLEU"][1:], strict=True):
            differences = _resampled(systems[number], references, times, lowercase=lowercase) - reference
            low, high = np.quantile(differences, (0.025, 0.975))
            scores[number] = Compared(result.score, result.p_value, float(low), float(high))
    return full, [scores[number] for number in range(len(systems))], signature


def _resamples(sentences: int) -> np.ndarray:
    """How often each sentence is in each resample: int, (samples, sentences)."""
    drawn = np.random.default_rng(int(SEED)).integers(sentences, size=(SAMPLES, sentences))
    return np.stack([np.bincount(row, minlength=sentences) for row in drawn])


def _resampled(system: list[str], references: list[str], times: np.ndarray, *, lowercase: bool) -> np.ndarray:
    """BLEU of a system on resamples of the sentences: float64, (samples,)."""
    bleu = BLEU(lowercase=lowercase, effective_order=True)  # of single sentences, of which only the counts are used
    scores = [bleu.sentence_score(line, [gold]) for line, gold in zip(system, references, strict=True)]
    counts = np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores])
    return np.array([_bleu(row.tolist()) for row in times @ counts])


def _bleu(row: list[int]) -> float:
    """BLEU of summed counts: matches and n-grams of each order, length of the translation and of the reference."""
    matches, ngrams, (length, reference_length) = row[:NGRAMS], row[NGRAMS : 2 * NGRAMS], row[2 * NGRAMS :]
    return BLEU.compute_bleu(matches, ngrams, length, reference_length, smooth_method="exp").score
