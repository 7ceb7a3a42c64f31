"""Ablation one by one and in order of importance: what the figures and tables show of it."""

from itertools import product
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from specialized_heads.report.experiment import Model, describe
from specialized_heads.report.inputs import ABLATION_COLUMNS, SYSTEMATIC_COLUMNS, stack_models

from specialized_heads.report import style
from specialized_heads.report.michel import ablation, ablation_sets, alone, moments, systematic

KINDS = ("encoder", "decoder", "cross")


def ablations(*, layers: int = 2, heads: int = 3, seed: int = 1, skip: tuple = ()) -> pd.DataFrame:
    """The table of the stage: the last cross-attention layer matters, the rest is noise."""
    random = np.random.default_rng(seed)
    rows = []
    for what, kind, layer, head in product(("without", "alone"), KINDS, range(1, layers + 1), range(1, heads + 1)):
        if (kind, layer) not in skip:
            delta = random.normal(0, 0.1) - (3.0 * head if (kind, layer) == ("cross", layers) else 0)
            row = {"what": what, "type": kind, "layer": layer, "head": head, "bleu": 30 + delta, "bleu_full": 30.0}
            rows.append(row | {"delta": delta, "p_value": 0.001 if delta < -1 else 0.4, "sentences": 100})
    return pd.DataFrame(rows, columns=list(ABLATION_COLUMNS))


