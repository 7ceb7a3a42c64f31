"""Figures of single heads: relevance and functions (1, 2, 8) and attention maps (5)."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from specialized_heads.report import cells, style
from specialized_heads.report.voita import figure1, figure2, figure5, figure8
from specialized_heads.stage import UserError


def test_heads_are_ranked_by_relevance_and_values_are_those_of_the_file(stage, write, make):
    table = make.heads(6, 8)
    in_other_units = table.assign(relevance=table["relevance"] * table["layer"] / 7)
    stem = stage("figure1", {"titles": ["EN-FR"]}, heads=[write("heads.parquet", in_other_units)])
    plotted = pd.read_csv(stem.with_suffix(".csv"))
    encoder = table[table["type"] == "encoder"]
    assert len(plotted) == 48
    for layer, heads in plotted.groupby("layer"):
        assert heads["rank"].tolist() == list(range(1, 9))
        assert heads["relevance"].is_monotonic_decreasing
        expected = encoder[encoder["layer"] == layer].set_index("head").loc[heads["head"]]
        assert heads["relevance"].tolist() == pytest.approx(expected["relevance"].tolist())
        assert heads["relevance"].sum() == pytest.approx(1.0)
        assert heads["confidence"].tolist() == expected["confidence"].tolist()
    functions = plotted.set_index(["layer", "head"])["functions"]
    assert functions[1, 3] == "positional; syntactic"
    assert functions[1, 4] == "other"


def test_a_printed_value_stands_in_every_cell(make):
    heads = cells.ranked_heads({"EN-FR": make.heads(2, 4)})
    written = make.texts(figure1.draw(heads, titles=["EN-FR"]))
    for value in [*heads["relevance"], *heads["confidence"]]:
        assert f"{value:.2f}" in written
    assert "EN-FR: 8 encoder heads" in written


def test_missing_and_negative_relevance(make):
    table = make.heads(1, 4)
    table.loc[:3, "relevance"] = [np.nan, -0.2, 0.1, 0.2]
    heads = cells.ranked_heads({"EN-FR": table})
    assert heads["head"].tolist() == [4, 3, 2, 1]  # unknown relevance ranks last
    assert cells.relevance_range(heads) == (-0.4, 0.4)  # shares of the layer, signs ignored
    written = make.texts(figure1.draw(heads, titles=["EN-FR"]))
    assert "−0.40" in written and "nan" not in written


def test_a_layer_that_no_relevance_reaches_has_zeros(make):
    table = make.heads(1, 4)
    table["relevance"] = 0.0
    assert cells.ranked_heads({"EN-FR": table})["relevance"].tolist() == [0.0] * 4


def test_heads_with_a_function_are_marked(make):
    def patches(figure) -> int:
        return len(figure.axes[0].patches)

    table = make.heads(2, 8)
    marked = cells.ranked_heads({"EN-FR": table})
    plain = marked.assign(functions="other")
    figure = figure1.draw(marked, titles=["EN-FR"])
    bars = [head.functions.count(";") + 2 for head in marked.itertuples() if head.functions != "other"]
    assert patches(figure) - patches(figure1.draw(plain, titles=["EN-FR"])) == sum(bars) > 0
    colours = {matplotlib.colors.to_hex(patch.get_facecolor()) for patch in figure.axes[0].patches if patch.get_fill()}
    assert colours == {style.FUNCTIONS[name].colour.lower() for name in ("positional", "syntactic", "rare words")}


def test_layers_without_heads_stay_in_place(make):
    table = make.heads(3, 4)
    heads = cells.ranked_heads({"EN-FR": table[table["layer"] != 2]})
    axes = figure1.draw(heads, titles=["EN-FR"]).axes[0]
    assert list(axes.get_xticks()) == [1, 2, 3]


def test_a_model_without_heads_is_named(stage, write, make):
    empty = write("empty.parquet", make.heads().iloc[:0])
    stem = stage("figure1", {"titles": ["EN-XX"]}, heads=[empty])
    assert stem.with_suffix(".pdf").exists()
    assert pd.read_csv(stem.with_suffix(".csv")).columns.tolist() == cells.COLUMNS
    figure = figure2.draw(cells.ranked_heads({"EN-XX": make.heads().iloc[:0]}), titles=["EN-XX"])
    assert "EN-XX: 0 encoder heads" in make.texts(figure)


def test_figure2_says_that_there_is_no_further_corpus(stage, make):
    stem = stage("figure2", {"titles": []})
    assert stem.with_suffix(".csv").read_text(encoding="utf-8") == ",".join(cells.COLUMNS) + "\n"
    assert "one corpus" in make.texts(figure2.draw(cells.ranked_heads({}), titles=[]))[0]


def test_figure8_stacks_heads_by_function_under_their_own_numbers(make):
    table = make.heads()
    names = {
        "pruned/encoder_lambda0.01/seed1": make.without(table, 4),
        "baseline/seed1": table,
        "pruned/encoder_lambda0.005/seed1": make.without(table, 4),
        "pruned/encoder_lambda0.1/seed1": make.without(table, 0),
    }
    columns = figure8.numbers(make.by_model(names))
    assert columns.drop_duplicates("model")["heads"].tolist() == [24, 4, 4, 0]
    assert columns["model"].unique().tolist()[1:3] == list(names)[2::-2]  # same count: the smaller λ first
    whole = columns[columns["model"] == "baseline/seed1"]
    several = ["positional; syntactic", "positional; syntactic; rare words"]
    assert whole["functions"].tolist()[:4] == ["positional", "positional", *several]
    assert whole["functions"].tolist()[-17:] == ["other"] * 17
    kept = make.without(table, 4).query("type == 'encoder'")
    shown = columns[columns["lam"] == 0.01]
    assert set(zip(shown["layer"], shown["head"], strict=True)) == set(zip(kept["layer"], kept["head"], strict=True))
    written = make.texts(figure8.draw(columns, title="EN-FR"))
    assert {"24\nnone pruned", "4\nλ 0.005", "4\nλ 0.01", "0\nλ 0.1"} <= set(written)


def test_figure8_with_seeds_and_with_the_baseline_only(make):
    tables = make.by_model({f"baseline/seed{seed}": make.heads(seed=seed) for seed in (1, 2)})
    written = make.texts(figure8.draw(figure8.numbers(tables), title="EN-FR"))
    assert "24\nnone pruned\nseed 2" in written
    assert any("no pruned models of this kind in this experiment" in text for text in written)


def test_attention_maps_hold_the_weights_and_mark_the_rarest_token(stage, write, make):
    example = make.examples(["▁the ▁pen guin ▁waddles", "▁Мария ▁читает"])
    stem = stage("figure5", {"titles": ["EN-FR"]}, examples=[write("examples.json", example)])
    plotted = pd.read_csv(stem.with_suffix(".csv"))
    for number, sentence in enumerate(example["sentences"], start=1):
        here = plotted[plotted["sentence"] == number]
        size = len(sentence["tokens"])
        assert here["attention"].to_numpy().reshape(size, size).tolist() == sentence["attention"]
        assert here.loc[here["query"] == 1, "key_token"].tolist() == sentence["tokens"]
        assert here.loc[here["rarest"], "key"].unique().tolist() == [sentence["rarest"] + 1]


def test_the_heading_says_which_head_and_whether_it_passed(make):
    def heading(kind: str) -> str:
        weights = figure5.numbers({"EN-FR": make.examples(["▁a ▁b"], kind=kind)})
        return figure5.draw(weights, titles=["EN-FR"]).texts[0].get_text().replace("\n", " ")

    assert heading("rare words").startswith("EN-FR: rare-words head 1-3")
    assert "66%" in heading("rare words")
    assert "no head passed the rare-words threshold" in heading("best by score")


def test_long_sentences_fit_the_page_and_keep_the_rarest_label(make):
    example = make.examples([" ".join(f"▁word{number}" for number in range(140)), "▁" + "long" * 30 + " ▁x"])
    weights = figure5.numbers({"EN-FR": example})
    figure = figure5.draw(weights, titles=["EN-FR"])
    first = figure.axes[0]
    labels = [label.get_text() for label in first.get_yticklabels()]
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes[:2]:
        box = axes.get_tightbbox(renderer)
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0
    assert len(labels) < 141
    assert figure5.label_of(example["sentences"][0]["tokens"][example["sentences"][0]["rarest"]]) in labels


def test_tokens_are_shown_on_one_line():
    assert figure5.label_of("▁a") == "_a"
    assert figure5.label_of("\n") == "␣"
    assert len(figure5.label_of("x" * 50)) == figure5.LONGEST


def test_no_example_sentences_and_a_broken_file(make):
    none = {"layer": None, "head": None, "kind": "rare words", "score": None, "sentences": []}
    figure = figure5.draw(figure5.numbers({"EN-XX": none}), titles=["EN-XX"])
    assert "EN-XX: no example sentences" in make.texts(figure)
    broken = make.examples(["▁a ▁b"])
    broken["sentences"][0]["tokens"].append("▁c")
    with pytest.raises(UserError, match="sentence 1"):
        figure5.numbers({"EN-FR": broken})
