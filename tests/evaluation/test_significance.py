"""Scores of many translations against one: the same as sacreBLEU gives each pair."""

import os

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from specialized_heads.evaluation.significance import compare

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "Dogs", "run", "over", "there", "all", "day", "long"]
REFERENCES = [" ".join(WORDS[i % 5 : i % 5 + 7]) for i in range(40)]
WORSE = [line.replace("sat", "lay").replace("Dogs", "dogs") if i % 3 else line for i, line in enumerate(REFERENCES)]
WORST = [line.replace("on a", "at the").replace("mat", "rug") for line in WORSE]


@pytest.mark.parametrize("lowercase", [False, True])
def test_each_system_is_scored_as_in_a_pair(lowercase: bool) -> None:
    full, scores, signature = compare(WORSE, [WORST, WORSE, REFERENCES], REFERENCES, lowercase=lowercase)
    bleu = BLEU(lowercase=lowercase)
    assert full == bleu.corpus_score(WORSE, [REFERENCES]).score
    assert signature == str(bleu.get_signature())
    assert scores[1] == (full, 1.0, 0.0, 0.0)  # no difference is not significant
    assert scores[2].bleu == pytest.approx(100)
    os.environ["SACREBLEU_SEED"] = "12345"
    for (score, p_value, _, _), system in zip((scores[0], scores[2]), (WORST, REFERENCES), strict=True):
        metrics = {"BLEU": BLEU(references=[REFERENCES], lowercase=lowercase)}
        pair = PairedTest([("a", WORSE), ("b", system)], metrics, None, test_type="bs", n_samples=1000)()[1]["BLEU"][1]
        assert (score, p_value) == (pair.score, pair.p_value)
    assert scores[0].p_value < 0.01


def test_no_system_differs() -> None:
    full, scores, _ = compare(WORSE, [list(WORSE)], REFERENCES, lowercase=False)
    assert scores == [(full, 1.0, 0.0, 0.0)]
    assert compare(WORSE, [], REFERENCES, lowercase=False)[1] == []


def test_the_interval_is_that_of_differences_on_the_same_resamples() -> None:
    full, [found, mirrored], _ = compare(WORSE, [WORST, REFERENCES], REFERENCES, lowercase=False)
    assert found.low < found.bleu - full < found.high < 0  # it is worse for certain, as p < 0.01 says
    assert 0 < mirrored.low < 100 - full < mirrored.high
    # The same by sacreBLEU's own scores of whole resampled corpora.
    drawn = np.random.default_rng(12345).integers(len(REFERENCES), size=(1000, len(REFERENCES)))
    bleu = BLEU()
    differences = []
    for rows in drawn:
        gold = [[REFERENCES[row] for row in rows]]
        pair = [bleu.corpus_score([lines[row] for row in rows], gold).score for lines in (WORST, WORSE)]
        differences.append(pair[0] - pair[1])
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(differences, (0.025, 0.975))))
