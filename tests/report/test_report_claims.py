"""Claims: verdicts from values and intervals, and the table."""

import re
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest

from specialized_heads.report import paper
from specialized_heads.report.claims import across
from specialized_heads.report.claims.claim import (
    LIST,
    Claim,
    Measured,
    Unit,
    Verdict,
    claims,
    judge,
    judged,
    notes,
    numbers,
    shown,
)
from specialized_heads.report.claims.evidence import Evidence, evidence_of
from specialized_heads.report.claims.inference import proportion
from specialized_heads.report.data import Tables, with_ends


def claim(low: float | None, high: float | None, **more: object) -> Claim:
    known = {
        "name": "a",
        "paper": "Voita et al. 2019",
        "finding": "pruning",
        "section": "1",
        "text": "t",
        "unit": "share",
    }
    return Claim.model_validate(known | {"accepted": (low, high), "measure": "loss"} | more)


LARGER = claim(0.01, None)
IN_TOO_FEW = Verdict.IN_TOO_FEW.value
HALF, LOSS = claim(0.4, 1.0), claim(None, 2.0)
OURS, SELECTED = claim(0.4, 1.0, our_threshold=True), claim(0.4, 1.0, selected=True)


@pytest.mark.parametrize(
    ("claim", "measured", "verdict"),
    [
        (LOSS, Measured(1.9, 1.0, 2.0, baselines=3), Verdict.REPRODUCED),
        (LOSS, Measured(1.9, 1.0, 2.0, baselines=2), Verdict.PARTLY),
        (LOSS, Measured(1.9, 1.0, 2.0, baselines=3, sufficient=False), Verdict.PARTLY),
        # An interval that holds an end of the range decides nothing, wherever the value is.
        (LOSS, Measured(1.9, 1.0, 3.0, baselines=3), Verdict.INCONCLUSIVE),
        (LOSS, Measured(2.1, 1.0, 3.0, baselines=3), Verdict.INCONCLUSIVE),
        (LOSS, Measured(2.1, 2.05, 3.0, baselines=3), Verdict.NOT_REPRODUCED),
        (LOSS, Measured(2.1, 2.05, 3.0, baselines=2), Verdict.IN_TOO_FEW),
        (LOSS, Measured(2.1, 2.05, 3.0, baselines=3, confounded=True), Verdict.CONFOUNDED),
        (HALF, Measured(0.3, 0.2, 0.6), Verdict.INCONCLUSIVE),
        (HALF, Measured(0.5, 0.2, 0.6), Verdict.INCONCLUSIVE),
        (HALF, Measured(0.3, 0.2, 0.35), Verdict.IN_TOO_FEW),
        (OURS, Measured(0.3, 0.2, 0.35, baselines=3), Verdict.BY_OUR_THRESHOLD),
        (OURS, Measured(0.3, 0.2, 0.35), Verdict.IN_TOO_FEW),
        (SELECTED, Measured(0.5, 0.45, 0.6, baselines=3), Verdict.AFTER_SELECTION),
        (SELECTED, Measured(0.3, 0.2, 0.35, baselines=3), Verdict.NOT_REPRODUCED),
        # Without an interval, nothing is certain.
        (HALF, Measured(0.3, baselines=3), Verdict.INCONCLUSIVE),
        (HALF, Measured(0.9, baselines=3), Verdict.INCONCLUSIVE),
        (LARGER, Measured(0.3, 0.1, 0.5, baselines=3), Verdict.REPRODUCED),
        (LARGER, Measured(0.03, -0.68, 0.74, baselines=3), Verdict.INCONCLUSIVE),
        (LARGER, Measured(-0.2, -0.3, -0.1, baselines=3), Verdict.NOT_REPRODUCED),
        (claim(None, None, judged=False), Measured(0.5, 0.4, 0.6, baselines=3), Verdict.VALUE_ONLY),
    ],
)
def test_verdicts(claim: Claim, measured: Measured, verdict: Verdict) -> None:
    assert judge(claim, measured) == verdict


