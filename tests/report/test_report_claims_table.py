"""The table of claims: verdicts follow from the tables of the experiment."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from specialized_heads.report.claims import across, michel, table, voita
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.data import Tables
from specialized_heads.stage import UserError


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
    # Readers see those that can be judged; the numbers have the others too.
    assert len(table.shown(rows)) == (rows["verdict"] != "not testable").sum() < len(rows)
    assert len(table.shown(rows[rows["verdict"] == "not testable"])) == 1


@pytest.fixture
def kept(tables, evidence: Evidence, tmp_path: Path):
    """`kept("a", seeds=2, updates=140)`: the tables of an experiment of this name."""

    def write(name: str, *, seeds: int = 1, updates: int = 140) -> Path:
        given = tables({"EN-FR": evidence.heads})
        numbers = range(1, seeds + 1)
        frames = {key: [frame.assign(seed=seed) for seed in numbers] for key, frame in given._asdict().items()}
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


def test_the_experiment_with_most_seeds_counts_then_that_with_most_updates(kept) -> None:
    folders = [kept("short", updates=100), kept("long", updates=500), kept("seeds", seeds=2, updates=50)]
    for given, expected in ((folders[:2], "long"), (folders[1::-1], "long"), (folders, "seeds")):
        rows = across.chosen(across.judged(given))
        judged = rows[rows["verdict"] != "not testable"].set_index("claim")["experiment"]
        assert judged["specialised_survive"] == judged["gates_decided"] == expected
        # All baselines had as many updates: the first that is given counts, unless another has more seeds.
        assert judged["positional"] == ("seeds" if len(given) > 2 else given[0].parent.name)
    every = {claim.name for claims in table.PAPERS.values() for claim in claims()}
    assert set(rows["claim"]) == every and rows["claim"].is_unique  # one corpus
    assert set(rows.loc[rows["claim"].str.startswith("bert_"), "reason"]) == {
        "no experiment has a classification model"
    }


def test_seeds_are_those_pruned_with_the_scope_of_the_claim(kept) -> None:
    folder = kept("two", seeds=2)
    models = pd.read_parquet(folder / "models.parquet")
    models[(models["seed"] == 1) | (models["scope"] != "all")].to_parquet(folder / "models.parquet")
    seeds = across.judged([folder]).set_index("claim")["seeds"]
    assert seeds[["specialised_survive", "gates_decided", "positional"]].tolist() == [2, 2, 2]
    assert seeds[["cross_high", "all_wmt_14_31_30"]].tolist() == [1, 1]


def test_the_page_of_evidence_has_each_claim_with_a_link_and_its_note(kept, tmp_path: Path) -> None:
    notes, output = tmp_path / "notes.csv", tmp_path / "docs" / "evidence"
    notes.write_text("claim,note\nbaseline_wmt,config/paper.yaml would test it\n", encoding="utf-8")
    counts = across.write([kept("a")], output=output, notes=notes)
    page = (tmp_path / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert "[a](../a/claims.md), 1 seed, 140 updates" in page and "config/paper.yaml would test it; " in page
    assert sum(line.startswith("| ") for line in page.splitlines()) == 2 * 2 + len(pd.read_csv(f"{output}.csv"))
    assert "not testable" in counts
    notes.write_text("claim,note\nbaseline_wtm,typing error\n", encoding="utf-8")
    with pytest.raises(UserError, match="no claim baseline_wtm"):
        across.write([kept("b")], output=output, notes=notes)
    with pytest.raises(UserError, match="no models.parquet"):
        across.judged([tmp_path])
