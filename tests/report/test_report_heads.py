"""Figures of single heads: relevance and functions (1, 2, 8) and attention maps (5)."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from specialized_heads.report import cells, style
from specialized_heads.report.voita import figure1, figure2, figure5, figure8
from specialized_heads.stage import UserError


@pytest.fixture
def ranked(make):
    """`ranked(heads, ...)`: the heads of each of these corpora, EN-0 and so on, ranked."""

    def rank(*heads: pd.DataFrame) -> pd.DataFrame:
        by_title = {f"EN-{number}": table for number, table in enumerate(heads)}
        return cells.ranked_heads(make.tables(heads=by_title), by_title)

    return rank


def test_heads_are_ranked_by_relevance_and_values_are_those_of_the_table(make, ranked) -> None:
    table = make.heads(6, 8)
    in_other_units = table.assign(relevance=table["relevance"] * table["layer"] / 7)
    plotted = ranked(in_other_units)
    assert len(plotted) == 48
    encoder = table[table["type"] == "encoder"]
    for layer, heads in plotted.groupby("layer"):
        assert heads["rank"].tolist() == list(range(1, 9))
        assert heads["relevance"].is_monotonic_decreasing
        expected = encoder[encoder["layer"] == layer].set_index("head").loc[heads["head"]]
        assert heads["relevance"].tolist() == pytest.approx(expected["relevance"].tolist())
        assert heads["confidence"].tolist() == expected["confidence"].tolist()
    functions = plotted.set_index(["layer", "head"])["functions"]
    assert (functions[1, 3], functions[1, 4]) == ("positional; syntactic", "other")


def test_missing_negative_and_no_relevance(make, ranked) -> None:
    table = make.heads(1, 4)
    table.loc[:3, "relevance"] = [np.nan, -0.2, 0.1, 0.2]
    heads = ranked(table)
    assert heads["head"].tolist() == [4, 3, 2, 1]  # unknown relevance ranks last
    assert cells.relevance_range(heads) == (-0.4, 0.4)  # shares of the layer, signs ignored
    written = make.texts(figure1.draw(heads))
    assert "−0.40" in written and "nan" not in written
    assert ranked(table.assign(relevance=0.0))["relevance"].tolist() == [0.0] * 4


def test_layers_and_models_without_heads_stay_in_place(make, ranked) -> None:
    table = make.heads(3, 4)
    heads = ranked(table[table["layer"] != 2], table[table["type"] != "encoder"])
    assert list(figure1.draw(heads).axes[0].get_xticks()) == [1, 2, 3]
    for figure in (figure1, figure2):
        assert "EN-1: 0 encoder heads" in make.texts(figure.draw(heads))


def test_figure2_has_the_corpora_that_figure1_lacks(make) -> None:
    tables = make.tables(heads={"EN-FR": make.heads(), "EN-RU": make.heads()})
    assert [set(figure.numbers(tables)["corpus"]) for figure in (figure1, figure2)] == [{"EN-FR"}, {"EN-RU"}]
    only = figure2.numbers(make.tables(heads={"EN-FR": make.heads()}))
    assert only.columns.tolist() == cells.COLUMNS and "one corpus" in make.texts(figure2.draw(only))[0]


def test_figure8_stacks_heads_by_function_under_their_own_numbers(make) -> None:
    table = make.heads()
    names = {
        "pruned/encoder_heads4": make.without(table, 4),
        "pruned/encoder_lambda0.1": make.without(table, 0),
        "pruned/encoder_lambda0.01": make.without(table, 4),
        "baseline": table,
        "baseline/seed2": table,
        "pruned/encoder_lambda0.005": make.without(table, 4),
        "pruned/encoder_lambda0.001": table,
    }
    columns = figure8.numbers(make.tables(heads={"EN-FR": names}))
    # Of equally large models, the baseline comes first, then the smaller λ, then numbers of heads; other seeds are left out.
    order = [
        f"pruned/encoder_{target}" for target in ("lambda0.001", "lambda0.005", "lambda0.01", "heads4", "lambda0.1")
    ]
    assert columns["model"].unique().tolist() == [f"{name}/seed1" for name in ["baseline", *order]]
    assert columns.drop_duplicates("model")["heads"].tolist() == [24, 24, 4, 4, 4, 0]
    whole = columns[columns["model"] == "baseline/seed1"]["functions"].tolist()
    assert whole[:4] == ["positional", "positional", "positional; syntactic", "positional; syntactic; rare words"]
    assert whole[-17:] == ["other"] * 17
    kept = names["pruned/encoder_heads4"].query("type == 'encoder'")
    shown = columns[columns["lam"] == 0.01]
    assert set(zip(shown["layer"], shown["head"])) == set(zip(kept["layer"], kept["head"]))
    written = make.texts(figure8.draw(columns))
    assert {"24 none pruned", "4 λ 0.005", "4 target: 4", "0 λ 0.1"} <= set(written)


@pytest.fixture
def maps(make, write):
    """`maps(example)`: the numbers of figure 5 from a file of examples."""
    return lambda example: figure5.numbers(None, {"EN-FR": write("examples.json", example)})


def test_attention_maps_hold_the_weights_and_mark_the_rarest_token(make, maps) -> None:
    example = make.examples(["▁the ▁pen guin ▁waddles", "▁Мария ▁читает"])
    plotted = maps(example)
    for number, sentence in enumerate(example["sentences"], start=1):
        here = plotted[plotted["sentence"] == number]
        size = len(sentence["tokens"])
        assert here["attention"].to_numpy().reshape(size, size).tolist() == sentence["attention"]
        assert here.loc[here["query"] == 1, "key_token"].tolist() == sentence["tokens"]
        assert here.loc[here["rarest"], "key"].unique().tolist() == [sentence["rarest"] + 1]


def test_the_heading_says_which_head_and_whether_it_passed(make, maps) -> None:
    for kind, said in (("rare words", "rare-words head 1-3"), ("best", "no head passed the rare-words threshold")):
        written = make.texts(figure5.draw(maps(make.examples(["▁a ▁b"], kind=kind))))
        assert [text for text in written if text.startswith(f"EN-FR: {said}") and "66%" in text]


def test_long_sentences_fit_the_page_and_keep_the_rarest_label(make, maps, stage, tmp_path: Path) -> None:
    example = make.examples([" ".join(f"▁word{number}" for number in range(140)), "▁" + "long" * 30 + " ▁x"])
    figure = figure5.draw(maps(example))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes[:2]:
        box = axes.get_tightbbox(renderer)
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0
    assert len(labels) < 141
    assert figure5.label_of(example["sentences"][0]["tokens"][example["sentences"][0]["rarest"]]) in labels
    files = {"EN-FR $1": tmp_path / "examples.json"}
    stem = stage("voita.figure5", make.tables(heads={"EN-FR $1": make.heads()}), examples=files)
    assert set(pd.read_csv(stem.with_suffix(".csv"))["corpus"]) == {"EN-FR $1"}


def test_tokens_are_shown_on_one_line() -> None:
    assert (figure5.label_of("▁a"), figure5.label_of("\n")) == ("_a", "␣")
    assert len(figure5.label_of("x" * 50)) == figure5.LONGEST


def test_no_example_sentences_and_a_broken_file(make, maps) -> None:
    none = {"layer": None, "head": None, "kind": "rare words", "score": None, "sentences": []}
    assert "EN-FR: no example sentences" in make.texts(figure5.draw(maps(none)))
    broken = make.examples(["▁a ▁b"])
    broken["sentences"][0]["tokens"].append("▁c")
    with pytest.raises(UserError, match="sentence 1"):
        maps(broken)
