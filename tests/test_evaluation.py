"""Scores against sacreBLEU called directly, of text and of tokens, of one translation and of many;
mistakes in the files."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from parallel_text import Pairs, write_pairs
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from specialized_heads import evaluation
from specialized_heads.corpus.preprocess import apply
from specialized_heads.evaluation import compare, tokenizer
from specialized_heads.languages import without_region
from specialized_heads.stage import UserError

REFERENCES = [f"Кот номер {i} видит собаку и {i % 7} больших домов." for i in range(60)]
GOOD = [
    line.replace("больших", "малых") if i % 4 == 0 else line for i, line in enumerate(REFERENCES)
]
BAD = [line.replace("видит", "слышит") if i % 2 else line for i, line in enumerate(GOOD)]
LIKE = [
    line.replace("больших", "малых") if i % 4 == 1 or i == 2 else line
    for i, line in enumerate(REFERENCES)
]


@pytest.fixture
def scored(call, tmp_path: Path) -> Callable[..., dict]:
    """`scored(system, baseline)`: what the stage writes; tokens are those of the system unless
    others are given."""

    def run(
        system,
        baseline=None,
        *,
        counterpart=None,
        tokenised=None,
        preprocess="none",
        language="ru",
        references=REFERENCES,
    ) -> dict:
        write_pairs(tmp_path / "test.parquet", Pairs(["–"] * 60, references, ["1"] * 60))
        files = {"references": tmp_path / "test.parquet", "output": tmp_path / "score.json"}
        tokenised = apply(system, language="ru", mode="paper") if tokenised is None else tokenised
        texts = {
            "translation": system,
            "baseline": baseline,
            "counterpart": counterpart,
            "tokenised": tokenised,
        }
        for name, lines in texts.items():
            if lines is not None:
                files[name] = tmp_path / f"{name}.txt"
                files[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        call(evaluation, settings={"preprocess": preprocess, "language": language}, **files)
        return json.loads(files["output"].read_text())

    return run


def test_scores_are_sacrebleu_s(scored) -> None:
    result = scored(BAD)
    assert result["bleu"] == pytest.approx(sacrebleu.corpus_bleu(BAD, [REFERENCES]).score, abs=1e-9)
    assert result["chrf"] == pytest.approx(sacrebleu.corpus_chrf(BAD, [REFERENCES]).score, abs=1e-9)
    assert "nc:6|nw:0" in result["signature_chrf"]
    assert result["bleu_low"] < result["bleu"] < result["bleu_high"] < result["bleu"] + 10
    assert result["sentences"] == 60
    assert result["p_value"] is None
    for part in ("nrefs:1", "case:mixed", "tok:13a", f"version:{sacrebleu.__version__}"):
        assert part in result["signature"]


def test_a_language_without_spaces_is_scored_by_its_own_tokens_and_not_by_moses(scored) -> None:
    references = [f"猫が{i}匹の犬と{i % 7}軒の大きな家を見ています。" for i in range(60)]
    system = [line.replace("大きな", "小さな") for line in references]
    result = scored(system, references, language="ja", references=references)
    assert result["bleu"] == pytest.approx(
        sacrebleu.corpus_bleu(system, [references], tokenize="char").score, abs=1e-9
    )
    assert result["difference"] == pytest.approx(result["bleu"] - 100) and result["p_value"] < 0.01
    assert result["bleu_tokenised"] is result["signature_tokenised"] is None
    assert "tok:char" in result["signature"]


def test_bleu_of_tokens_is_that_of_lower_case_moses_tokens(scored) -> None:
    shorter = [line.replace("больших ", "") for line in BAD]
    for lines in (BAD, shorter, [line.upper() for line in BAD]):
        tokens = [line.lower().replace(".", " .") for line in lines]
        result = scored(lines)
        gold = [line.lower().replace(".", " .") for line in REFERENCES]
        expected = sacrebleu.corpus_bleu(tokens, [gold], tokenize="none").score
        assert result["bleu_tokenised"] == pytest.approx(expected, abs=1e-9)
        assert (
            result["bleu_tokenised_low"] < expected < result["bleu_tokenised_high"] < expected + 10
        )
    assert result["bleu"] < result["bleu_tokenised"]  # in capitals
    assert result["signature_tokenised"] != result["signature"]
    for part in ("case:lc", "tok:none", "bs:1000", "tokens:moses.ru-sacremoses-"):
        assert part in result["signature_tokenised"]


def test_the_given_tokens_are_scored_and_not_split_again(scored) -> None:
    tokens = apply(REFERENCES, language="ru", mode="paper")
    assert scored(BAD, tokenised=tokens)["bleu_tokenised"] == pytest.approx(100)
    joined = [line.replace(" .", ".") for line in tokens]
    assert scored(BAD, tokenised=joined)["bleu_tokenised"] < 90


def test_a_model_that_knows_lower_case_alone_is_scored_without_case(scored) -> None:
    lower = [line.lower() for line in REFERENCES]
    without = scored(lower, preprocess="paper")
    assert (without["bleu"], without["chrf"]) == (pytest.approx(100), pytest.approx(100))
    assert "case:lc" in without["signature"] and "tok:13a" in without["signature"]
    assert scored(lower)["bleu"] < 95

    system = [line.lower() for line in GOOD]  # of the two only this one pays for its case
    _, [expected], _ = compare(LIKE, [system], REFERENCES, language="ru", lowercase=True)
    assert expected.p_value > 0.01
    assert scored(system, LIKE, preprocess="paper")["p_value"] == expected.p_value
    assert scored(system, LIKE)["p_value"] < 0.01


def test_the_second_model_is_compared_as_the_baseline_is(scored) -> None:
    ends = ("difference", "difference_low", "difference_high", "p_value", "difference_samples")
    one, other, both = scored(BAD, GOOD), scored(BAD, LIKE), scored(BAD, GOOD, counterpart=LIKE)
    assert [both[name] for name in ends] == [one[name] for name in ends]
    assert [both[f"counterpart_{name}"] for name in ends] == [other[name] for name in ends]
    assert one["difference"] != other["difference"]
    assert all(one[f"counterpart_{name}"] is None for name in ends)
    # The interval is that of the differences on resamples, which are kept: those of several seeds
    # can be averaged.
    drawn = np.array(one["difference_samples"])
    assert drawn.shape == (1000,)
    assert np.quantile(drawn, (0.025, 0.975)) == pytest.approx(
        [one["difference_low"], one["difference_high"]], abs=2e-3
    )


@pytest.mark.parametrize("lines", [BAD[:-1], [*BAD, ""], []])
def test_a_wrong_number_of_lines(scored, lines: list[str]) -> None:
    for given in ((lines,), (BAD, lines)):
        with pytest.raises(UserError, match=rf"{len(lines)} lines for 60 sentences"):
            scored(*given)
    with pytest.raises(UserError, match=rf"tokenised.txt: {len(lines)} lines for 60 sentences"):
        scored(BAD, tokenised=lines)


def test_a_translation_cut_within_a_character(tmp_path: Path) -> None:
    (path := tmp_path / "translation.txt").write_bytes("Кот\n".encode()[:-2] + b"\n")
    with pytest.raises(UserError, match="translation.txt: not UTF-8; delete it and run again"):
        evaluation.read_lines(path, references=["Кот"])


def test_empty_and_odd_lines_keep_their_place(scored) -> None:
    odd = ["", "a\u2028b\x0bc\x85d\r", *BAD[2:]]  # characters that some would call line ends
    assert scored(odd)["bleu"] == pytest.approx(sacrebleu.corpus_bleu(odd, [REFERENCES]).score)


# Many translations against one: the same scores as sacreBLEU gives each pair.

WORDS = "the cat sat on a mat and saw Dogs run over there all day long".split()
ENGLISH = [" ".join(WORDS[i % 5 : i % 5 + 7]) for i in range(40)]
WORSE = [
    line.replace("sat", "lay").replace("Dogs", "dogs") if i % 3 else line
    for i, line in enumerate(ENGLISH)
]
NEAR = [
    line.replace("sat", "lay").replace("Dogs", "dogs") if i % 3 != 1 else line
    for i, line in enumerate(ENGLISH)
]
WORST = [line.replace("on a", "at the").replace("mat", "rug") for line in WORSE]


@pytest.mark.parametrize("lowercase", [False, True])
def test_each_system_is_scored_as_in_a_pair(lowercase: bool) -> None:
    full, scores, signature = compare(
        WORSE, [WORST, WORSE, ENGLISH], ENGLISH, language="en", lowercase=lowercase
    )
    bleu = BLEU(lowercase=lowercase)
    assert full == bleu.corpus_score(WORSE, [ENGLISH]).score
    assert signature == str(bleu.get_signature())
    assert scores[1][:4] == (full, 1.0, 0.0, 0.0)
    assert scores[2].bleu == pytest.approx(100)
    os.environ["SACREBLEU_SEED"] = "12345"
    for (found, p_value, *_), system in zip((scores[0], scores[2]), (WORST, ENGLISH), strict=True):
        metrics = {"BLEU": BLEU(references=[ENGLISH], lowercase=lowercase)}
        pair = PairedTest(
            [("a", WORSE), ("b", system)], metrics, None, test_type="bs", n_samples=1000
        )()[1]["BLEU"][1]
        assert found == pair.score
        assert p_value < 2 * pair.p_value + 0.005
    assert scores[0].p_value < 0.01


def test_a_single_sentence_is_no_evidence() -> None:
    """All its resamples are itself."""
    _, (found,), _ = compare(
        WORST[1:2], [ENGLISH[1:2]], ENGLISH[1:2], language="en", lowercase=False
    )
    assert found.bleu == pytest.approx(100)
    assert (found.p_value, found.low) == (1.0, found.high)


def test_interval_and_two_sided_p_value_follow_from_differences_on_the_same_resamples(
    monkeypatch,
) -> None:
    monkeypatch.setattr(evaluation, "SAMPLES", 200)
    # those of other tests are more
    monkeypatch.setattr(evaluation, "resamples", evaluation.resamples.__wrapped__)
    systems = [WORST, ENGLISH, NEAR]
    full, [found, mirrored, like], _ = compare(
        WORSE, systems, ENGLISH, language="en", lowercase=False
    )
    # it is worse for certain, as p < 0.01 says
    assert found.low < found.bleu - full < found.high < 0
    assert 0 < mirrored.low < 100 - full < mirrored.high
    # By sacreBLEU's own scores of whole resampled corpora.
    drawn = np.random.default_rng(12345).integers(len(ENGLISH), size=(200, len(ENGLISH)))
    bleu = BLEU()
    resampled = []
    for rows in drawn:
        gold = [[ENGLISH[row] for row in rows]]
        systems = [[lines[row] for row in rows] for lines in (WORSE, WORST, NEAR)]
        resampled.append([bleu.corpus_score(lines, gold).score for lines in systems])
    baseline, worst, near = np.array(resampled).T
    assert (found.low, found.high) == pytest.approx(
        tuple(np.quantile(worst - baseline, (0.025, 0.975)))
    )
    differences = near - baseline
    as_far = np.abs(differences - differences.mean()) >= abs(like.bleu - full)
    assert like.p_value == pytest.approx((1 + as_far.sum()) / 201)
    assert 0.01 < like.p_value < 0.99


def test_what_is_known_of_a_language_does_not_depend_on_how_its_code_is_written() -> None:
    codes = {"pt_BR": "pt", "zh-Hant": "zh", "EN": "en", "zho_Hans": "zh", "cmn": "zh", "ger": "de"}
    codes |= {"hsb": "hsb"}
    assert {code: without_region(code) for code in codes} == codes
    assert tokenizer("zho_Hans") == tokenizer("zh") == "zh"
    assert tokenizer("jpn_Jpan") == tokenizer("tha") == "char"


def test_the_interval_of_bleu_holds_95_in_100_resamples(scored) -> None:
    result, bleu = scored(BAD), BLEU()
    drawn = np.random.default_rng(1).integers(60, size=(400, 60))
    scores = [
        bleu.corpus_score([BAD[i] for i in rows], [[REFERENCES[i] for i in rows]]).score
        for rows in drawn
    ]
    low, high = np.quantile(scores, (0.025, 0.975))
    assert result["bleu_high"] - result["bleu_low"] == pytest.approx(high - low, rel=0.2)
