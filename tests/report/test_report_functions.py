"""What is made of the functions of heads beyond the paper: drift, survival, and the person of subjects."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.report.beyond import drift, persons, survival


def test_drift_names_the_best_head_and_what_became_of_the_first(make) -> None:
    """A baseline, the same without its best nsubj head, one with a better one beside it, and one without encoder heads."""
    base = make.heads()
    encoder = base["type"] == "encoder"
    base.loc[encoder, "nsubj_head_to_dependent"] = np.linspace(0.1, 0.6, encoder.sum())
    base.at[base.index[encoder][-1], "relations"] = ["nsubj_head_to_dependent"]
    overtaken = base.copy()
    overtaken.loc[3, "nsubj_head_to_dependent"] = 0.9
    models = {
        "pruned/encoder_lambda0.5": base[~encoder],
        "pruned/encoder_lambda0.01": overtaken,
        "baseline": base,
        "pruned/encoder_lambda0.1": base.drop(base.index[encoder][-1]),
    }
    cells = drift.numbers(make.tables(heads={"EN-FR": models}, relations={"EN-FR": make.relations()}))
    assert set(cells["scope"]) == set(cells["type"]) == {"encoder"}
    subjects = cells[cells["function"] == "nsubj v→s"]
    assert subjects["lam"].tolist()[1:] == [0.01, 0.1, 0.5]
    assert subjects["heads"].tolist() == [24, 24, 23, 0]
    assert subjects["carrier"].tolist() == [drift.SAME, drift.MOVED, drift.LOST, drift.NONE]
    assert list(zip(subjects["layer"], subjects["head"]))[:3] == [(3, 8), (1, 4), (3, 7)]
    assert subjects["score"].tolist()[:2] == pytest.approx([0.6, 0.9])
    assert subjects["labelled"].tolist() == [True, False, False, False]
    assert subjects["baseline"].tolist()[0] == 0.4
    assert {"nsubj v→s", "24 none pruned", "0 λ 0.5", "3-8"} <= set(make.texts(drift.draw(cells)))


def test_drift_tells_types_and_offsets_apart(make) -> None:
    base = make.heads(1, 4)
    base["positional_share"] = [0.5, 0.6, 0.7, 0.95, *[0.5] * 4, 0.99, 0.5, 0.6, 0.99]
    base["positional_offset"] = [-1, -1, -2, 1, *[0] * 4, *[-2, -1, 1, 2]]
    base[[f"amod_{direction}" for direction in ("head_to_dependent", "dependent_to_head")]] = np.nan
    fewer = base.drop(base.index[3])
    fewer.loc[0, "positional_share"] = 0.65
    heads = {"baseline": base, "pruned/all_heads11": fewer}
    cells = drift.numbers(make.tables(heads={"EN-FR": heads}, relations={"EN-FR": make.relations()}))
    found = {key: list(zip(own["head"].fillna(0), own["carrier"])) for key, own in cells.groupby("function")}
    assert found["positional −1"] == [(2, drift.SAME), (1, drift.MOVED)]
    assert found["positional +1"] == [(4, drift.SAME), (0, drift.NONE)]  # head 3 looks two back
    assert found["positional 0, decoder"] == [(1, drift.SAME)] * 2
    assert found["diagonal, cross"] == [(3, drift.SAME)] * 2  # not 1 or 4, which are two beside the diagonal
    # What no model has is left out.
    assert not set(found) & {"positional 0", "positional −1, decoder", "amod n→a"} and len(found) == 5 + 6


# Survival


def area(scores, survive) -> float:
    """The area under the curve, pair by pair."""
    pairs = [(a, b) for (a, x), (b, y) in itertools.product(zip(scores, survive), repeat=2) if x and not y]
    return np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])


def test_the_area_under_the_curve_is_the_share_of_pairs() -> None:
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


def test_only_heads_of_one_seed_are_compared_and_an_interval_needs_two_on_each_side() -> None:
    # Within a seed scores say nothing; between seeds they would seem to say everything.
    survive = [np.array([1.0, 0.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])]
    value, low, high, p_value = survival.concordance([np.full(4, 1.0), np.full(4, 9.0)], survive)
    assert (value, p_value) == (0.5, 1.0) and low < 0.2 and high > 0.8
    value, low, high, p_value = survival.concordance([np.arange(5.0)], [np.array([0.0, 1, 1, 1, 1])])
    assert value == 1.0 and np.isnan([low, high]).all()
    assert p_value == pytest.approx(2 / 5, abs=0.04)  # the one that is pruned is the first of five, or the last
    assert np.isnan(survival.concordance([np.arange(5.0)], [np.ones(5)])).all()
    # One survivor in one seed, and all heads of the other: the one is on one side of every comparison.
    both = survival.concordance([np.arange(24.0)] * 2, [np.eye(24)[23], np.ones(24)])
    assert np.isnan(both[1:3]).all()


@pytest.mark.parametrize("survivors, heads, true", [(4, 24, 0.76), (20, 24, 0.76), (4, 24, 0.5), (24, 48, 0.9)])
def test_intervals_hold_the_true_area_as_often_as_they_say(survivors: int, heads: int, true: float) -> None:
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


def test_intervals_of_strata_are_narrower_than_those_of_each() -> None:
    alone, together = (survival.newcombe(0.76, [(8, 16)] * count) for count in (1, 4))
    assert alone[0] < together[0] < 0.76 < together[1] < alone[1]
    spread = [high - low for low, high in (alone, together)]
    assert spread[0] / spread[1] == pytest.approx(2, rel=0.1)  # four times as much: half as wide
    low, high = survival.newcombe(1.0, [(4, 20)])
    assert 0.5 < low < 0.9 and high == 1.0


def test_p_values_are_those_of_all_permutations() -> None:
    scores, survive = np.array([5.0, 3, 4, 1, 2, 0, 6]), np.array([1.0, 1, 0, 0, 0, 0, 1])
    areas = [area(scores, np.isin(np.arange(7), chosen)) for chosen in itertools.combinations(range(7), 3)]
    exact = np.mean(np.abs(np.array(areas) - 0.5) >= abs(area(scores, survive) - 0.5) - 1e-9)
    found = [survival.concordance([scores], [survive], seed=seed)[3] for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert found == pytest.approx([exact] * 3, abs=0.03)


@pytest.mark.parametrize("labels", [True, False])
def test_survival_by_scope_type_and_model(make, labels: bool) -> None:
    """Of two seeds and both scopes: one model keeps the most relevant heads, one keeps all."""
    heads, concordant = {}, []
    for seed in (1, 2):
        whole = make.heads(seed=seed)
        if not labels:
            whole["functions"] = [[] for _ in range(len(whole))]
        left = make.without(whole, 10)
        heads[f"baseline/seed{seed}"] = heads[f"pruned/encoder_lambda0.01/seed{seed}"] = whole
        heads[f"pruned/encoder_lambda0.1/seed{seed}"] = heads[f"pruned/all_heads58/seed{seed}"] = left
        encoder = whole[whole["type"] == "encoder"]
        kept = set(zip(left["type"], left["layer"], left["head"]))
        survive = [head in kept for head in zip(encoder["type"], encoder["layer"], encoder["head"])]
        concordant.append(area(encoder["functions"].map(len) > 0, survive))
    rows = survival.numbers(make.tables(heads={"EN-FR": heads}))
    assert set(rows.loc[rows["scope"] == "all", "type"]) == {"encoder", "decoder", "cross"}
    encoder = rows[rows["scope"] == "encoder"]
    assert encoder["target"].unique().tolist() == ["λ 0.01", "λ 0.1", survival.SWEEP]
    found = encoder.set_index(["target", "score"])
    perfect = found.loc[("λ 0.1", "relevance")]
    assert perfect["auc"] == perfect["high"] == 1.0 and 0.8 < perfect["low"] < 1.0 and perfect["p_value"] < 0.001
    assert perfect[["seeds", "heads", "survivors"]].tolist() == [2, 48, 20]
    assert np.isnan(found.loc[("λ 0.01", "relevance"), "auc"])  # all survive
    sweep = found.loc[(survival.SWEEP, "relevance")]
    assert sweep["auc"] == 1.0 and sweep[["low", "high"]].isna().all()
    specialised = found.loc[("λ 0.1", "specialised")]
    assert specialised["labelled"] == 14 * labels
    assert specialised["auc"] == pytest.approx(np.mean(concordant) if labels else math.nan, nan_ok=True)
    decoder = rows[rows["type"] == "decoder"]
    assert decoder["auc"].isna().all() and not set(survival.ENCODER_ONLY) & set(decoder["score"])
    line = survival.shown(rows).set_index("model").loc["λ 0.1"]
    assert line[["survivors", "with a function"]].tolist() == ["20 of 48", f"{14 * labels}"]


# Persons

SUBJECTS = {
    "first person": "I/PRON I/X We/PRON mine/PRON",
    "second person": "you/PRON you/_ Y’all/PRON",
    "third person": "it/PRON it/DET",
    "other pronoun": "Who/PRON this/PRON",
    "noun": "US/PROPN IT/PROPN mine/NOUN dogs/NOUN",
    "other": "two/NUM this/DET dogs/_",
}


def subject(word: str, relation: str = "nsubj") -> list[Word]:
    form, upos = word.split("/")
    return [Word(form, 0, len(form), 2, relation, upos), Word("runs", 9, 13, 0, "root", "VERB")]


def test_persons_of_subjects(tmp_path) -> None:
    """Personal pronouns are told by their form, and the rest by its tag."""
    trees = [subject(word) for words in SUBJECTS.values() for word in words.split()]
    trees += [subject("dogs/NOUN", "nsubj:pass"), subject("me/PRON", "obj")]
    for language, sentences in {"en-GB": trees, "de": trees[:1], "fr": [[]]}.items():
        write_parses(tmp_path / language, sentences)
    languages = {language: language for language in ("en-GB", "de", "fr")}
    rows = persons.numbers(None, {language: tmp_path / language for language in languages}, languages=languages)
    english = rows[rows["corpus"] == "en-GB"].set_index("person")
    expected = {person: len(words.split()) + (person == "noun") for person, words in SUBJECTS.items()}
    assert english["count"].to_dict() == expected
    assert english[["subjects", "untagged"]].drop_duplicates().values.tolist() == [[sum(expected.values()), 2]]
    lines = persons.shown(rows)
    assert lines["first person"].tolist() == [f"{400 / sum(expected.values()):.1f}"]
