"""What is made of the functions of heads beyond the paper: drift, survival, and the person of subjects."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.report.beyond import drift, persons, survival
from specialized_heads.report.voita import figure8
from specialized_heads.stage import UserError

RELATIONS = ["nsubj", "obj", "amod", "advmod"]


def test_figure8_takes_models_pruned_to_a_number_of_heads(make):
    table = make.heads()
    tables = {
        "pruned/encoder_heads4/seed1": make.without(table, 4),
        "baseline/seed1": table,
        "pruned/encoder_lambda0.01/seed1": make.without(table, 4),
        "pruned/encoder_lambda0.001/seed1": table,
    }
    columns = figure8.numbers(make.by_model(tables))
    order = ["baseline", "pruned/encoder_lambda0.001", "pruned/encoder_lambda0.01", "pruned/encoder_heads4"]
    assert columns["model"].unique().tolist() == [f"{name}/seed1" for name in order]
    assert "4\ntarget: 4" in make.texts(figure8.draw(columns, title="EN-FR"))


@pytest.fixture
def swept(make):
    """A baseline, the same without its best nsubj head, one with a better one beside it, and one without encoder heads."""
    base = make.heads()
    encoder = base["type"] == "encoder"
    base.loc[encoder, "nsubj_head_to_dependent"] = np.linspace(0.1, 0.6, encoder.sum())
    base.at[base.index[encoder][-1], "relations"] = ["nsubj_head_to_dependent"]
    overtaken = base.copy()
    overtaken.loc[3, "nsubj_head_to_dependent"] = 0.9
    tables = {
        "pruned/encoder_lambda0.5/seed1": base[~encoder],
        "pruned/encoder_lambda0.01/seed1": overtaken,
        "baseline/seed1": base,
        "pruned/encoder_lambda0.1/seed1": base.drop(base.index[encoder][-1]),
    }
    return make.by_model(tables)


def test_drift_names_the_best_head_and_what_became_of_the_first(swept):
    cells = drift.numbers(swept, relations=RELATIONS)
    assert cells["scope"].unique().tolist() == ["encoder"]
    assert cells["model"].unique().tolist() == [
        "baseline/seed1", "pruned/encoder_lambda0.01/seed1", "pruned/encoder_lambda0.1/seed1",
        "pruned/encoder_lambda0.5/seed1",
    ]  # fmt: skip
    subjects = cells[cells["function"] == "nsubj v→s"]
    assert subjects["heads"].tolist() == [24, 24, 23, 0]
    assert subjects["carrier"].tolist() == [drift.SAME, drift.MOVED, drift.LOST, drift.NONE]
    assert list(zip(subjects["layer"], subjects["head"]))[:3] == [(3, 8), (1, 4), (3, 7)]
    assert subjects["score"].tolist()[:2] == pytest.approx([0.6, 0.9])
    assert subjects["labelled"].tolist() == [True, False, False, False]
    assert subjects["baseline"].tolist()[0] == 0.4
    assert (cells["type"] == "encoder").all()


def test_drift_of_all_types_has_their_functions_and_leaves_out_what_no_model_has(make):
    base = make.heads(2, 4)
    base[[f"amod_{direction}" for direction in ("head_to_dependent", "dependent_to_head")]] = np.nan
    tables = make.by_model({"baseline/seed1": base, "pruned/all_heads9/seed1": base.iloc[:9]})
    cells = drift.numbers(tables, relations=RELATIONS)
    assert cells["heads"].unique().tolist() == [24, 9]
    functions = cells["function"].unique().tolist()
    assert functions[:3] == ["positional −1", "positional +1", "rare words"]
    assert functions[-2:] == ["positional −1, decoder", "diagonal, cross"]  # no head of the decoder prefers offset 0
    assert len(functions) == 5 + 6
    crossing = cells[cells["function"] == "diagonal, cross"]
    assert crossing["carrier"].tolist() == [drift.SAME, drift.NONE]


def test_drift_tells_offsets_apart(make):
    base = make.heads(1, 4)
    base["positional_share"] = [0.5, 0.6, 0.7, 0.95, *[0.5] * 8]
    base["positional_offset"] = [-1, -1, -2, 1, *[0] * 4, *[-2, -1, 1, 2]]
    base["positional_share"] = base["positional_share"].where(base["type"] != "cross", [0.99] * 9 + [0.5, 0.6, 0.99])
    fewer = base.drop(base.index[3])
    fewer.loc[0, "positional_share"] = 0.65
    tables = {"baseline/seed1": base, "pruned/all_heads11/seed1": fewer}
    cells = drift.numbers(make.by_model(tables), relations=[])
    found = {key: list(zip(own["head"].fillna(0), own["carrier"])) for key, own in cells.groupby("function")}
    assert found["positional −1"] == [(2, drift.SAME), (1, drift.MOVED)]
    assert found["positional +1"] == [(4, drift.SAME), (0, drift.NONE)]  # head 3 looks two back
    assert found["positional 0, decoder"] == [(1, drift.SAME)] * 2
    assert found["diagonal, cross"] == [(3, drift.SAME)] * 2  # not 1 or 4, which are two beside the diagonal
    grown = base.assign(positional_offset=[-1, -1, -2, 1, *[0] * 4, *[2] * 4])
    cells = drift.numbers(make.by_model(tables | {"baseline/seed1": grown}), relations=[])
    crossing = cells[cells["function"] == "diagonal, cross"]
    assert crossing["carrier"].tolist() == [drift.NONE, drift.MOVED]  # the baseline has none


def test_drift_is_drawn_cell_by_cell_or_says_that_nothing_was_pruned(stage, write, make, swept):
    paths = [write(f"{number}.parquet", table) for number, table in enumerate(swept.values())]
    runs = make.as_runs(model.path for model in swept)
    settings = {"runs": runs, "title": "EN-FR", "relations": RELATIONS}
    plotted = pd.read_csv(stage("drift", settings, heads=paths).with_suffix(".csv"))
    assert plotted.columns.tolist() == drift.COLUMNS
    written = make.texts(drift.draw(drift.numbers(swept, relations=RELATIONS), title="EN-FR"))
    nothing = drift.numbers(make.by_model({"baseline/seed1": make.heads()}), relations=RELATIONS)
    assert "no pruned models" in make.texts(drift.draw(nothing, title="EN-FR"))[0]
    assert {"nsubj v→s", "24\nnone pruned", "0\nλ 0.5"} <= set(written)
    assert sum(text == "3-8" for text in written) >= 1


def area(scores, survive):
    """The area under the curve, pair by pair."""
    pairs = [(a, b) for (a, x), (b, y) in itertools.product(zip(scores, survive), repeat=2) if x and not y]
    return np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])


def test_the_area_under_the_curve_is_the_share_of_pairs():
    random = np.random.default_rng(1)
    scores = random.integers(0, 6, 30).astype(float)
    survive = (random.random(30) < 0.4).astype(float)
    value, low, high, p_value = survival.concordance([scores], [survive])
    assert value == pytest.approx(area(scores, survive))
    assert low < value < high
    mirrored = survival.concordance([-scores], [survive])
    assert mirrored == (pytest.approx(1 - value), pytest.approx(1 - high), pytest.approx(1 - low), p_value)
    value, low, high, p_value = survival.concordance([scores], [scores])  # as along the sweep
    assert value == 1.0 and np.isnan([low, high]).all() and p_value == 1 / 2000


def test_heads_of_different_seeds_are_not_compared():
    # Within a seed scores say nothing; between seeds they would seem to say everything.
    scores = [np.array([1.0, 1.0, 1.0, 1.0]), np.array([9.0, 9.0, 9.0, 9.0])]
    survive = [np.array([1.0, 0.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])]
    value, low, high, p_value = survival.concordance(scores, survive)
    assert (value, p_value) == (0.5, 1.0) and low < 0.2 and high > 0.8


def test_strata_that_compare_nothing_give_no_interval():
    """One survivor in one seed, and all heads of the other: the one is on one side of every comparison."""
    scores = [np.arange(24.0), np.arange(24.0)]
    outcomes = [np.eye(24)[23], np.ones(24)]
    assert np.isnan(survival.concordance(scores[:1], outcomes[:1])[1:3]).all()
    assert np.isnan(survival.concordance(scores, outcomes)[1:3]).all()


def test_intervals_need_two_heads_on_each_side_and_areas_need_both():
    value, low, high, p_value = survival.concordance([np.arange(5.0)], [np.array([0.0, 1, 1, 1, 1])])
    assert value == 1.0 and np.isnan([low, high]).all()
    assert p_value == pytest.approx(2 / 5, abs=0.04)  # the one that is pruned is the first of five, or the last
    assert np.isnan(survival.concordance([np.arange(5.0)], [np.ones(5)])).all()


@pytest.mark.parametrize("survivors, heads, true", [(4, 24, 0.76), (20, 24, 0.76), (4, 24, 0.5), (24, 48, 0.9)])
def test_intervals_hold_the_true_area_as_often_as_they_say(survivors, heads, true):
    """Scores are normal, those of survivors higher by what makes the area the true one."""
    random = np.random.default_rng(3)
    shift = math.sqrt(2) * NormalDist().inv_cdf(true)
    inside = 0
    for _ in range(1000):
        scores = random.normal(size=heads)
        scores[:survivors] += shift
        own, others = scores[:survivors, None], scores[survivors:]
        low, high = survival.newcombe((own > others).mean(), [(survivors, heads - survivors)])
        inside += low <= true <= high
    assert 0.93 <= inside / 1000 <= 0.99


def test_intervals_of_strata_are_narrower_than_those_of_each():
    alone, together = (survival.newcombe(0.76, [(8, 16)] * count) for count in (1, 4))
    assert alone[0] < together[0] < 0.76 < together[1] < alone[1]
    spread = [high - low for low, high in (alone, together)]
    assert spread[0] / spread[1] == pytest.approx(2, rel=0.1)  # four times as much: half as wide
    low, high = survival.newcombe(1.0, [(4, 20)])
    assert 0.5 < low < 0.9 and high == 1.0


def test_p_values_are_those_of_all_permutations():
    scores, survive = np.array([5.0, 3, 4, 1, 2, 0, 6]), np.array([1.0, 1, 0, 0, 0, 0, 1])
    areas = [area(scores, np.isin(np.arange(7), chosen)) for chosen in itertools.combinations(range(7), 3)]
    exact = np.mean(np.abs(np.array(areas) - 0.5) >= abs(area(scores, survive) - 0.5) - 1e-9)
    found = [survival.concordance([scores], [survive], seed=seed)[3] for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert found == pytest.approx([exact] * 3, abs=0.03)


@pytest.fixture
def models(make):
    """Baselines of two seeds, and models of both scopes: one keeps the most relevant heads, one keeps all."""
    baselines = make.by_model({f"baseline/seed{seed}": make.heads(seed=seed) for seed in (1, 2)})
    survivors = {}
    for seed, table in enumerate(baselines.values(), start=1):
        best = make.without(table, 10)
        whole, fewer = (set(own[survival.HEAD].itertuples(index=False, name=None)) for own in (table, best))
        survivors[f"pruned/encoder_lambda0.1/seed{seed}"] = fewer
        survivors[f"pruned/encoder_lambda0.01/seed{seed}"] = whole
        survivors[f"pruned/all_heads58/seed{seed}"] = fewer
    return baselines, make.by_model(survivors)


def test_survival_by_scope_type_and_model(make, models):
    rows = survival.numbers(*models)
    encoder = rows[rows["scope"] == "encoder"]
    assert encoder["target"].unique().tolist() == ["λ 0.01", "λ 0.1", survival.SWEEP]
    assert set(rows.loc[rows["scope"] == "all", "type"]) == {"encoder", "decoder", "cross"}
    found = encoder.set_index(["target", "score"])
    perfect = found.loc[("λ 0.1", "relevance")]
    assert perfect["auc"] == perfect["high"] == 1.0 and 0.8 < perfect["low"] < 1.0 and perfect["p_value"] < 0.001
    assert found.loc[("λ 0.1", "relevance"), ["seeds", "heads", "survivors"]].tolist() == [2, 48, 20]
    assert np.isnan(found.loc[("λ 0.01", "relevance"), "auc"])  # all survive
    assert found.loc[(survival.SWEEP, "relevance"), "auc"] == 1.0
    sweep = rows[rows["target"] == survival.SWEEP]
    assert set(sweep["scope"]) == {"encoder", "all"} and sweep[["low", "high"]].isna().all(axis=None)
    # What the layers alone would tell, as a reference.
    assert 0 < found.loc[("λ 0.1", "layer"), "auc"] < 1
    baselines, survivors = models
    concordant = []
    for seed in (1, 2):
        table = baselines[make.model(f"baseline/seed{seed}")].query("type == 'encoder'")
        left = survivors[make.model(f"pruned/encoder_lambda0.1/seed{seed}")]
        survive = [("encoder", *key) in left for key in zip(table["layer"], table["head"])]
        concordant.append(area(table["functions"].map(bool).astype(float), survive))
    assert found.loc[("λ 0.1", "specialised"), "auc"] == pytest.approx(np.mean(concordant))
    assert found.loc[("λ 0.1", "specialised"), "labelled"] == 14
    decoder = rows[rows["type"] == "decoder"]
    assert decoder["auc"].isna().all() and not set(survival.ENCODER_ONLY) & set(decoder["score"])


def test_a_model_without_its_baseline_is_a_mistake(make, models):
    baselines, survivors = models
    first = make.model("baseline/seed1")
    with pytest.raises(UserError, match="no baseline of seed 2"):
        survival.numbers({first: baselines[first]}, survivors)


def test_survival_without_labels_or_without_models_says_so(make, models):
    baselines, survivors = models
    for table in baselines.values():
        table["functions"] = [[] for _ in range(len(table))]
    rows = survival.numbers(baselines, survivors)
    assert rows.loc[rows["score"] == "specialised", "auc"].isna().all()
    assert rows.loc[(rows["score"] == "relevance") & (rows["target"] == "λ 0.1"), "auc"].tolist() == [1.0]
    shown = survival.shown(rows)
    assert set(shown["specialised"]) == {"–"} and shown["with a function"].tolist()[0] == "0"
    written = make.texts(survival.draw(rows, title="EN-FR"))
    assert "no pruned models" in make.texts(survival.draw(survival.numbers(baselines, {}), title="EN-FR"))[0]
    assert any("0 of 48 heads have a function" in text for text in written)
    assert "all heads survive, or none does" in written


def test_survival_reads_descriptions_of_models(stage, write, make, tmp_path):
    description = {
        "architecture": {
            "source_vocabulary": 9, "target_vocabulary": 9, "width": 8, "feed_forward": 8, "head_width": 1,
            "encoder": [[0, 2], [], [7]], "decoder": [list(range(8))] * 3, "cross": [list(range(8))] * 3,
        }
    }  # fmt: skip
    path = write("model.json", description)
    encoder = {("encoder", 1, 1), ("encoder", 1, 3), ("encoder", 3, 8)}
    assert {head for head in survival.left_heads(path) if head[0] == "encoder"} == encoder
    pruned = make.as_runs(["pruned/encoder_lambda0.1/seed1"])
    settings = {"baselines": make.as_runs(["baseline/seed1"]), "pruned": pruned, "title": "EN-FR"}
    files = {"heads": [write("heads.parquet", make.heads())], "models": [path]}
    stem = stage("survival", settings, **files)
    rows = pd.read_csv(stem.with_suffix(".csv"))
    assert rows.loc[rows["target"] == "λ 0.1", "survivors"].unique().tolist() == [3]
    assert "| encoder heads pruned | encoder | λ 0.1 | 3 of 24 | 7 |" in stem.with_suffix(".md").read_text()
    with pytest.raises(UserError, match="2 pruned for 1 files"):
        stage("survival", settings | {"pruned": pruned * 2}, **files)


def subject(form: str, upos: str, relation: str = "nsubj") -> list[Word]:
    return [Word(form, 0, len(form), 2, relation, upos), Word("runs", 9, 13, 0, "root", "VERB")]


def test_persons_of_subjects():
    forms = [("I", "PRON"), ("We", "PRON"), ("you", "PRON"), ("it", "PRON"), ("Who", "PRON"), ("US", "PROPN")]
    trees = [subject(*form) for form in forms]
    trees += [subject("dogs", "NOUN", "nsubj:pass"), subject("two", "NUM"), subject("me", "PRON", "obj")]
    rows = persons.numbers({"EN-FR": trees}, languages=["en"])
    assert rows.set_index("person")["count"].to_dict() == {
        "first person": 2, "second person": 1, "third person": 1, "other pronoun": 1, "noun": 2, "other": 1,
    }  # fmt: skip
    assert rows["subjects"].unique().tolist() == [8]
    assert rows["share"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("form", "upos", "person"),
    [
        ("I", "X", "first person"), ("I", "PROPN", "first person"), ("mine", "PRON", "first person"),
        ("mine", "NOUN", "noun"), ("IT", "PROPN", "noun"), ("it", "DET", "third person"), ("theirs", "PRON", "third person"),
        ("Themself", "PRON", "third person"), ("Y’all", "PRON", "second person"), ("this", "PRON", "other pronoun"),
        ("this", "DET", "other"), ("you", "_", "second person"), ("dogs", "_", "other"),
    ],
)  # fmt: skip
def test_personal_pronouns_are_told_by_their_form_and_the_rest_by_its_tag(form: str, upos: str, person: str) -> None:
    rows = persons.numbers({"EN-FR": [subject(form, upos)]}, languages=["en-GB"]).set_index("person")
    assert rows["count"].to_dict() == dict.fromkeys(persons.PERSONS, 0) | {person: 1}
    assert rows["untagged"].unique().tolist() == [int(upos == "_")]


def test_subjects_without_part_of_speech_are_said(stage, tmp_path):
    write_parses(tmp_path / "en", [subject("I", "_"), subject("dogs", "NNS"), subject("cats", "NOUN")])
    stem = stage("persons", {"titles": ["English"], "languages": ["en_US"]}, parses=[tmp_path / "en"])
    line = stem.with_suffix(".md").read_text(encoding="utf-8").splitlines()[4]
    note = "2 subjects without a universal part of speech, counted as other unless personal pronouns"
    assert line == f"| English | 3 | 33.3 | 0.0 | 0.0 | 0.0 | 33.3 | 33.3 | {note} |"
