"""Claims: each measure on tables whose answer is known, and a verdict that follows the tables it is computed from."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report.claims import michel, of_ablation, of_heads, of_scores, table, voita
from specialized_heads.report.claims.claim import Measured, Untestable, Verdict, judge, proportion
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.stage import UserError

WHOLE = [[8, 8, 8]] * 3


def model(
    kind: str, scope: str, lam: float, seed: int, loss: float, kept: list[list[int]], *, updates: int = 900
) -> dict:
    """A row of scores: so much BLEU below a baseline of 30, its interval half a point to both sides."""
    row = {"kind": kind, "scope": scope, "lam": lam, "asked": nan, "seed": seed, "updates": updates, "sentences": 1000}
    row |= {
        "bleu": 30 - loss,
        "bleu_low": 29 - loss,
        "bleu_high": 31 - loss,
        "p_value": 0.5,
        "bleu_tokenised": 31.5 - loss,
    }
    for name, layers in zip(("encoder", "decoder", "cross"), kept, strict=True):
        row |= {f"{name}_heads": layers, f"{name}_total": sum(layers)}
    ends = (nan, nan, nan) if kind == "baseline" else (-loss, -loss - 0.5, -loss + 0.5)
    return row | dict(zip(("difference", "difference_low", "difference_high"), ends, strict=True))


def scores(*extra: dict, seed: int = 1) -> pd.DataFrame:
    """A baseline; encoder heads 12 of 24 at a loss of 0.2 and 3 at 1.0; and two models pruned in all types."""
    rows = [
        model("baseline", "", nan, seed, 0, WHOLE),
        model("pruned", "encoder", 0.01, seed, 0.2, [[6, 4, 2], [8, 8, 8], [8, 8, 8]]),
        model("pruned", "encoder", 0.02, seed, 1.0, [[3, 0, 0], [8, 8, 8], [8, 8, 8]]),
        model("pruned", "all", 0.01, seed, 0.1, [[4, 2, 2], [8, 6, 4], [6, 8, 8]]),
        model("pruned", "all", 0.03, seed, 0.7, [[0, 0, 0], [2, 0, 0], [0, 1, 3]]),
        *extra,
    ]
    return pd.DataFrame(rows)


def labelled(heads: pd.DataFrame, kind: str, *, lam: float = nan, scope: str = "", seed: int = 1) -> pd.DataFrame:
    return heads.assign(kind=kind, scope=scope, lam=lam, asked=nan, seed=seed, positional_ceiling=0.95)


def survivors(heads: pd.DataFrame, left: list[tuple[int, int]]) -> pd.DataFrame:
    """The table of a model that has these encoder heads, as (layer, head), and all others."""
    encoder = heads["type"] == "encoder"
    kept = [pair in left for pair in zip(heads["layer"], heads["head"], strict=True)]
    return heads[~encoder | np.array(kept)]


def all_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """These heads, seven of which have a function, as the baseline's, and those of the two encoder-pruned models."""
    for end in ("margin_low", "margin_high"):
        for column in [name for name in heads if name.endswith("_margin")]:
            heads[column.removesuffix("margin") + end] = heads[column] + (0.03 if end.endswith("high") else -0.03)
    first = survivors(
        heads, [(1, 1), (1, 2), (1, 3), (1, 7), (1, 5), (1, 6), (2, 5), (2, 6), (2, 7), (2, 8), (3, 4), (3, 5)]
    )
    second = survivors(heads, [(1, 2), (1, 4), (1, 5)])
    return pd.concat(
        [
            labelled(heads, "baseline"),
            labelled(first, "pruned", lam=0.01, scope="encoder"),
            labelled(second, "pruned", lam=0.02, scope="encoder"),
        ],
        ignore_index=True,
    )


def ablation() -> pd.DataFrame:
    """Single heads of a model of BLEU 30: each costs as much as its number says; two of the encoder's are significant."""
    rows = []
    for kind in ("encoder", "decoder", "cross"):
        for layer in (1, 2, 3):
            for head in range(1, 9):
                row = {"type": kind, "layer": layer, "head": head, "bleu_full": 30.0, "sentences": 1000, "seed": 1}
                loss = 0.1 * head + (0.01 * layer)
                sure = kind == "encoder" and layer == 1 and head > 6
                rows.append(row | delta("without", loss, p_value=0.001 if sure else 0.4))
                alone = 12.0 + head if (kind, layer) == ("cross", 3) else layer + 0.1 * head
                rows.append(row | delta("alone", alone, p_value=0.001))
    return pd.DataFrame(rows).assign(moment=pd.NA)


