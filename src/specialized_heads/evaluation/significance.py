"""BLEU of many translations of one set, each with the p-value of its difference from one of them.

The p-value is that of paired bootstrap resampling (Koehn 2004) as sacreBLEU computes it.
"""

import os

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

SAMPLES = 1000
SEED = "12345"


def compare(
    baseline: list[str], systems: list[list[str]], references: list[str], *, lowercase: bool
) -> tuple[float, list[tuple[float, float]], str]:
    """Score a baseline, and other systems against it.

    Args:
        baseline: its detokenised translations.
        systems: those of the others.
        references: one per sentence.
        lowercase: whether case is ignored.

    Returns:
        BLEU of the baseline; BLEU and p-value of each system; sacreBLEU's signature.
    """
    os.environ["SACREBLEU_SEED"] = SEED
    bleu = BLEU(lowercase=lowercase)
    full = bleu.corpus_score(baseline, [references]).score
    signature = str(bleu.get_signature())
    scores: dict[int, tuple[float, float]] = {}
    for number, system in enumerate(systems):
        # sacreBLEU counts strictly larger differences only and would call no difference at all significant.
        if (score := bleu.corpus_score(system, [references]).score) == full:
            scores[number] = (score, 1.0)
    different = [number for number in range(len(systems)) if number not in scores]
    if different:
        named = [("baseline", baseline), *((str(number), systems[number]) for number in different)]
        metrics = {"BLEU": BLEU(references=[references], lowercase=lowercase)}
        _, tested = PairedTest(named, metrics, references=None, test_type="bs", n_samples=SAMPLES)()
        for number, result in zip(different, tested["BLEU"][1:], strict=True):
            scores[number] = (result.score, result.p_value)
    return full, [scores[number] for number in range(len(systems))], signature
