"""Stage claims: verdicts follow from the files."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from specialized_heads.report.claims import michel, table, voita
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.stage import UserError


@pytest.fixture
def files(tmp_path: Path, evidence: Evidence) -> dict[str, list[Path]]:
    """The evidence as files, in the order of `settings`."""
    found: dict[str, list[Path]] = {}

    def write(name: str, frame: pd.DataFrame, label: str = "") -> None:
        path = tmp_path / f"{name}{label}.parquet"
        frame.to_parquet(path)
        found.setdefault(name, []).append(path)

    write("scores", evidence.scores)
    for number, (_, same) in enumerate(evidence.heads.groupby(["scope", "lam"], dropna=False)):
        write("heads", same.drop(columns=["kind", "scope", "lam", "asked", "seed"]), str(number))
    write("single", evidence.single.drop(columns=["seed", "moment"]))
    write("second", evidence.second.drop(columns=["seed", "moment"]))
    ends = evidence.systematic[evidence.systematic["moment"].isna()]
    write("systematic", ends.drop(columns=["seed", "moment"]))
    return found


@pytest.fixture
def settings() -> dict:
    run = {"corpus": "a", "model": "baseline", "seed": 1}
    targets = ["all_lambda0.01", "all_lambda0.03", "encoder_lambda0.01", "encoder_lambda0.02"]
    pruned = [run | {"model": f"pruned/{target}"} for target in targets]
    corpus = {"title": "a", "stands_for": "", "pruned": True, "least_arcs": 30}
    models = {"models": [run, *pruned], "ablated": [run], "moments": [run]}
    return {"titles": ["a"], "corpora": [corpus]} | models


def test_another_result_is_another_verdict(stage, files: dict[str, list[Path]], settings: dict) -> None:
    def verdicts() -> dict[str, str]:
        rows = pd.read_csv(stage("table", settings, **files).with_suffix(".csv")).set_index("claim")
        assert len(rows) == len([*voita.claims(), *michel.claims()])
        return rows["verdict"].to_dict()

    before = verdicts()
    assert (before["encoder_opensubtitles"], before["functions_kept"], before["single"]) == (
        "not testable",  # 12% of the heads are left, not 8%
        "not testable",  # 12% or half of them, not 35%
        "reproduced",
    )
    assert before["encoder_wmt"] == "partly"  # −0.82 [−1.32, −0.32] at 21%, −0.65 would do
    written = stage("table", settings, **files).with_suffix(".md").read_text(encoding="utf-8")
    assert "−0.82 \\[−1.32, −0.32\\]" in written and "1,000 sentences" in written

    changed = pd.read_parquet(files["scores"][0])
    few = changed["encoder_total"] == 3  # 12% of the heads
    changed.loc[few, ["difference", "difference_low", "difference_high"]] = [-0.3, -0.8, 0.2]
    changed.to_parquet(files["scores"][0])
    assert verdicts()["encoder_wmt"] == "reproduced"
    changed.loc[few, ["difference", "difference_low", "difference_high"]] = [-3.0, -3.5, -2.5]
    changed.to_parquet(files["scores"][0])
    after = verdicts()
    assert after["encoder_wmt"] == "not reproduced"
    # Claims that follow from other files keep their verdicts.
    assert {name for name in after if after[name] != before[name]} == {"encoder_wmt"}

    single = pd.read_parquet(files["single"][0]).assign(p_value=0.001)
    single.to_parquet(files["single"][0])
    assert verdicts()["single"] == "not reproduced"


def test_corpora_may_name_their_relations_differently(stage, files: dict[str, list[Path]], settings: dict) -> None:
    """Columns of another corpus do not count for this one."""
    other = [path.with_name(f"other_{path.name}") for path in files["heads"]]
    for path, copy in zip(files["heads"], other, strict=True):
        pd.read_parquet(path).rename(columns=lambda name: re.sub("^obj_", "dobj_", name)).to_parquet(copy)
    described = settings | {
        "titles": ["a", "b"],
        "corpora": [settings["corpora"][0], settings["corpora"][0] | {"title": "b"}],
        "models": settings["models"] + [head | {"corpus": "b"} for head in settings["models"]],
    }
    both = files | {"scores": files["scores"] * 2, "heads": files["heads"] + other}
    rows = pd.read_csv(stage("table", described, **both).with_suffix(".csv")).set_index(["claim", "corpus"])
    first, second = (rows.loc[("obj_head_to_dependent", corpus), "value"] for corpus in ("a", "b"))
    assert first == second


def test_a_corpus_that_is_not_pruned_has_claims_on_heads_only(evidence: Evidence) -> None:
    baseline = evidence.scores[evidence.scores["kind"] == "baseline"]
    other = replace(evidence, title="b", pruned=False, scores=baseline)
    rows = table.judged([evidence, other])
    on_heads = {claim.name for claim in voita.claims() if not claim.of_pruning}
    assert set(rows.loc[rows["corpus"] == "b", "claim"]) == on_heads
    text = table.caption(rows)
    assert "a: " in text and "b: " in text and "not testable" in text
    shown = table.shown(rows)
    # A claim that no corpus can test for the same reason has one row.
    assert (shown["corpus"] == "any").sum() == shown.loc[shown["corpus"] == "any", "claim"].nunique() > 0


def test_a_missing_file_or_column_is_an_error(stage, files: dict[str, list[Path]], settings: dict) -> None:
    with pytest.raises(UserError, match="settings: models: 5 models for 2 files"):
        stage("table", settings, **files | {"heads": files["heads"][:2]})
    frame = pd.read_parquet(files["scores"][0]).drop(columns="difference_low")
    frame.to_parquet(files["scores"][0])
    with pytest.raises(UserError, match="difference_low is missing"):
        stage("table", settings, **files)
