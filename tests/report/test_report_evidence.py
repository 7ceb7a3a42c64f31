"""Evidence over several experiments: which counts, baselines that are the same, and the page."""

from math import nan
from pathlib import Path

import pandas as pd
import pytest

from specialized_heads.report.claims import across
from specialized_heads.report.claims.claim import Verdict, claims
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.stage import UserError


@pytest.fixture
def kept(holding, evidence: Evidence, tmp_path: Path):
    """`kept("a", seeds=2, updates=140)`: the tables of an experiment of this name."""

    def write(name: str, *, seeds: int = 1, updates: int = 140) -> Path:
        given = holding({"EN-FR": evidence.heads})
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