def test_the_list_of_claims_is_complete_and_names_measures() -> None:
    names = [claim.name for claim in claims()]
    assert len(names) == len(set(names)) and len(names) > 60
    assert {claim.finding for claim in claims()} == set(across.TITLES)
    for each in claims():
        low, high = each.range
        assert low <= high and (each.reported or not each.judged), each.name
        assert each.judged == (each.accepted != (None, None)), each.name
    # no anchors: a referee reads one entry at a time
    assert "&" not in LIST.read_text(encoding="utf-8")


def test_the_interval_of_a_share_is_wilson_s() -> None:
    whole, few = proportion(3, 3, of="models"), proportion(8, 96, of="heads")
    assert (whole.value, whole.low, whole.high, whole.n) == pytest.approx(
        (1.0, 0.4385, 1.0, 3), abs=1e-4
    )
    assert (few.low, few.high) == pytest.approx((0.0428, 0.1559), abs=1e-4)


def test_a_model_that_cannot_translate_says_nothing_but_its_own_bleu(evidence: Evidence) -> None:
    """What can be judged of a model that translates has a reason, its BLEU, for one that does
    not."""
    tokenised = dict.fromkeys(with_ends("bleu_tokenised"), 4.0)
    known = replace(evidence, stands_for="wmt", scores=evidence.scores.assign(**tokenised))
    strong, weak = (
        judged([replace(known, scores=known.scores.assign(bleu=bleu))]) for bleu in (40.0, 4.0)
    )
    able = strong["verdict"] != Verdict.NOT_TESTABLE
    assert {
        "encoder_wmt",
        "positional",
        "gates_decided",
        "two_sets",
        "last_cross",
        "few_cross",
    } <= set(strong["claim"][able])
    own = weak["claim"] == "baseline_wmt"
    assert weak.loc[own, "verdict"].tolist() == [Verdict.IN_TOO_FEW]
    assert weak.loc[able & ~own, "reason"].str.contains("less than 5 BLEU").all()
    [first, *_] = notes(weak)  # on the page
    assert (
        first.startswith("Not testable on a: the baseline has less than 5 BLEU (")
        and "few_cross" in first
    )


def test_the_papers_own_numbers_are_in_the_accepted_ranges() -> None:
    ranges = {claim.name: claim for claim in claims()}
    reported = {
        "baseline_wmt": 29.6,
        "encoder_wmt": -0.15,
        "encoder_opensubtitles": -0.25,
        "all_wmt_14_31_30": 0.02,
    }
    reported |= {
        "all_opensubtitles_6_9_13": -0.13,
        "rare_words": 0.83,
    }
    reported |= {
        "single": 8 / 96,
        "last_cross": -13.56 / 36.05,
        "few_decoder": 30 / 36.05 - 1,
        "redundant_late": 0.4,
    }
    found = {
        name: judge(ranges[name], Measured(value, value, value, baselines=3))
        for name, value in reported.items()
    }
    assert set(found.values()) == {Verdict.REPRODUCED}
    # And with the numbers that the figures and tables show beside ours.
    for row in paper.TABLE1:
        claim = ranges[f"{row.relation}_{row.direction}"]
        assert Unit.POINTS.text(row.best - row.baseline) in claim.reported
    for row in paper.TABLE2:
        name = "wmt" if row.corpus == paper.WMT else "opensubtitles"
        assert (
            ranges[f"all_{name}_{row.encoder}_{row.decoder}_{row.cross}"].given["change"]
            == row.difference
        )
    for row in paper.FIGURE7:
        name = "wmt" if row.corpus == paper.WMT else "opensubtitles"
        given = ranges[f"encoder_{name}"].given
        assert (given["heads"], given["change"]) == (row.heads, -row.loss)


# The table of claims: verdicts follow from the tables of the experiment.


