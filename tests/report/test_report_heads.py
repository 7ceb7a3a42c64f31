"""Figures of single heads and of relations (1 to 6, 8): relevance, functions, attention maps,
dependencies (table 1), gates."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report import paper
from specialized_heads.report.figures import functions, gates, heads_left, relevance, syntactic


def test_heads_are_ranked_by_relevance_and_values_are_those_of_the_table(make) -> None:
    table = make.heads(6, 8)
    in_other_units = table.assign(relevance=table["relevance"] * table["layer"] / 7)
    plotted = relevance.figure1_numbers(
        make.tables(heads={"EN-FR": in_other_units, "EN-RU": make.heads()})
    )
    assert set(plotted["corpus"]) == {"EN-FR"} and len(plotted) == 48
    encoder = table[table["type"] == "encoder"]
    for layer, heads in plotted.groupby("layer"):
        assert heads["rank"].tolist() == list(range(1, 9))
        assert heads["relevance"].is_monotonic_decreasing
        expected = encoder[encoder["layer"] == layer].set_index("head").loc[heads["head"]]
        assert heads["relevance"].tolist() == pytest.approx(expected["relevance"].tolist())
        assert heads["confidence"].tolist() == expected["confidence"].tolist()
    functions = plotted.set_index(["layer", "head"])["functions"]
    assert (functions[1, 3], functions[1, 4]) == ("positional; syntactic", "other")
    assert "EN-FR, seed 1: 48 encoder heads" in make.texts(relevance.figure1_draw(plotted))


def test_the_legend_has_the_functions_in_the_figure_alone(make) -> None:
    heads = relevance.figure1_numbers(make.tables(heads={"EN-FR": make.heads()}))
    everything = {"positional", "syntactic", "rare words", "other", "several functions"}
    assert everything <= set(make.texts(relevance.figure1_draw(heads)))
    few = heads[heads["functions"].isin(["syntactic", "other"])]
    assert everything & set(make.texts(relevance.figure1_draw(few))) == {"syntactic", "other"}


def test_missing_negative_and_no_relevance(make) -> None:
    table = make.heads(1, 4)
    table.loc[:3, "relevance"] = [np.nan, -0.2, 0.1, 0.2]
    heads = relevance.figure1_numbers(make.tables(heads={"EN-FR": table}))
    assert heads["head"].tolist() == [4, 3, 2, 1]  # unknown relevance ranks last
    figure = relevance.figure1_draw(heads)
    # shares of the layer, signs ignored
    assert figure.axes[0].collections[0].get_clim() == (-0.4, 0.4)
    written = make.texts(figure)
    assert "−0.40" in written and "nan" not in written
    none = relevance.figure1_numbers(make.tables(heads={"EN-FR": table.assign(relevance=0.0)}))
    assert none["relevance"].tolist() == [0.0] * 4


def test_layers_and_models_without_heads_stay_in_place(make) -> None:
    table = make.heads(3, 4)
    corpora = {
        "EN-0": table,
        "EN-1": table[table["layer"] != 2],
        "EN-2": table[table["type"] != "encoder"],
    }
    heads = relevance.figure2_numbers(make.tables(heads=corpora))
    assert heads["corpus"].unique().tolist() == ["EN-1", "EN-2"]
    figure = relevance.figure2_draw(heads)
    assert list(figure.axes[0].get_xticks()) == [1, 2, 3]
    assert any(
        text.startswith("EN-2") and text.endswith(": 0 encoder heads")
        for text in make.texts(figure)
    )


def test_figure8_stacks_heads_by_function_under_their_own_numbers(make) -> None:
    table = make.heads()
    few = make.without(table, 4)
    # Of equally large models, the baseline comes first, then the smaller λ, then numbers of heads;
    # other seeds are left out.
    order = {
        "baseline": table,
        "pruned/encoder_lambda0.001": table,
        "pruned/encoder_lambda0.005": few,
    }
    order |= {"pruned/encoder_lambda0.01": few, "pruned/encoder_heads4": few}
    order["pruned/encoder_lambda0.1"] = make.without(table, 0)
    models = dict(reversed(order.items())) | {"baseline/seed2": table}
    columns = heads_left.figure8_numbers(make.tables(heads={"EN-FR": models}))
    assert columns["model"].unique().tolist() == [f"{name}/seed1" for name in order]
    assert columns.drop_duplicates("model")["heads"].tolist() == [24, 24, 4, 4, 4, 0]
    whole = columns[columns["model"] == "baseline/seed1"]["functions"].tolist()
    assert whole[:4] == [
        "positional",
        "positional",
        "positional; syntactic",
        "positional; syntactic; rare words",
    ]
    assert whole[-17:] == ["other"] * 17
    assert columns.loc[columns["model"] == "baseline/seed1", "place"].tolist() == [
        *range(1, 8),
        *[8] * 17,
    ]
    shown, kept = columns[columns["lam"] == 0.01], few[few["type"] == "encoder"]
    assert set(zip(shown["layer"], shown["head"])) == set(zip(kept["layer"], kept["head"]))
    written = make.texts(heads_left.figure8_draw(columns))
    assert {"24 none pruned", "4 λ 0.005", "4 target: 4", "0 λ 0.1"} <= set(written)
    named = {"2-6 position −1", "1-3 position −1 (+1)", "1-7 position −1 (+2)", "17 other"}
    assert named <= set(written)
    # By chance, 7/24 of the four heads of a pruned model have a function.
    figure = heads_left.figure8_draw(columns)
    tops = [line.get_ydata()[0] for line in figure.axes[0].lines]
    assert tops == pytest.approx([7 / 6, 7 / 6, 7 / 6, 0])
    # A column is as high as it has heads.
    heights = [patch.get_y() + patch.get_height() for patch in figure.axes[0].patches]
    assert max(heights) == 24


def test_figure8_names_relations_by_their_margin(make) -> None:
    table = make.heads()
    names = ["nsubj_head_to_dependent", "obj_dependent_to_head"]
    for row, margins in enumerate(([0.2, 0.3], [0.4, 0.3])):
        table.loc[row, [f"{name}_margin" for name in names]] = margins
        table.at[row, "functions"], table.at[row, "relations"] = ["syntactic"], names
    assert "0 none pruned" in make.texts(
        heads_left.figure8_draw(
            heads_left.figure8_numbers(make.tables(heads={"EN-FR": table[24:]}))
        )
    )
    cells = heads_left.figure8_numbers(make.tables(heads={"EN-FR": table})).set_index(
        ["layer", "head"]
    )["names"]
    assert (
        cells[1, 1] == "obj o→v; nsubj v→s"
        and cells[1, 2] == "nsubj v→s; obj o→v"
        and cells[1, 4] == "other"
    )


def test_attention_maps_hold_the_weights_and_mark_the_rarest_token(make, tmp_path: Path) -> None:
    def maps(*sentences: str, **changed: object) -> pd.DataFrame:
        random, shown = np.random.default_rng(0), []
        for sentence in sentences:
            tokens = [*sentence.split(), "</s>"]
            attention = random.dirichlet(np.full(len(tokens), 0.3), size=len(tokens)).tolist()
            shown.append({"tokens": tokens, "attention": attention, "rarest": len(tokens) // 2})
        example = {
            "layer": 1,
            "head": 3,
            "kind": "rare words",
            "score": 0.664,
            "sentences": shown,
        } | changed
        (tmp_path / "examples.json").write_text(json.dumps(example))
        tables = make.tables(heads={"EN-FR": make.heads()})
        return functions.figure5_numbers(tables, {"EN-FR": tmp_path / "examples.json"})

    plotted = maps("▁the ▁pen guin ▁waddles", "▁Мария ▁читает")
    given = json.loads((tmp_path / "examples.json").read_text())["sentences"]
    for number, sentence in enumerate(given, start=1):
        here = plotted[plotted["sentence"] == number]
        size = len(sentence["tokens"])
        assert here["attention"].to_numpy().reshape(size, size).tolist() == sentence["attention"]
        assert here.loc[here["query"] == 1, "key_token"].tolist() == sentence["tokens"]
        assert here.loc[here["rarest"], "key"].unique().tolist() == [sentence["rarest"] + 1]
    headings = {
        "EN-FR, seed 1: rare-words head 1-3": plotted,
        "EN-FR: no sentence of 8 to 14 subwords has": maps(
            layer=None, kind="no sentence of 8 to 14 subwords has a token"
        ),
    }
    headings["EN-FR, seed 1: no rare-words head"] = maps("▁a", kind="best of its layer")
    for heading, numbers in headings.items():
        assert any(text.startswith(heading) for text in make.texts(functions.figure5_draw(numbers)))


# Positions of dependents (figure 3), dependency scores (figure 4, table 1).


def test_far_positions_are_counted_in_the_outermost_bars(make) -> None:
    relations = make.relations(empty=("amod",))
    tables = make.tables(heads={"EN-FR": make.heads()}, relations={"EN-FR": relations})
    nsubj = tables.relations.iloc[0]
    counts = dict(zip(nsubj["offsets"], nsubj["counts"], strict=True))
    bars = syntactic.figure3_numbers(tables)
    shown = bars[bars["relation"] == "nsubj"].set_index("position")
    assert shown.loc[-1, "count"] == counts[-1]
    assert shown.loc[-5, "count"] == sum(counts[position] for position in range(-9, -4))
    assert shown["share"].sum() == pytest.approx(1)
    assert shown.index[shown["baseline"]].tolist() == [nsubj["baseline_offset"]]
    assert bars.loc[bars["relation"] == "amod", "share"].isna().all()  # no arcs
    beyond = tables._replace(relations=tables.relations.assign(baseline_offset=7))
    assert not syntactic.figure3_numbers(beyond)["baseline"].any()


def test_the_best_head_is_the_most_accurate_and_labels_are_taken_as_they_are(make) -> None:
    heads = make.heads()
    heads["relations"] = [
        ["obj_dependent_to_head"] if kind == "encoder" else None for kind in heads["type"]
    ]
    tables = make.tables(heads={"EN-FR": heads}, relations={"EN-FR": make.relations()})
    scores = syntactic.figure4_numbers(tables).query("not reported")
    assert len(scores) == 24 * 8
    for (relation, direction), group in scores.groupby(["relation", "direction"]):
        best = group[group["best"]].squeeze()
        assert best["accuracy"] == group["accuracy"].max()
        assert best["low"] == pytest.approx(best["accuracy"] - 0.03)
        # Whether it beats the baseline is not asked again here.
        assert (group["syntactic"] == (f"{relation}_{direction}" == "obj_dependent_to_head")).all()


def test_arcs_and_baselines_are_those_of_the_sentences_that_heads_were_scored_on(make) -> None:
    # The arcs of obj are all in sentences that could not be aligned; without heads, those of all
    # parsed sentences count.
    heads = {"EN-FR": make.heads(empty=("obj",)), "EN-XX": make.heads().iloc[:0]}
    relations = make.relations()
    rows = syntactic.table1_numbers(
        make.tables(heads=heads, relations=dict.fromkeys(heads, relations))
    )
    ours, none = (rows[rows["corpus"] == corpus] for corpus in heads)
    assert ours.groupby("relation", sort=False)["arcs"].first().tolist() == [301, 0, 303, 304]
    assert ours["baseline"].dropna().tolist() == [0.4] * 6
    assert ours.loc[ours["relation"] == "obj", ["accuracy", "baseline"]].isna().all(axis=None)
    assert none["arcs"].tolist() == relations["arcs"].tolist() and none["accuracy"].isna().all()
    assert none["baseline"].tolist() == pytest.approx(relations["baseline_accuracy"].tolist())
    line = syntactic.table1_shown(ours[ours["relation"] == "obj"]).iloc[0]
    assert line[["accuracy", "baseline", "best head", "arcs"]].tolist() == ["–", "–", "", "0"]


def test_table1_puts_the_paper_beside_ours(make, stage) -> None:
    # obj under a Stanford name, and a relation that the paper does not have
    names = ("dobj", "det")
    heads, relations = ({"EN-FR": made(relations=names)} for made in (make.heads, make.relations))
    stem = stage("tables/table1", make.tables(heads=heads, relations=relations))
    rows = pd.read_csv(stem.with_suffix(".csv"))
    assert rows["corpus"].tolist() == ["EN-FR", paper.WMT, paper.SUBTITLES] * 2 + ["EN-FR"] * 2
    wmt = rows.loc[rows["corpus"] == paper.WMT, ["accuracy", "baseline"]]
    assert wmt.values.tolist() == [[0.78, 0.41], [0.73, 0.41]]
    table = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert (
        f"| dobj | v→o | {paper.WMT} |  |  | 78 | 41 |  |" in table
        and "| det | head→dep. | EN-FR |" in table
    )


@pytest.mark.parametrize("log_alpha", gates.LOG_ALPHAS)
def test_density_and_point_masses_are_those_of_drawn_gates(log_alpha: float) -> None:
    """Figure 6: the closed form of the Hard Concrete distribution against its definition."""
    u = np.random.default_rng(0).uniform(size=400_000)
    s = 1 / (1 + np.exp(-(np.log(u) - np.log1p(-u) + log_alpha) / 0.33))
    drawn = np.clip(1.2 * s - 0.1, 0, 1)
    closed, open_ = gates.point_masses(log_alpha)
    assert closed == pytest.approx((drawn == 0).mean(), abs=0.003)
    assert open_ == pytest.approx((drawn == 1).mean(), abs=0.003)
    g = np.linspace(0.2, 0.4, 201)
    between = np.trapezoid(gates.stretched_density(g, log_alpha), g)
    assert between == pytest.approx(((drawn > 0.2) & (drawn < 0.4)).mean(), abs=0.003)
    curve = gates.figure6_numbers().query(
        "curve == 'Hard Concrete' and quantity == 'density' and log_alpha == @log_alpha"
    )
    assert closed + open_ + np.trapezoid(curve["y"], curve["x"]) == pytest.approx(1, abs=1e-4)
