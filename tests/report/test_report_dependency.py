"""Relations: positions of dependents (figure 3), dependency scores (figure 4, table 1)."""

import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from specialized_heads.report.voita import figure3, figure4, paper, table1
from specialized_heads.report.voita.dependency import accuracies
from specialized_heads.stage import UserError


def test_far_positions_are_counted_in_the_outermost_bars(make):
    table = make.relations()
    bars = figure3.numbers({"EN-FR": table})
    nsubj = table[(table["relation"] == "nsubj") & (table["direction"] == "head_to_dependent")].iloc[0]
    counts = dict(zip(nsubj["offsets"], nsubj["counts"], strict=True))
    shown = bars[bars["relation"] == "nsubj"].set_index("position")
    assert shown.loc[-1, "count"] == counts[-1]
    assert shown.loc[-5, "count"] == sum(counts[position] for position in range(-9, -4))
    assert shown.loc[5, "count"] == sum(counts[position] for position in range(5, 10))
    assert shown["share"].sum() == pytest.approx(1)
    assert shown.index[shown["baseline"]].tolist() == [nsubj["baseline_offset"]]


def test_a_baseline_beyond_the_last_bar_is_not_marked(make):
    table = make.relations(relations=("obj",))
    table["baseline_offset"] = 7
    assert not figure3.numbers({"EN-FR": table})["baseline"].any()


def test_a_relation_without_arcs_has_no_shares(stage, write, make):
    table = write("relations.parquet", make.relations(empty=("amod",)))
    stem = stage("figure3", {"titles": ["EN-FR"]}, relations=[table])
    bars = pd.read_csv(stem.with_suffix(".csv"))
    assert bars.loc[bars["relation"] == "amod", "share"].isna().all()
    written = make.texts(figure3.draw(figure3.numbers({"EN-FR": make.relations(empty=("amod",))})))
    assert "amod, n→a (n = 0)" in written and "no arcs" in written


def test_the_best_head_is_the_most_accurate_and_labels_are_taken_as_they_are(make):
    heads = make.heads()
    heads["relations"] = [["obj_dependent_to_head"] if kind == "encoder" else None for kind in heads["type"]]
    scores = accuracies({"EN-FR": heads}, {"EN-FR": make.relations()})
    ours = scores[~scores["reported"]]
    assert len(ours) == 24 * 8
    for (relation, direction), group in ours.groupby(["relation", "direction"]):
        best = group[group["best"]].squeeze()
        assert best["accuracy"] == group["accuracy"].max()
        assert best["low"] == pytest.approx(best["accuracy"] - 0.03)
        # Whether it beats the baseline is not asked again here.
        assert (group["syntactic"] == (f"{relation}_{direction}" == "obj_dependent_to_head")).all()


def test_arcs_and_baselines_are_those_of_the_sentences_that_heads_were_scored_on(make):
    relations = make.relations()
    assert not set(relations["arcs"]) & {301, 302, 303, 304} and 0.4 not in set(relations["baseline_accuracy"])
    ours = accuracies({"EN-FR": make.heads()}, {"EN-FR": relations}).query("not reported")
    assert ours.groupby("relation", sort=False)["arcs"].unique().map(list).tolist() == [[301], [302], [303], [304]]
    assert (ours["baseline"] == 0.4).all()
    none = make.heads().query("type != 'encoder'")  # nothing was scored: those of all parsed sentences
    ours = accuracies({"EN-FR": none}, {"EN-FR": relations}).query("not reported")
    assert ours["arcs"].tolist() == relations["arcs"].tolist()
    assert ours["baseline"].tolist() == pytest.approx(relations["baseline_accuracy"].tolist())