def delta(what: str, loss: float, *, p_value: float) -> dict:
    ends = {"delta": -loss, "delta_low": -loss - 0.3, "delta_high": -loss + 0.3}
    return {"what": what, "bleu": 30 - loss, "p_value": p_value} | ends


def systematic() -> pd.DataFrame:
    """BLEU of 30 as heads are removed: at the end of training nothing is lost up to half of them, early it falls at once."""
    rows = []
    for moment, full in ((100, 0.5), (300, 10.0), (pd.NA, 30.0)):
        for pruned, heads in (("all", 72), ("encoder", 24), ("decoder", 24), ("cross", 24)):
            for tenth in range(11):
                share = tenth / 10
                kept = 1 - share if moment is not pd.NA or pruned == "cross" else min(1.0, 2 * (1 - share))
                row = {"pruned": pruned, "removed": round(share * heads), "heads": heads, "share": share}
                ends = {
                    f"delta{end}": full * (kept - 1) + add for end, add in (("", 0), ("_low", -0.3), ("_high", 0.3))
                }
                row |= {"bleu": full * kept, "bleu_full": full, "p_value": 0.5, "sentences": 1000}
                rows.append(row | ends | {"seed": 1, "moment": moment})
    return pd.DataFrame(rows).astype({"moment": "Int64"})


@pytest.fixture
def evidence(make: SimpleNamespace) -> Evidence:
    return Evidence(
        title="a",
        stands_for="",
        pruned=True,
        scores=scores(),
        heads=all_heads(make.heads()),
        single=ablation(),
        second=ablation(),
        systematic=systematic(),
        positional_share=0.9,
        least_arcs=30,
    )


@pytest.mark.parametrize(
    ("found", "accepted", "verdict"),
    [
        (Measured(0.5), (0.5, 1.0), Verdict.REPRODUCED),
        (Measured(2.0, 1.0, 3.0), (-inf, 2.0), Verdict.REPRODUCED),
        (Measured(2.1, 1.0, 3.0), (-inf, 2.0), Verdict.PARTLY),
        (Measured(2.1, 2.05, 3.0), (-inf, 2.0), Verdict.NOT_REPRODUCED),
        (Measured(0.4, 0.3, 0.6), (0.5, 1.0), Verdict.PARTLY),
        (Measured(0.4), (0.5, 1.0), Verdict.NOT_REPRODUCED),  # no interval, no doubt
        (Untestable("no data"), (0.5, 1.0), Verdict.NOT_TESTABLE),
    ],
)
def test_a_verdict_follows_from_the_value_its_interval_and_the_range(
    found: Measured | Untestable, accepted: tuple[float, float], verdict: Verdict
) -> None:
    assert judge(found, accepted) == verdict


def test_the_interval_of_a_share_is_wilson_s() -> None:
    found = proportion(3, 3, of="models")
    assert (found.value, found.high, found.n) == (1.0, 1.0, 3)
    assert found.low == pytest.approx(0.4385, abs=1e-4)  # 1 / (1 + z² / 3)
    half = proportion(8, 96, of="heads")
    assert (half.low, half.high) == pytest.approx((0.0428, 0.1559), abs=1e-4)


def test_bleu_at_a_share_lies_on_the_line_between_two_models(evidence: Evidence) -> None:
    found = of_scores.difference("encoder", 0.5)(evidence)
    assert (found.value, found.low, found.high) == pytest.approx((-0.2, -0.7, 0.3))
    between = of_scores.difference("encoder", 0.75)(evidence)  # half-way from the baseline to 12 of 24
    assert (between.value, between.low, between.high) == pytest.approx((-0.1, -0.35, 0.15))
    assert of_scores.difference("encoder", 0.3125)(evidence).value == pytest.approx(-0.6)
    untestable = of_scores.difference("encoder", 0.1)(evidence)
    assert "smallest model has 12% of its heads left, not 10%" in untestable.reason
    two_seeds = replace(evidence, scores=pd.concat([evidence.scores, scores(seed=2).assign(difference=-0.4)]))
    assert of_scores.difference("encoder", 0.5)(two_seeds).value == pytest.approx((-0.2 - 0.4) / 2)
    none = replace(evidence, scores=evidence.scores[evidence.scores["kind"] == "baseline"])
    assert isinstance(of_scores.difference("encoder", 0.5)(none), Untestable)


