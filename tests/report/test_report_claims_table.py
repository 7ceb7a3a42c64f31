"""The table of claims: verdicts follow from the tables of the experiment."""

import re
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from specialized_heads.report.claims import michel, table, voita
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.data import Tables


@pytest.fixture
def tables(make, evidence: Evidence) -> Callable[..., Tables]:
    """`tables(heads={...})`: those that hold the evidence, for each corpus that has heads."""

    def of(heads: dict[str, pd.DataFrame]) -> Tables:
        ablation = pd.concat([evidence.single, evidence.second, evidence.systematic], ignore_index=True)
        known = {"models": evidence.scores, "ablation": ablation, "relations": make.relations()}
        return make.tables(heads=heads, **{name: dict.fromkeys(heads, frame) for name, frame in known.items()})

    return of


def verdicts(tables: Tables) -> dict[str, str]:
    return table.numbers(tables, {}).set_index("claim")["verdict"].to_dict()


def test_the_evidence_is_that_of_the_tables(tables, evidence: Evidence) -> None:
    found = table.judged([table.evidence_of(tables({"a": evidence.heads}))])
    pd.testing.assert_frame_equal(found, table.judged([evidence]))
    assert len(found) == len([*voita.claims(), *michel.claims()])


def test_another_result_is_another_verdict(tables, evidence: Evidence, stage) -> None:
    given = tables({"a": evidence.heads})
    before = verdicts(given)
    assert (before["encoder_opensubtitles"], before["functions_kept"], before["single"]) == (
        "not testable",  # 12% of the heads are left, not 8%
        "not testable",  # 12% or half of them, not 35%
        "reproduced",
    )
    assert before["encoder_wmt"] == "inconclusive"  # −0.82 [−1.32, −0.32] at 21%, −0.65 would do
    written = stage("claims.table", given).with_suffix(".md").read_text(encoding="utf-8")
    assert "−0.82 \\[−1.32, −0.32\\]" in written and "1,000 sentences" in written

    few = given.models["encoder_heads"] == 3  # 12% of the heads
    for ends, verdict in (((-0.3, -0.8, 0.2), "reproduced"), ((-3.0, -3.5, -2.5), "not reproduced")):
        given.models.loc[few, ["difference", "difference_low", "difference_high"]] = ends
        after = verdicts(given)
        assert after["encoder_wmt"] == verdict
        # Claims that follow from other rows keep their verdicts.
        assert {name for name in after if after[name] != before[name]} == {"encoder_wmt"}
    assert verdicts(given._replace(ablation=given.ablation.assign(p_value=0.001)))["single"] == "not reproduced"


def test_corpora_may_name_their_relations_differently(tables, evidence: Evidence) -> None:
    """Columns of another corpus do not count for this one."""
    other = evidence.heads.rename(columns=lambda name: re.sub("^obj_", "dobj_", name))
    given = tables({"a": evidence.heads, "b": other})
    own = given.relations["corpus"] == "b"
    given.relations["relation"] = given.relations["relation"].mask(own & given.relations["relation"].eq("obj"), "dobj")
    rows = table.numbers(given, {}).set_index(["claim", "corpus"])
    first, second = (rows.loc[("obj_head_to_dependent", corpus), "value"] for corpus in ("a", "b"))
    assert first == second


def test_a_corpus_that_is_not_pruned_has_claims_on_heads_only(evidence: Evidence) -> None:
    baseline = evidence.scores[evidence.scores["kind"] == "baseline"]
    rows = table.judged([evidence, replace(evidence, title="b", pruned=False, scores=baseline)])
    on_heads = {claim.name for claim in voita.claims() if not claim.of_pruning}
    assert set(rows.loc[rows["corpus"] == "b", "claim"]) == on_heads
    shown = table.shown(rows)
    # A claim that no corpus can test for the same reason has one row.
    assert (shown["corpus"] == "any").sum() == shown.loc[shown["corpus"] == "any", "claim"].nunique() > 0