def steps(*, full: float = 30.0, heads: int = 10, drop: float = 1.0) -> pd.DataFrame:
    rows = []
    for pruned, count in (("all", heads), ("encoder", heads // 2), ("decoder", heads // 2), ("cross", 0)):
        for removed in range(count + 1):
            bleu = full - drop * removed
            row = {"pruned": pruned, "removed": removed, "heads": count, "share": removed / count if count else 0.0}
            row |= {"bleu": bleu, "bleu_full": full, "delta": bleu - full}
            rows.append(row | {"p_value": 1.0 if not removed else 0.5 / removed**3, "sentences": 100})
    return pd.DataFrame(rows, columns=list(SYSTEMATIC_COLUMNS))


def together(*frames: tuple[pd.DataFrame, str, int, int | None]) -> dict[Model, pd.DataFrame]:
    """Each table by its model: a baseline, or a checkpoint of it."""
    tables = {}
    for frame, corpus, seed, moment in frames:
        name = "baseline" if moment is None else f"checkpoint/update{moment}"
        tables[describe(name, corpus=corpus, seed=seed)] = frame
    return tables


def test_models_are_told_apart():
    found = stack_models(together((ablations(), "EN-FR", 1, None), (ablations(), "EN-FR", 2, None)), ABLATION_COLUMNS)
    assert found.groupby("seed").size().tolist() == [36, 36]
    assert found["moment"].isna().all()
    assert stack_models({}, ABLATION_COLUMNS).columns.tolist() == [*ABLATION_COLUMNS, "corpus", "seed", "moment"]


def test_the_heat_map_frames_what_is_significant(make):
    tables = together((ablations(skip=(("decoder", 1),)), "EN-FR", 1, None))
    heads = ablation.numbers(tables)
    assert len(heads) == 15
    assert heads.loc[heads["significant"], ["type", "layer"]].drop_duplicates().to_numpy().tolist() == [["cross", 2]]
    figure = ablation.draw(heads)
    panels = figure.axes[:3]
    assert [len(axes.patches) for axes in panels] == [0, 0, 3]
    assert [axes.get_title().split("\n")[0] for axes in panels] == [name for name, _ in style.TYPES.values()]
    values = panels[2].collections[0].get_array()
    assert values.reshape(2, 3)[1, 2] == pytest.approx(heads["delta"].min())
    assert panels[1].collections[0].get_array().mask.reshape(2, 3)[0].all()  # pruned: empty
    assert "−9.0" in make.texts(figure) or "−8.9" in make.texts(figure) or "−9.1" in make.texts(figure)


def test_the_table_has_a_cell_per_head():
    tables = together((ablations(skip=(("decoder", 1),)), "EN-FR", 1, None), (ablations(heads=2), "EN-RU", 1, None))
    heads = ablation.numbers(tables)
    text = ablation.shown(heads)
    assert list(text.columns) == ["corpus", "BLEU", "type", "layer", "1", "2", "3"]
    assert len(text) == 5 + 6
    last = text[(text["corpus"] == "EN-FR") & (text["type"] == "cross-attention") & (text["layer"] == "2")].squeeze()
    delta = heads[(heads["corpus"] == "EN-FR") & (heads["type"] == "cross") & (heads["layer"] == 2)]["delta"].iloc[2]
    assert last["3"] == f"−{-delta:.2f}*"
    assert set(text.loc[text["corpus"] == "EN-RU", "3"]) == {""}


def test_the_best_head_alone_is_chosen_layer_by_layer():
    one = ablations(skip=(("decoder", 1),))
    rows = alone.numbers(together((one, "EN-FR", 1, None)))
    cross = rows[(rows["type"] == "cross") & (rows["layer"] == 2)].squeeze()
    assert cross["head"] == 1  # the others lose more
    same = one[(one["what"] == "alone") & (one["type"] == "cross") & (one["layer"] == 2)]
    assert cross["delta"] == same["delta"].max()
    text = alone.shown(rows)
    assert "n" not in text
    assert text["decoder self-attention"].iloc[0] == "–"
    assert text["cross-attention"].iloc[1] == f"−{-cross['delta']:.2f}* (head 1)"


def test_seeds_choose_their_own_best_heads():
    rows = alone.numbers(together(*((ablations(seed=seed), "EN-FR", seed, None) for seed in (1, 2, 3))))
    assert (rows["seeds"] == 3).all()
    first_layer = "what == 'alone' and type == 'encoder' and layer == 1"
    best = [ablations(seed=seed).query(first_layer)["delta"].max() for seed in (1, 2, 3)]
    values = rows.iloc[0][["delta", "delta_low", "delta_high", "delta_sd"]].tolist()
    assert values == pytest.approx([np.mean(best), min(best), max(best), np.std(best, ddof=1)])
    text = alone.shown(rows).iloc[0]
    value = f"{np.mean(best):+.2f} ± {np.std(best, ddof=1):.2f}".replace("-", "−")
    assert text["encoder self-attention"].startswith(value)
    assert text["n"] == "3"


def test_correlation_is_that_of_the_textbook():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    y = np.array([2.0, 1.0, 4.0, 3.0, 7.0, 5.0, 60.0])
    found = ablation_sets.correlation(x, y)
    away = y - y.mean()
    assert found["pearson"] == pytest.approx(((x - 4) * away).sum() / np.sqrt(28 * (away**2).sum()))
    assert found["spearman"] == pytest.approx(1 - 6 * 6 / (7 * 48))  # six ranks are off by one
    z = np.arctanh(found["pearson"])
    assert np.arctanh(found["pearson_high"]) - z == pytest.approx(1.96 / 2, abs=1e-3)  # √(7 - 3) = 2
    assert np.arctanh(found["pearson_low"]) - z == pytest.approx(-1.96 / 2, abs=1e-3)
    assert found["pearson_p"] == pytest.approx(2 * NormalDist().cdf(-2 * z))
    assert np.isnan(ablation_sets.correlation(x[:3], y[:3])["pearson"])
    assert np.isnan(ablation_sets.correlation(x, np.zeros(7))["pearson"])
    assert ablation_sets.correlation(x, 2 * x)["pearson"] == pytest.approx(1)


def test_heads_are_paired_between_the_sets(make):
    first = ablations()
    second = first.assign(delta=2 * first["delta"] + 0.1).sample(frac=1, random_state=0)
    tables = (together((table, "EN-FR", 1, None)) for table in (first, second))
    pairs = ablation_sets.numbers(*tables, second_names={"EN-FR": "development set"})
    assert len(pairs) == 18
    assert pairs["delta_second"].tolist() == pytest.approx((2 * pairs["delta_test"] + 0.1).tolist())
    assert pairs["pearson"].unique() == pytest.approx([1.0])
    texts = make.texts(ablation_sets.draw(pairs))
    assert any(text.startswith("r = 1.00 [1.00, 1.00], p < 0.001") for text in texts)
    assert "the same, development set" in texts
    assert "cross-attention" in texts
    encoder_only = make.texts(ablation_sets.draw(pairs[pairs["type"] == "encoder"]))  # as in BERT
    assert "cross-attention" not in encoder_only


def test_steps_of_seeds_become_mean_and_range(make):
    tables = together((steps(), "EN-FR", 1, None), (steps(full=32.0, drop=2.0), "EN-FR", 2, None))
    points = systematic.numbers(tables)
    assert set(points["pruned"]) == {"all", "encoder", "decoder"}  # no cross-attention heads: no line
    point = points[(points["pruned"] == "all") & (points["removed"] == 4)].squeeze()
    assert (point["share"], point["seeds"]) == (0.4, 2)
    assert (point["bleu"], point["bleu_low"], point["bleu_high"]) == (25.0, 24.0, 26.0)
    assert (point["delta"], point["delta_low"], point["delta_high"]) == (-6.0, -8.0, -4.0)
    figure = systematic.draw(points)
    assert "EN-FR, 2 seeds (mean and range)" in make.texts(figure)
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
    significant = points[points["p_value"] < 0.01]
    assert sum(len(line.get_xdata()) for line in hollow) == len(significant) > 0


def test_moments_are_shares_of_their_own_whole_model(make):
    tables = together(
        (steps(full=0.5, drop=0.0), "EN-FR", 1, 10),
        (steps(full=20.0, drop=2.0), "EN-FR", 1, 200),
        (steps(full=30.0), "EN-FR", 1, None),
    )
    points = moments.numbers(tables, {})
    assert set(points["removed"]) == set(range(11))
    early = points[points["moment"] == 10]
    assert early["kept"].isna().all()  # half a BLEU: no share of it
    assert points[(points["moment"] == 200) & (points["removed"] == 5)]["kept"].item() == 0.5
    assert points[points["moment"].isna() & (points["removed"] == 3)]["kept"].item() == 0.9
    seeds = together(
        (steps(full=0.6), "EN-FR", 1, 10), (steps(full=4.0), "EN-FR", 2, 10), (steps(full=4.2), "EN-FR", 3, 10)
    )
    row = moments.numbers(seeds, {}).iloc[0]
    assert (row["seeds"], row["bleu_full"]) == (2, pytest.approx(4.1))  # the first says nothing
    texts = make.texts(moments.draw(points))
    assert {"10 updates: 0.5, not shown", "200 updates: 20.0", "end of training: 30.0"} <= set(texts)


SETTINGS = {"runs": [{"corpus": "EN-FR $1_% a title", "model": "baseline", "seed": 1}]}


@pytest.mark.parametrize("module", ["ablation", "alone", "ablation_sets", "systematic", "moments"])
@pytest.mark.parametrize("empty", [False, True])
def test_everything_is_written_also_for_a_model_without_heads(stage, write, module: str, empty: bool):
    table = steps() if module in ("systematic", "moments") else ablations()
    if empty:
        table = table[table["heads"] == 0] if "heads" in table else table.iloc[:0]
    path = write("table.parquet", table)
    files, settings = {"tables": [path]}, SETTINGS
    if module == "ablation_sets":
        files, settings = files | {"second": [path]}, SETTINGS | {"second_names": {"EN-FR $1_% a title": "dev"}}
    stem = stage(module, settings, **files)
    suffixes = {"csv"} | ({"md", "tex", "html"} if module in ("ablation", "alone") else set())
    for suffix in suffixes | ({"pdf", "svg", "png"} if module != "alone" else set()):
        assert stem.with_name(f"{stem.name}.{suffix}").stat().st_size
    if module in ("ablation", "alone") and empty:
        assert "o heads to ablate" in stem.with_name(f"{module}.md").read_text()