def test_scores_are_compared_on_the_paper_s_data_alone(evidence: Evidence) -> None:
    measure = of_scores.baseline_bleu("wmt")
    assert isinstance(measure(evidence), Untestable)
    assert isinstance(measure(replace(evidence, stands_for="opensubtitles")), Untestable)
    scored = evidence.scores.assign(bleu_tokenised_low=30.0, bleu_tokenised_high=33.0)
    assert measure(replace(evidence, stands_for="wmt", scores=scored)) == Measured(31.5, 30.0, 33.0, 1000, "sentences")


def test_pruned_models_against_twins(evidence: Evidence) -> None:
    measure = of_scores.better_than("scratch")
    assert "kind scratch" in measure(evidence).reason
    twins = [
        model("scratch", "all", 0.01, 1, 0.5, [[4, 2, 2], [8, 6, 4], [6, 8, 8]]),
        model("scratch", "all", 0.03, 1, 0.9, [[0, 0, 0], [2, 0, 0], [0, 1, 3]]),
    ]
    found = measure(replace(evidence, scores=scores(*twins)))
    half = (0.5**2 + 0.5**2) ** 0.5
    assert (found.value, found.low, found.high, found.n) == pytest.approx((0.3, 0.3 - half, 0.3 + half, 2))
    short = [twin | {"updates": 899} for twin in twins]
    assert "for 899 updates, the baseline for 900" in measure(replace(evidence, scores=scores(*short))).reason


def test_types_and_layers_that_lose_heads(evidence: Evidence) -> None:
    first, last = (claim for claim in voita.claims() if claim.name in ("encoder_first", "cross_last"))
    assert (first.measure(evidence).value, last.measure(evidence).value) == (1.0, 1.0)
    tied = model("pruned", "all", 0.02, 1, 0.3, [[4, 2, 2], [4, 2, 2], [4, 2, 2]])
    mixed = replace(evidence, scores=scores(tied))
    assert (first.measure(mixed).value, first.measure(mixed).n) == (pytest.approx(2 / 3), 3)
    # Decoder heads 8/6/4 and 2/0/0 lie low, cross-attention 6/8/8 and 0/1/3 high.
    assert of_scores.centre("decoder", low=True)(evidence).value == 1.0
    assert of_scores.centre("decoder", low=False)(evidence).value == 0.0
    assert of_scores.centre("cross", low=False)(evidence).value == 1.0
    assert of_scores.centre("cross", low=False)(mixed).value == pytest.approx(2 / 3)
    whole = replace(evidence, scores=evidence.scores[evidence.scores["kind"] == "baseline"])
    assert isinstance(of_scores.centre("cross", low=False)(whole), Untestable)


def test_functions_of_heads(evidence: Evidence) -> None:
    heads = evidence.baseline_heads()
    best = heads.loc[heads["nsubj_head_to_dependent"].idxmax()]
    found = of_heads.margin("nsubj", "head_to_dependent")(evidence)
    assert (found.value, found.n) == (pytest.approx(best["nsubj_head_to_dependent"] - 0.4), 301)
    assert found.high - found.low == pytest.approx(0.06)
    assert "302 arcs" in of_heads.margin("obj", "head_to_dependent")(replace(evidence, least_arcs=400)).reason
    assert isinstance(of_heads.margin("conj", "head_to_dependent")(evidence), Untestable)

    assert of_heads.positional_share(evidence).value == pytest.approx(heads["positional_share"].max())
    few = evidence.heads.assign(positional_share=0.5, positional_ceiling=0.885, positional_offset=-1)
    assert "88.5%" in of_heads.positional_share(replace(evidence, heads=few)).reason
    could = few.assign(positional_ceiling=0.95)
    assert of_heads.positional_share(replace(evidence, heads=could)).value == 0.5
    positional = heads[[("positional" in names) for names in heads["functions"]]]
    assert of_heads.positional_confidence(evidence).value == pytest.approx(positional["confidence"].min())
    first = heads.loc[heads["layer"] == 1, "rarest"]
    assert of_heads.rare_words("rarest")(evidence).value == pytest.approx(first.max())


