"""Scores against sacreBLEU called directly, the paired test at its ends, and mistakes in the files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.evaluation import score
from specialized_heads.stage import UserError

REFERENCES = [f"Кот номер {i} видит собаку и {i % 7} больших домов." for i in range(60)]
GOOD = [line.replace("больших", "малых") if i % 4 == 0 else line for i, line in enumerate(REFERENCES)]
BAD = [line.replace("видит", "слышит") if i % 2 else line for i, line in enumerate(GOOD)]
LIKE = [line.replace("больших", "малых") if i % 4 == 1 or i == 2 else line for i, line in enumerate(REFERENCES)]


@pytest.fixture
def scored(call: Callable[..., None], tmp_path: Path) -> Callable[..., dict]:
    """`scored(system, baseline)`: what the stage writes."""

    def run(system: list[str], baseline: list[str] | None = None) -> dict:
        write_pairs(tmp_path / "test.parquet", Pairs(["–"] * 60, REFERENCES, ["1"] * 60))
        files = {"references": tmp_path / "test.parquet", "output": tmp_path / "score.json"}
        for name, lines in (("translation", system), ("baseline", baseline)):
            if lines is not None:
                files[name] = tmp_path / f"{name}.txt"
                files[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        call(score, **files)
        return json.loads(files["output"].read_text())

    return run


def test_scores_are_sacrebleu_s(scored: Callable[..., dict]) -> None:
    result = scored(BAD)
    assert result["bleu"] == pytest.approx(sacrebleu.corpus_bleu(BAD, [REFERENCES]).score, abs=1e-9)
    assert result["chrf"] == pytest.approx(sacrebleu.corpus_chrf(BAD, [REFERENCES]).score, abs=1e-9)
    assert result["bleu_low"] < result["bleu"] < result["bleu_high"] < result["bleu"] + 10
    assert result["sentences"] == 60
    assert result["p_value"] is None
    for part in ("nrefs:1", "case:mixed", "tok:13a", f"version:{sacrebleu.__version__}"):
        assert part in result["signature"]


def test_a_perfect_translation(scored: Callable[..., dict]) -> None:
    assert scored(REFERENCES)["bleu"] == pytest.approx(100)


def test_different_from_the_baseline(scored: Callable[..., dict]) -> None:
    assert scored(BAD, GOOD)["p_value"] < 0.01
    assert scored(GOOD, BAD)["p_value"] < 0.01


def test_p_value_is_that_of_paired_bootstrap_resampling(scored: Callable[..., dict]) -> None:
    systems = [("baseline", LIKE), ("system", GOOD)]
    test = PairedTest(systems, {"BLEU": BLEU(references=[REFERENCES])}, None, test_type="bs", n_samples=1000)
    expected = test()[1]["BLEU"][1].p_value
    assert 0.01 < expected < 0.99
    assert scored(GOOD, LIKE)["p_value"] == expected


def test_the_same_translation_does_not_differ(scored: Callable[..., dict]) -> None:
    assert scored(BAD, BAD)["p_value"] == 1.0


def test_scores_repeat(scored: Callable[..., dict], monkeypatch: pytest.MonkeyPatch) -> None:
    first = scored(GOOD, LIKE)
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    assert scored(GOOD, LIKE) == first


@pytest.mark.parametrize("lines", [BAD[:-1], [*BAD, ""], []])
def test_a_wrong_number_of_lines(scored: Callable[..., dict], lines: list[str]) -> None:
    with pytest.raises(UserError, match=rf"{len(lines)} lines for 60 sentences"):
        scored(lines)
    with pytest.raises(UserError, match=rf"{len(lines)} lines for 60 sentences"):
        scored(BAD, lines)


def test_empty_and_odd_lines_keep_their_place(scored: Callable[..., dict]) -> None:
    odd = ["", "a\u2028b\x0bc\x85d", *BAD[2:]]  # characters that some would call line ends
    assert scored(odd)["bleu"] == pytest.approx(sacrebleu.corpus_bleu(odd, [REFERENCES]).score)