def verdicts(tables: Tables) -> dict[str, str]:
    return numbers(tables, {}).set_index("claim")["verdict"].to_dict()


def test_the_evidence_is_that_of_the_tables(holding, evidence: Evidence) -> None:
    found = judged([evidence_of(holding({"a": evidence.heads}))])
    pd.testing.assert_frame_equal(found, judged([evidence]))
    assert set(found["claim"]) == {
        claim.name for claim in claims() if "translation" in claim.judged_on
    }


def test_another_result_is_another_verdict(holding, evidence: Evidence, stage) -> None:
    given = holding({"a": evidence.heads})
    before = verdicts(given)
    assert (before["encoder_opensubtitles"], before["functions_kept"], before["single"]) == (
        "inconclusive",  # a model with 12% of the heads stands for 8%
        "inconclusive",  # one baseline has no interval
        "inconclusive",  # with so few heads, twice the paper's share is possible
    )
    assert before["encoder_wmt"] == "inconclusive"  # −0.92 [−1.32, −0.52] at 21%, −0.65 would do
    written = stage("claims", given).with_suffix(".md").read_text(encoding="utf-8")
    assert "−0.92 \\[−1.32, −0.52\\]" in written and "1,000 sentences" in written

    few = given.models["encoder_heads"] == 3  # 12% of the heads
    ends_of = [
        "counterpart_difference",
        "counterpart_difference_low",
        "counterpart_difference_high",
    ]
    for ends, verdict in (((-0.3, -0.6, 0.0), "partly"), ((-3.0, -3.5, -2.5), IN_TOO_FEW)):
        given.models.loc[few, ends_of] = ends
        after = verdicts(given)
        # Claims that follow from other rows keep their verdicts.
        changed = {name: after[name] for name in after if after[name] != before[name]}
        assert changed == dict.fromkeys(("encoder_wmt", "encoder_opensubtitles"), verdict)
    assert (
        verdicts(given._replace(ablation=given.ablation.assign(p_value=0.001)))["single"]
        == IN_TOO_FEW
    )
    # Without pruning, claims about the removal of heads are judged as before.
    alone = verdicts(given._replace(models=given.models[given.models["kind"] == "baseline"]))
    assert alone["single"] == before["single"] and alone["encoder_wmt"] == "not testable"


def test_corpora_may_name_their_relations_differently(holding, evidence: Evidence) -> None:
    """Columns of another corpus do not count for this one, nor do those whose names begin as its
    own."""
    names = {"a": "obj", "b": "dobj", "c": "obj_co"}
    heads = {
        title: evidence.heads.rename(columns=partial(re.sub, "^obj_", f"{name}_"))
        for title, name in names.items()
    }
    given = holding(heads)
    own = given.relations["corpus"].map(names)
    given.relations["relation"] = given.relations["relation"].where(
        given.relations["relation"] != "obj", own
    )
    for title, columns in heads.items():
        assert set(given.of(title).heads.filter(like="obj_")) == set(columns.filter(like="obj_"))
    rows = numbers(given, {}).set_index(["claim", "corpus"])
    first, second = (rows.loc[("obj_head_to_dependent", corpus), "value"] for corpus in ("a", "b"))
    assert first == second


def test_a_corpus_that_is_not_pruned_has_claims_on_heads_only(evidence: Evidence) -> None:
    baseline = evidence.scores[evidence.scores["kind"] == "baseline"]
    rows = judged([evidence, replace(evidence, title="b", pruned=False, scores=baseline)])
    on_heads = {claim.name for claim in claims() if not claim.of_pruning}
    assert set(rows.loc[rows["corpus"] == "b", "claim"]) == on_heads
    # Readers see those that can be judged; the numbers have the others too.
    assert len(shown(rows)) == (rows["verdict"] != "not testable").sum() < len(rows)
    assert len(shown(rows[rows["verdict"] == "not testable"])) == 1