def test_which_heads_survive(evidence: Evidence) -> None:
    # 7 of 24 heads have a function: all of them are among the 12 that are left first, one among the last 3.
    found = of_heads.specialised_last(evidence)
    assert found.value == pytest.approx((7 + 1) / 14 - (5 + 2) / 34)
    assert found.low < found.value < found.high
    assert of_heads.functions_kept(17 / 48)(evidence) == Measured(1.0, n=3, of="functions")
    # With 3 heads the model is the nearest to an eighth, and has positional heads alone.
    assert of_heads.functions_kept(0.1)(evidence).value == pytest.approx(1 / 3)
    none = evidence.heads.assign(functions=[[] for _ in range(len(evidence.heads))])
    assert isinstance(of_heads.specialised_last(replace(evidence, heads=none)), Untestable)
    assert isinstance(of_heads.functions_kept(0.1)(replace(evidence, heads=none)), Untestable)


def test_ablation(evidence: Evidence) -> None:
    assert of_ablation.significant(evidence).value == pytest.approx(2 / 24)
    last = of_ablation.one_left(rank=False)(evidence)
    assert (last.value, last.low, last.high) == pytest.approx((-13.0, -13.3, -12.7))
    assert of_ablation.one_left(rank=True)(evidence) == Measured(1.0, n=9, of="layers")
    assert of_ablation.two_sets(evidence).value == pytest.approx(1.0)
    other = replace(evidence, second=evidence.second.assign(delta=-evidence.second["delta"]))
    assert of_ablation.two_sets(other).value == pytest.approx(-1.0)
    empty = evidence.single.iloc[:0]
    for measure in (of_ablation.significant, of_ablation.two_sets, of_ablation.one_left(rank=True)):
        assert "ablation.single" in measure(replace(evidence, single=empty, second=empty)).reason


def test_pruning_in_order_of_importance(evidence: Evidence) -> None:
    found = of_ablation.removed("all", 0.55)(evidence)
    assert found.value == pytest.approx(-0.1)
    assert found.high - found.low == pytest.approx(0.6 / 30)
    assert of_ablation.removed("cross", 0.8)(evidence).value == pytest.approx(-0.8)
    assert of_ablation.redundant_at_the_end(0.9)(evidence).value == pytest.approx(0.5)
    # After 300 updates a tenth of the heads costs a tenth of BLEU; after 100 there is no BLEU to speak of.
    assert of_ablation.more_redundant_than_early(0.9)(evidence).value == pytest.approx(0.5 - 0.1)
    end_alone = replace(evidence, systematic=evidence.systematic[evidence.systematic["moment"].isna()])
    assert "ablation.moments" in of_ablation.more_redundant_than_early(0.9)(end_alone).reason
    none = replace(evidence, systematic=evidence.systematic.iloc[:0])
    assert "ablation.systematic" in of_ablation.removed("all", 0.2)(none).reason


def test_the_papers_own_numbers_are_in_the_accepted_ranges() -> None:
    every = [*voita.claims(), *michel.claims()]
    assert len({claim.name for claim in every}) == len(every)
    assert all(claim.accepted[0] <= claim.accepted[1] for claim in every)
    ranges = {claim.name: claim.accepted for claim in every}
    for name, reported in {
        "baseline_wmt": 29.6,
        "encoder_wmt": -0.15,
        "encoder_opensubtitles": -0.25,
        "all_wmt_14_31_30": 0.02,
        "all_opensubtitles_6_9_13": -0.13,
        "obj_dependent_to_head": 0.38,
        "rarest_opensubtitles": 0.66,
        "two_rarest_wmt": 0.5,
        "scratch_size": 0.43,
        "cross_last": 6 / 7,
        "single": 8 / 96,
        "last_cross": -13.56,
        "redundant_late": 0.4,
    }.items():
        assert judge(Measured(reported), ranges[name]) == Verdict.REPRODUCED, name


