"""Relations: positions of dependents (figure 3), dependency scores (figure 4, table 1)."""

import pandas as pd
import pytest

from specialized_heads.report.data import Tables
from specialized_heads.report.voita import figure3, paper, table1
from specialized_heads.report.voita.dependency import accuracies


@pytest.fixture
def known(make):
    """`known(heads, relations)`: the tables of one corpus."""

    def of(heads: pd.DataFrame | None = None, relations: pd.DataFrame | None = None) -> Tables:
        given = {"heads": make.heads() if heads is None else heads}
        given["relations"] = make.relations() if relations is None else relations
        return make.tables(**{name: {"EN-FR": table} for name, table in given.items()})

    return of


def ours(tables: Tables) -> pd.DataFrame:
    return accuracies(tables).query("not reported")


def test_far_positions_are_counted_in_the_outermost_bars(known) -> None:
    tables = known()
    nsubj = tables.relations.iloc[0]
    counts = dict(zip(nsubj["offsets"], nsubj["counts"], strict=True))
    bars = figure3.numbers(tables)
    shown = bars[bars["relation"] == "nsubj"].set_index("position")
    assert shown.loc[-1, "count"] == counts[-1]
    assert shown.loc[-5, "count"] == sum(counts[position] for position in range(-9, -4))
    assert shown.loc[5, "count"] == sum(counts[position] for position in range(5, 10))
    assert shown["share"].sum() == pytest.approx(1)
    assert shown.index[shown["baseline"]].tolist() == [nsubj["baseline_offset"]]
    beyond = tables._replace(relations=tables.relations.assign(baseline_offset=7))
    assert not figure3.numbers(beyond)["baseline"].any()


def test_a_relation_without_arcs_has_no_shares(known, make) -> None:
    bars = figure3.numbers(known(relations=make.relations(empty=("amod",))))
    assert bars.loc[bars["relation"] == "amod", "share"].isna().all()
    assert "amod, n→a (n = 0)" in make.texts(figure3.draw(bars))


def test_the_best_head_is_the_most_accurate_and_labels_are_taken_as_they_are(known, make) -> None:
    heads = make.heads()
    heads["relations"] = [["obj_dependent_to_head"] if kind == "encoder" else None for kind in heads["type"]]
    scores = ours(known(heads))
    assert len(scores) == 24 * 8
    for (relation, direction), group in scores.groupby(["relation", "direction"]):
        best = group[group["best"]].squeeze()
        assert best["accuracy"] == group["accuracy"].max()
        assert best["low"] == pytest.approx(best["accuracy"] - 0.03)
        # Whether it beats the baseline is not asked again here.
        assert (group["syntactic"] == (f"{relation}_{direction}" == "obj_dependent_to_head")).all()


def test_arcs_and_baselines_are_those_of_the_sentences_that_heads_were_scored_on(known, make) -> None:
    tables = known()
    assert not set(tables.relations["arcs"]) & {301, 302, 303, 304}
    scores = ours(tables)
    assert scores.groupby("relation", sort=False)["arcs"].unique().map(list).tolist() == [[301], [302], [303], [304]]
    assert (scores["baseline"] == 0.4).all()
    none = known(make.heads().query("type != 'encoder'"))  # nothing was scored: those of all parsed sentences
    for column, of_parses in {"arcs": "arcs", "baseline": "baseline_accuracy"}.items():
        assert ours(none)[column].tolist() == pytest.approx(none.relations[of_parses].tolist())


def test_without_arcs_or_heads_the_accuracy_is_missing_and_not_zero(make) -> None:
    # The arcs of obj are all in sentences that could not be aligned.
    heads = {"EN-FR": make.heads(empty=("obj",)), "EN-XX": make.heads().iloc[:0]}
    rows = table1.numbers(make.tables(heads=heads, relations=dict.fromkeys(heads, make.relations())))
    no_arcs, no_heads = rows[(rows["corpus"] == "EN-FR") & (rows["relation"] == "obj")], rows[rows["corpus"] == "EN-XX"]
    assert len(no_arcs) == 2 and no_arcs[["accuracy", "baseline"]].isna().all(axis=None)
    assert len(no_heads) == 8 and no_heads["accuracy"].isna().all() and no_heads["baseline"].notna().all()
    row = table1.shown(no_arcs).iloc[0]
    assert row[["accuracy", "baseline", "best head", "arcs"]].tolist() == ["–", "–", "", "0"]


def test_table1_puts_the_paper_beside_ours(known, make, stage) -> None:
    names = ("dobj", "det")  # obj under a Stanford name, and a relation that the paper does not have
    stem = stage("voita.table1", known(make.heads(relations=names), make.relations(relations=names)))
    rows = pd.read_csv(stem.with_suffix(".csv"))
    assert rows["corpus"].tolist() == ["EN-FR", paper.WMT, paper.SUBTITLES] * 2 + ["EN-FR"] * 2
    wmt = rows[rows["corpus"] == paper.WMT]
    assert wmt[["direction", "accuracy", "baseline"]].values.tolist() == [
        ["head_to_dependent", 0.78, 0.41],
        ["dependent_to_head", 0.73, 0.41],
    ]
    table = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert f"| dobj | v→o | {paper.WMT} |  |  | 78 | 41 |  |" in table and "| det | head→dep. | EN-FR |" in table
