"""Claims: verdicts from values and intervals, and the table."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import nan
from pathlib import Path

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
from specialized_heads.stage import UserError


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


@pytest.fixture
def tables(make, evidence: Evidence) -> Callable[..., Tables]:
    """`tables(heads={...})`: those that hold the evidence, for each corpus that has heads."""

    def of(heads: dict[str, pd.DataFrame]) -> Tables:
        ablation = pd.concat(
            [evidence.single, evidence.second, evidence.systematic], ignore_index=True
        )
        known = {"models": evidence.scores, "ablation": ablation, "relations": make.relations()}
        return make.tables(
            heads=heads, **{name: dict.fromkeys(heads, frame) for name, frame in known.items()}
        )

    return of


def verdicts(tables: Tables) -> dict[str, str]:
    return numbers(tables, {}).set_index("claim")["verdict"].to_dict()


def test_the_evidence_is_that_of_the_tables(tables, evidence: Evidence) -> None:
    found = judged([evidence_of(tables({"a": evidence.heads}))])
    pd.testing.assert_frame_equal(found, judged([evidence]))
    assert set(found["claim"]) == {
        claim.name for claim in claims() if "translation" in claim.judged_on
    }


def test_another_result_is_another_verdict(tables, evidence: Evidence, stage) -> None:
    given = tables({"a": evidence.heads})
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


def test_corpora_may_name_their_relations_differently(tables, evidence: Evidence) -> None:
    """Columns of another corpus do not count for this one, nor do those whose names begin as its
    own."""
    names = {"a": "obj", "b": "dobj", "c": "obj_co"}
    heads = {
        title: evidence.heads.rename(columns=partial(re.sub, "^obj_", f"{name}_"))
        for title, name in names.items()
    }
    given = tables(heads)
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


@pytest.fixture
def kept(tables, evidence: Evidence, tmp_path: Path):
    """`kept("a", seeds=2, updates=140)`: the tables of an experiment of this name."""

    def write(name: str, *, seeds: int = 1, updates: int = 140) -> Path:
        given = tables({"EN-FR": evidence.heads})
        numbers = range(1, seeds + 1)
        frames = {
            key: [frame.assign(seed=seed) for seed in numbers]
            for key, frame in given._asdict().items()
        }
        for seed, heads in zip(numbers, frames["heads"]):  # so that they are different baselines
            heads["confidence"] -= 1e-6 * seed
        frames["models"] = [frame.assign(bleu=30.0) for frame in frames["models"]]
        folder = tmp_path / name / "data"
        folder.mkdir(parents=True)
        for key, parts in frames.items():
            frame = pd.concat(parts, ignore_index=True).assign(experiment=name, title="EN-FR")
            if key == "models":
                frame["updates"] = frame["updates"].where(frame["kind"] != "pruned", updates)
            frame.to_parquet(folder / f"{key}.parquet")
        return folder

    return write


def test_enough_baselines_count_before_updates(kept) -> None:
    folders = [
        kept("short", updates=100),
        kept("long", updates=500),
        kept("seeds", seeds=3, updates=50),
    ]
    for given, best in ((folders[:2], "long"), (folders[1::-1], "long"), (folders, "seeds")):
        rows = across.ranked(across.measured(given))
        first = rows.drop_duplicates("claim").set_index("claim")["experiment"]
        assert first["specialised_survive"] == first["gates_decided"] == first["cross_high"] == best
        # Every measurement is listed, one of each corpus as the best.
        same = rows[rows["claim"] == "specialised_survive"]
        assert len(same) == len(given) and same["best"].tolist() == [
            True,
            *[False] * (len(given) - 1),
        ]
    assert set(rows["claim"]) == {
        claim.name for claim in claims() if "translation" in claim.judged_on
    }


def test_the_same_baseline_with_several_seeds_is_one(kept, caplog) -> None:
    folder = kept("imported", seeds=3)
    rows = across.measured([folder]).set_index("claim")
    assert rows.loc["relevance_confidence", "baselines"] == 3
    heads = pd.read_parquet(folder / "heads.parquet")
    heads["confidence"] += 1e-6 * (heads["seed"] - 1)
    heads.round({"confidence": 9}).to_parquet(folder / "heads.parquet")
    alike = across.measured([folder]).set_index("claim")
    assert alike.loc["relevance_confidence", "baselines"] == 1
    assert "seeds without a baseline of their own, which the claims leave out: 2, 3" in caplog.text


def test_an_imported_baseline_of_two_experiments_is_one(kept, tmp_path: Path) -> None:
    """It has no log, hence no development loss."""
    folders = [kept("a"), kept("b")]
    for folder in folders:
        models = pd.read_parquet(folder / "models.parquet")
        models.assign(dev_loss=nan).to_parquet(folder / "models.parquet")
    heads = pd.read_parquet(folders[0] / "heads.parquet")
    heads.to_parquet(folders[1] / "heads.parquet")
    rows = across.measured(folders)
    assert "all" not in set(rows["experiment"])  # one baseline is not pooled with itself
    page = across.page(across.ranked(rows), output=tmp_path / "evidence", notes={})
    assert "seed 1 of a |" in page
    heads.assign(confidence=heads["confidence"] / 2).to_parquet(folders[1] / "heads.parquet")
    pooled = across.measured(folders).query("experiment == 'all'")
    assert len(pooled) and set(pooled["baselines"]) == {2}


def test_of_two_tasks_ranked_alike_the_least_favourable_counts(kept) -> None:
    rows = across.measured([kept("a")])
    tasks = [rows.assign(corpus=name) for name in ("one", "two", "three")]
    worst = rows["verdict"].eq("partly")
    tasks[1]["verdict"] = rows["verdict"].mask(worst, "not reproduced")
    tasks[2]["verdict"] = rows["verdict"].mask(worst, "inconclusive")
    for order in (tasks, tasks[::-1]):
        verdicts = across.verdicts(across.ranked(pd.concat(order, ignore_index=True)))
        assert worst.any() and set(verdicts[rows.loc[worst, "claim"]]) == {"not reproduced"}


def test_a_confounded_comparison_gives_way_to_one_of_equal_schedules(kept) -> None:
    """Even if it has three baselines and the other one."""
    unequal, equal = kept("unequal", seeds=3), kept("equal")
    for folder, kind, updates in ((unequal, "scratch", 5000), (equal, "continued", 1040)):
        models = pd.read_parquet(folder / "models.parquet")
        pruned = models[
            (models["kind"] == "pruned") & (models["scope"] == "all") & (models["lam"] > 0)
        ]
        pd.concat([models, pruned.assign(kind=kind, updates=updates)]).to_parquet(
            folder / "models.parquet"
        )
    rows = across.ranked(across.measured([unequal, equal])).query("claim == 'scratch'")
    assert dict(zip(rows["experiment"], rows["verdict"]))["unequal"] == "confounded"
    assert rows["experiment"].iloc[0] == "equal" and rows["verdict"].iloc[0] != "confounded"
    alone = across.ranked(across.measured([kept("one"), equal])).query("claim == 'scratch'")
    assert alone["experiment"].iloc[0] == "equal" and alone["verdict"].iloc[0] != "confounded"


def test_that_something_exists_is_judged_on_each_baseline_once() -> None:
    """Three baselines, one of them again in another experiment, and two of another corpus."""
    rows = pd.DataFrame(
        [
            ("long", "de", 1.0, 3, (1.29, 1.28, 1.27)),
            ("default", "de", 1.0, 1, (1.28,)),
            ("other", "fr", 0.5, 2, (1.29, 0.96)),  # equal losses on another corpus
        ],
        columns=["experiment", "corpus", "value", "n", "same"],
    )
    known = {"claim": "positional", "of": "baselines", "unit": "share", "verdict": "", "note": ""}
    known |= {"low": nan, "high": nan, "baselines": 1}
    [row] = across._pooled(rows.assign(**known)).to_dict("records")
    assert (row["value"], row["n"], row["baselines"]) == (pytest.approx(4 / 5), 5, 5)
    assert row["note"] == "each baseline once: long, other"
    assert row["verdict"] == Verdict.INCONCLUSIVE  # 4 of 5: 38% to 96%
    assert across._pooled(rows[:2].assign(**known)).empty  # one experiment has them all


def test_the_page_of_evidence_has_each_claim_with_a_link_and_its_note(kept, tmp_path: Path) -> None:
    notes, output = tmp_path / "notes.csv", tmp_path / "docs" / "evidence"
    notes.write_text("claim,note\nbaseline_wmt,config/paper.yaml would test it\n", encoding="utf-8")
    counts = across.write([kept("a")], output=output, notes=notes)
    page = (tmp_path / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert "| [a](../a/claims.md) | EN-FR | 1 | 900 |  |" in page
    assert "config/paper.yaml would test it. a: not testable, scores can only" in page
    rows, lines = pd.read_csv(f"{output}.csv"), page.splitlines()
    for name in rows["claim"]:
        assert (
            sum(line.startswith(f"| {name.replace('_', chr(92) + '_')}: ") for line in lines) == 1
        )
        assert (
            sum(line.startswith(f"- **{name.replace('_', chr(92) + '_')}.** ") for line in lines)
            == 1
        )
    assert "not testable" in counts
    # A claim's row has the values of all corpora.
    other = across.ranked(
        pd.concat(
            [across.measured([tmp_path / "a" / "data"]).assign(corpus=name) for name in ("b", "c")]
        )
    )
    assert "| claim | paper | accepted | b | c | verdict |" in across.page(
        other, output=output, notes={}
    )
    notes.write_text("claim,note\nbaseline_wtm,typing error\n", encoding="utf-8")
    with pytest.raises(UserError, match="no claim baseline_wtm"):
        across.write([kept("b")], output=output, notes=notes)
    for content in ("", "claim;note\na;b\n", b"claim,note\n\xff,b\n"):
        notes.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(
            UserError, match="--notes takes CSV in UTF-8 with the columns claim and note"
        ):
            across.notes_of(notes)
    with pytest.raises(UserError, match="no models.parquet"):
        across.measured([tmp_path])


def test_evidence_is_ranked_as_the_rule_says() -> None:
    """Each row is worse than the one before it by one criterion, and no worse by those after it."""
    rows = [
        ("enough baselines", "partly", 3, False, 1),
        ("equally deep", "partly", 1, True, 1),
        ("more baselines", "partly", 2, False, 1),
        ("more updates", "partly", 1, False, 9),
        ("more claims", "partly", 1, False, 1),
        ("fewer claims", "partly", 1, False, 1),
        ("confounded", "confounded", 4, True, 99),
        ("not testable", "not testable", nan, True, 999),
    ]
    names = ["folder", "verdict", "baselines", "alike", "updates"]
    table = pd.DataFrame(rows, columns=names).assign(claim="scratch", corpus="a")
    other = table[table["folder"] == "more claims"].assign(claim="positional")
    found = across.ranked(pd.concat([table[::-1], other], ignore_index=True))
    assert found.loc[found["claim"] == "scratch", "folder"].tolist() == [row[0] for row in rows]