@pytest.fixture
def files(tmp_path: Path, evidence: Evidence) -> dict[str, list[Path]]:
    """The evidence as files, in the order of `settings`."""
    found: dict[str, list[Path]] = {}

    def write(name: str, frame: pd.DataFrame, label: str = "") -> None:
        path = tmp_path / f"{name}{label}.parquet"
        frame.to_parquet(path)
        found.setdefault(name, []).append(path)

    write("scores", evidence.scores)
    for number, (_, same) in enumerate(evidence.heads.groupby("lam", dropna=False)):
        own = ["kind", "scope", "lam", "asked", "seed"]
        write("heads", same.drop(columns=own), str(number))
    write("single", evidence.single.drop(columns=["seed", "moment"]))
    write("second", evidence.second.drop(columns=["seed", "moment"]))
    ends = evidence.systematic[evidence.systematic["moment"].isna()]
    write("systematic", ends.drop(columns=["seed", "moment"]))
    return found


@pytest.fixture
def settings() -> dict:
    run = {"corpus": "a", "seed": 1, "moment": None}
    head = {"corpus": "a", "seed": 1, "asked": None}
    pruned = [head | {"kind": "pruned", "scope": "encoder", "lam": lam} for lam in (0.01, 0.02)]
    return {
        "corpora": [{"title": "a", "stands_for": "", "pruned": True, "positional_share": 0.9, "least_arcs": 30}],
        "heads": [*pruned, head | {"kind": "baseline", "scope": "", "lam": None}],
        "single": [run],
        "second": [run],
        "systematic": [run],
    }


def test_another_result_is_another_verdict(
    call: Callable[..., None], files: dict[str, list[Path]], settings: dict, tmp_path: Path
) -> None:
    def verdicts() -> dict[str, str]:
        call(table, settings=settings, output=tmp_path / "claims", **files)
        rows = pd.read_csv(tmp_path / "claims.csv").set_index("claim")
        assert len(rows) == len(voita.claims()) + len(michel.claims())
        return rows["verdict"].to_dict()

    before = verdicts()
    assert (before["encoder_opensubtitles"], before["single"], before["functions_kept"]) == (
        "not testable",  # 12% of the heads are left, not 8%
        "reproduced",
        "reproduced",
    )
    assert before["encoder_wmt"] == "partly"  # −0.82 [−1.32, −0.32] at 21%, −0.65 would do
    written = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "−0.82 \\[−1.32, −0.32\\]" in written and "1,000 sentences" in written

    changed = pd.read_parquet(files["scores"][0])
    few = changed["encoder_total"] == 3
    changed.loc[few, ["difference", "difference_low", "difference_high"]] = [-0.3, -0.8, 0.2]
    changed.to_parquet(files["scores"][0])
    assert verdicts()["encoder_wmt"] == "reproduced"
    changed.loc[few, ["difference", "difference_low", "difference_high"]] = [-3.0, -3.5, -2.5]
    changed.to_parquet(files["scores"][0])
    after = verdicts()
    assert after["encoder_wmt"] == "not reproduced"
    # And nothing else that rests on other files.
    assert {name for name in after if after[name] != before[name]} == {"encoder_wmt"}

    single = pd.read_parquet(files["single"][0]).assign(p_value=0.001)
    single.to_parquet(files["single"][0])
    assert verdicts()["single"] == "not reproduced"


def test_a_corpus_that_is_not_pruned_has_claims_of_heads_alone(evidence: Evidence) -> None:
    baseline = evidence.scores[evidence.scores["kind"] == "baseline"]
    other = replace(evidence, title="b", pruned=False, scores=baseline)
    rows = table.numbers([evidence, other])
    of_heads_alone = {claim.name for claim in voita.claims() if not claim.of_pruning}
    assert set(rows.loc[rows["corpus"] == "b", "claim"]) == of_heads_alone
    text = table.caption(rows)
    assert "a: " in text and "b: " in text and "not testable" in text
    shown = table.shown(rows)
    # What no corpus can test for the same reason is said once.
    assert (shown["corpus"] == "any").sum() == shown.loc[shown["corpus"] == "any", "claim"].nunique() > 0


def test_a_missing_file_is_an_error(
    call: Callable[..., None], files: dict[str, list[Path]], settings: dict, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="settings: heads: 3 entries for 2 files"):
        call(table, settings=settings, output=tmp_path / "claims", **files | {"heads": files["heads"][:2]})
    frame = pd.read_parquet(files["scores"][0]).drop(columns="difference_low")
    frame.to_parquet(files["scores"][0])
    with pytest.raises(UserError, match="difference_low is missing"):
        call(table, settings=settings, output=tmp_path / "claims", **files)