def test_without_arcs_or_heads_the_accuracy_is_missing_and_not_zero(make):
    # The arcs of obj are all in sentences that could not be aligned.
    heads = {"EN-FR": make.heads(empty=("obj",)), "EN-XX": make.heads().iloc[:0]}
    relations = {"EN-FR": make.relations(), "EN-XX": make.relations()}
    scores = accuracies(heads, relations)
    no_arcs = scores[(scores["corpus"] == "EN-FR") & (scores["relation"] == "obj")]
    assert len(no_arcs) == 2 and no_arcs[["accuracy", "baseline"]].isna().all(axis=None)
    no_heads = scores[scores["corpus"] == "EN-XX"]
    assert no_heads["accuracy"].isna().all() and no_heads["baseline"].notna().all()
    assert make.texts(figure4.draw(scores)).count("none") == 2 + 8
    shown = table1.shown(table1.numbers(heads, relations))
    row = shown[(shown["corpus"] == "EN-FR") & (shown["relation"] == "obj")].iloc[0]
    assert (row["accuracy"], row["baseline"], row["best head"], row["arcs"]) == ("–", "–", "", "0")


def test_figure4_places_every_score(make):
    scores = accuracies({"EN-FR": make.heads(2, 4)}, {"EN-FR": make.relations()})
    axes = figure4.draw(scores).axes[0]
    dots = sum(len(each.get_offsets()) for each in axes.collections if isinstance(each, PathCollection))
    best = [line for line in axes.lines if line.get_marker() in ("o", "*", "X")]
    assert dots == 8 * 7  # every head of each of eight groups but the best one
    assert sorted(line.get_ydata()[0] for line in best) == sorted(scores.loc[scores["best"], "accuracy"])


def test_relations_that_the_paper_does_not_have_stand_alone(make):
    relations = ("nsubj", "det")
    heads, table = make.heads(relations=relations), make.relations(relations=relations)
    rows = table1.numbers({"EN-FR": heads}, {"EN-FR": table})
    assert rows[rows["relation"] == "det"]["corpus"].unique().tolist() == ["EN-FR"]
    assert set(rows[rows["relation"] == "nsubj"]["corpus"]) == {"EN-FR", paper.WMT, paper.SUBTITLES}
    assert table1.shown(rows)["direction"].tolist()[-2:] == ["head→dep.", "dep.→head"]


def test_the_paper_s_rows_stand_beside_ours_under_a_stanford_name(make):
    heads, table = make.heads(relations=("dobj",)), make.relations(relations=("dobj",))
    rows = table1.numbers({"EN-FR": heads}, {"EN-FR": table})
    assert rows["relation"].unique().tolist() == ["dobj"]
    assert rows.loc[rows["corpus"] == paper.WMT, "accuracy"].tolist() == [0.78, 0.73]
    assert set(table1.shown(rows)["direction"]) == {"v→o", "o→v"}


def test_a_relation_that_the_heads_lack_is_an_error(make):
    with pytest.raises(UserError, match="EN-FR: the heads file has no column det_head_to_dependent"):
        accuracies({"EN-FR": make.heads()}, {"EN-FR": make.relations(relations=("det",))})


def test_table1_puts_the_paper_beside_ours(stage, write, make):
    heads, relations = write("heads.parquet", make.heads()), write("relations.parquet", make.relations())
    stem = stage("table1", {"titles": ["EN-FR 50%"]}, heads=[heads], relations=[relations])
    rows = pd.read_csv(stem.with_suffix(".csv"))
    assert rows["corpus"].tolist()[:3] == ["EN-FR 50%", paper.WMT, paper.SUBTITLES]
    wmt = rows[(rows["corpus"] == paper.WMT) & (rows["relation"] == "obj")].set_index("direction")
    assert wmt.loc["head_to_dependent", ["accuracy", "baseline"]].tolist() == [0.78, 0.41]
    assert wmt.loc["dependent_to_head", ["accuracy", "baseline"]].tolist() == [0.73, 0.41]
    table = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert f"| obj | v→o | {paper.WMT} |  |  | 78 | 41 |  |" in table
    assert r"nsubj & v$\to$s & EN-FR 50\% & " in stem.with_suffix(".tex").read_text(encoding="utf-8")
