"""Scores of many translations against one: the same as sacreBLEU gives each pair."""

import os

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from specialized_heads.evaluation import significance
from specialized_heads.evaluation.significance import compare, tokenizer
from specialized_heads.languages import without_region

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "Dogs", "run", "over", "there", "all", "day", "long"]
REFERENCES = [" ".join(WORDS[i % 5 : i % 5 + 7]) for i in range(40)]
WORSE = [line.replace("sat", "lay").replace("Dogs", "dogs") if i % 3 else line for i, line in enumerate(REFERENCES)]
LIKE = [line.replace("sat", "lay").replace("Dogs", "dogs") if i % 3 != 1 else line for i, line in enumerate(REFERENCES)]
WORST = [line.replace("on a", "at the").replace("mat", "rug") for line in WORSE]


@pytest.mark.parametrize("lowercase", [False, True])
def test_each_system_is_scored_as_in_a_pair(lowercase: bool) -> None:
    full, scores, signature = compare(WORSE, [WORST, WORSE, REFERENCES], REFERENCES, language="en", lowercase=lowercase)
    bleu = BLEU(lowercase=lowercase)
    assert full == bleu.corpus_score(WORSE, [REFERENCES]).score
    assert signature == str(bleu.get_signature())
    assert scores[1] == (full, 1.0, 0.0, 0.0)
    assert scores[2].bleu == pytest.approx(100)
    os.environ["SACREBLEU_SEED"] = "12345"
    for (score, p_value, _, _), system in zip((scores[0], scores[2]), (WORST, REFERENCES), strict=True):
        metrics = {"BLEU": BLEU(references=[REFERENCES], lowercase=lowercase)}
        pair = PairedTest([("a", WORSE), ("b", system)], metrics, None, test_type="bs", n_samples=1000)()[1]["BLEU"][1]
        assert score == pair.score
        assert p_value < 2 * pair.p_value + 0.005
    assert scores[0].p_value < 0.01


def test_a_single_sentence_is_no_evidence() -> None:
    """All its resamples are itself."""
    _, (found,), _ = compare(WORST[1:2], [REFERENCES[1:2]], REFERENCES[1:2], language="en", lowercase=False)
    assert found.bleu == pytest.approx(100)
    assert (found.p_value, found.low) == (1.0, found.high)


def test_interval_and_two_sided_p_value_follow_from_differences_on_the_same_resamples(monkeypatch) -> None:
    monkeypatch.setattr(significance, "SAMPLES", 200)
    systems = [WORST, REFERENCES, LIKE]
    full, [found, mirrored, like], _ = compare(WORSE, systems, REFERENCES, language="en", lowercase=False)
    assert found.low < found.bleu - full < found.high < 0  # it is worse for certain, as p < 0.01 says
    assert 0 < mirrored.low < 100 - full < mirrored.high
    # By sacreBLEU's own scores of whole resampled corpora.
    drawn = np.random.default_rng(12345).integers(len(REFERENCES), size=(200, len(REFERENCES)))
    bleu = BLEU()
    resampled = []
    for rows in drawn:
        gold = [[REFERENCES[row] for row in rows]]
        systems = [[lines[row] for row in rows] for lines in (WORSE, WORST, LIKE)]
        resampled.append([bleu.corpus_score(lines, gold).score for lines in systems])
    baseline, worst, near = np.array(resampled).T
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(worst - baseline, (0.025, 0.975))))
    differences = near - baseline
    as_far = np.abs(differences - differences.mean()) >= abs(like.bleu - full)
    assert like.p_value == pytest.approx((1 + as_far.sum()) / 201)
    assert 0.01 < like.p_value < 0.99


def test_what_is_known_of_a_language_does_not_depend_on_how_its_code_is_written() -> None:
    codes = {"pt_BR": "pt", "zh-Hant": "zh", "EN": "en", "zho_Hans": "zh", "cmn": "zh", "ger": "de", "hsb": "hsb"}
    assert {code: without_region(code) for code in codes} == codes
    assert tokenizer("zho_Hans") == tokenizer("zh") == "zh"
    assert tokenizer("jpn_Jpan") == tokenizer("tha") == "char"
