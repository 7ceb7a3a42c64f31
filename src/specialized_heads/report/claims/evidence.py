"""The evidence of a corpus for all claims, and quantities that several claims need.

Each seed has a baseline of its own, with the models pruned from it.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import nan

import numpy as np
import pandas as pd

from specialized_heads.experiment.names import MIN_DECIDED
from specialized_heads.heads.functions import POSITIONAL, SYNTACTIC
from specialized_heads.model.architecture import SCOPES
from specialized_heads.report.data import (
    COUNTERPART,
    RULES,
    SAMPLES,
    Tables,
    has_samples,
    in_order_of_importance,
    is_decided,
    mean_of_samples,
    parted,
    removed,
    with_ends,
    without_penalty,
)
from specialized_heads.report.style import minus
from specialized_heads.stage import log

LEAST_BASELINES = 3  # for more than "partly": one training may be an exception
MIN_BASELINE = 5.0  # BLEU; no model can lose more than its baseline has
MIN_LEARNED = 5.0  # points of a classifier's score
Z_PLUS = "relevance_z_plus"  # relevance by the rule of the paper's code
MODEL = ["scope", "lam", "target_heads", "seed"]  # columns that identify a pruned model
HEAD = ["seed", "type", "layer", "head"]  # columns that identify a head of a baseline


class Unit(StrEnum):
    """The unit of a value, which decides its format."""

    BLEU = "BLEU"
    DIFFERENCE = "difference"  # of BLEU
    SHARE = "share"  # in percent
    POINTS = "points"  # difference of two shares, in percentage points
    CORRELATION = "correlation"
    AREA = "AUC"

    def text(self, value: float) -> str:
        return minus(f"{100 * value if self is Unit.POINTS else value:{FORMS.get(self, '.2f')}}")


FORMS = {
    Unit.BLEU: ".1f",
    Unit.DIFFERENCE: "+.2f",
    Unit.SHARE: ".0%",
    Unit.POINTS: "+z.0f",
}


@dataclass(frozen=True)
class Measured:
    """A number with its 95% interval, if it has one."""

    value: float
    low: float = nan
    high: float = nan
    n: int | None = None  # sample size
    of: str = ""  # what it counts
    # what the number is compared with, how strong the evidence is, or why it has no interval
    note: str = ""
    baselines: int = 1  # trained models, of different seeds, on which the number rests
    sufficient: bool = True  # whether the evidence suffices for more than "partly"
    confounded: bool = False  # whether the models compared differ in more than the claim is about


class NotTestable(Exception):
    """The evidence cannot test a claim; the message is the reason, a clause in lower case."""


def require(fulfilled: object, reason: str) -> None:
    """Raise `NotTestable` for this reason unless the condition is fulfilled."""
    if not fulfilled:
        raise NotTestable(reason)


def _empty() -> pd.DataFrame:
    return field(default_factory=pd.DataFrame)


@dataclass(frozen=True)
class Evidence:
    """The tables of one corpus; those of ablation are empty if it is not measured."""

    title: str = ""
    # the paper's corpus with the same source and languages: "wmt", "opensubtitles", or ""
    stands_for: str = ""
    pruned: bool = True  # whether the experiment prunes on it or removes heads
    scores: pd.DataFrame = _empty()  # one row per model
    # one row per head of the baselines and of the models pruned with gates
    heads: pd.DataFrame = _empty()
    # BLEU without each single head and with each head alone, by seed
    single: pd.DataFrame = _empty()
    second: pd.DataFrame = _empty()  # the same on another set
    # BLEU along the order of importance, by seed and moment of training
    systematic: pd.DataFrame = _empty()
    least_arcs: int = 0  # minimum number of arcs of a relation for its accuracy to count
    logs: pd.DataFrame = _empty()  # of the trainings, with P(open) of the gates
    # or "classification", a task of BERT, whose scores are called BLEU here
    of: str = "translation"
    majority: float = nan  # of a task: score of its most frequent label
    metric: str = ""  # of a task
    speed: pd.DataFrame = _empty()  # of a task: speed with and without half of the heads

    def baselines(self) -> pd.DataFrame:
        return self.scores[self.scores["kind"] == "baseline"].sort_values("seed")

    def require_trained(self) -> None:
        """Raise `NotTestable` if a baseline hardly translates, or a classifier is hardly better
        than the most frequent label."""
        if self.of == "classification":
            steps = self.systematic
            tables = [self.single, steps[steps["update"].isna()] if len(steps) else steps]
            whole = [table["bleu_full"].min() for table in tables if len(table)]
            learned = whole and min(whole) >= self.majority + MIN_LEARNED
            require(
                learned,
                f"BERT is less than {MIN_LEARNED:.0f} points better than the most frequent label",
            )
        else:
            translates = self.baselines()["bleu"].min() >= MIN_BASELINE
            require(translates, f"the baseline has less than {MIN_BASELINE:.0f} BLEU")

    def pruned_with(self, *scopes: str) -> pd.DataFrame:
        """Scores of all models that are trained with gates on these scopes, those with λ 0 too."""
        return self.scores[(self.scores["kind"] == "pruned") & self.scores["scope"].isin(scopes)]

    def all_pruned(self, *scopes: str) -> pd.DataFrame:
        """Scores of the models that gates pruned with these scopes, without those with λ 0, decided
        or not."""
        models = self.pruned_with(*scopes)
        models = models[models["lam"] != 0]
        require(len(models), f"no model is pruned with scope {' or '.join(scopes)}")
        return models

    def pruned_models(self, *scopes: str) -> pd.DataFrame:
        """Of `all_pruned`, the models most of whose gates are decided: any other is only a rounding
        of its soft gates.

        Models pruned to a number of heads count, since most of their updates train with fixed
        gates, unless the order of log α alone chose their heads.
        """
        models = self.all_pruned(*scopes)
        decided, penalised = models[is_decided(models)], models[models["target_heads"].isna()]
        why = "the order of log α alone chose the heads of each model"
        if len(penalised):
            why = f"at most {penalised['gates_decided'].max():.0%} of the gates of a model are "
            why += f"decided, not {MIN_DECIDED:.0%}: the models are rounded rather than pruned"
        require(len(decided), f"{why} (pruning.updates)")
        return decided

    def controls(self, scope: str) -> pd.DataFrame:
        """Scores of the models with λ 0, which train for as long as the pruned models but keep all
        heads; by seed."""
        return without_penalty(self.pruned_with(scope))

    def compared(self, scope: str) -> pd.DataFrame:
        """Pruned models that are compared with λ 0 of as many updates (`COUNTERPART`).

        So what the updates of pruning gain by themselves is not taken for the price of heads. Where
        a model was scored without the comparison, its difference has no interval.
        """
        models, whole = self.pruned_models(scope), self.controls(scope)["bleu"]
        models = models[models["seed"].isin(whole.index)]
        models = models.reindex(columns=dict.fromkeys([*models, *COUNTERPART]))
        difference = models[COUNTERPART[0]].fillna(models["bleu"] - models["seed"].map(whole))
        models = models.assign(**{COUNTERPART[0]: difference})
        unpruned = (
            f"no model with λ 0 in scope {scope} shows what the updates of pruning gain "
            f"(pruning.{scope})"
        )
        require(len(models), unpruned)
        return models

    def curve(
        self, scope: str, *, column: str = COUNTERPART[0]
    ) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """By seed, the share of heads left that the scope can remove, ascending, and the difference
        of BLEU there.

        Models of all targets, λ and number of heads, are points of one curve; those with the same
        share are averaged. The last point is the reference. Shares are (points,), differences
        (points, 3): the value and both ends of its interval; the same differences on resampled
        sentences are (points, resamples), with no resample in tables that do not have them.

        `column`: the differences from λ 0, or `difference`, those from the baseline.
        """
        heads = [f"{kind}_heads" for kind in SCOPES[scope]]
        whole = self.baselines()[heads].iloc[0].sum()
        models = self.compared(scope)
        ends, samples = with_ends(column), column + SAMPLES
        curves = {}
        for seed, same in models.groupby("seed"):
            same = same.assign(share=same[heads].sum(axis=1) / whole)
            points = same.groupby("share")
            values = np.vstack([points[ends].mean().to_numpy(float), np.zeros(3)])
            resampled = np.zeros((len(values), 0))
            if has_samples(same, samples):
                drawn = [mean_of_samples(each, samples) for _, each in points]
                resampled = np.vstack([*drawn, np.zeros_like(drawn[0])])
            curves[seed] = np.array([*points.size().index, 1.0]), values, resampled
        return curves

    def baseline_heads(self, scope: str = "encoder") -> pd.DataFrame:
        """The heads of the baselines in this scope, with relevance by z⁺ under its own name, as in
        tables with several rules: where z⁺ is the only rule, tables do not name it."""
        heads = self.heads[
            (self.heads["kind"] == "baseline") & self.heads["type"].isin(SCOPES[scope])
        ]
        rules = [f"relevance_{rule}" for rule in RULES if f"relevance_{rule}" in heads]
        if "relevance" not in heads or heads[rules].notna().any(axis=None):
            return heads
        return heads.assign(**{Z_PLUS: heads["relevance"]})

    def functions(self, heads: pd.DataFrame) -> list[set[str]]:
        """The functions of encoder heads: offset, each relation and direction that has enough arcs,
        and any other by its name."""
        functions = []
        for head in heads.to_dict("records"):
            names = {
                name
                for name in head["relations"]
                if head[f"{parted(name)[0]}_arcs"] >= self.least_arcs
            }
            if POSITIONAL in head["functions"]:
                names.add(f"{POSITIONAL} {head['positional_offset']:+.0f}")
            functions.append(names | (set(head["functions"]) - {POSITIONAL, SYNTACTIC}))
        return functions

    def survivors(self, scope: str) -> list[tuple[int, pd.DataFrame]]:
        """The seed and the heads of each pruned model that has lost some heads of the scope, but
        not all.

        Only models with a λ, or a number of heads, that every seed has count: under stronger
        penalties fewer heads survive, whatever they do.
        """
        whole = self.baseline_heads(scope).groupby("seed").size()
        left = self.heads[(self.heads["kind"] == "pruned") & self.heads["type"].isin(SCOPES[scope])]
        left = left.merge(self.pruned_models(scope)[MODEL], on=MODEL)
        models = left.groupby(MODEL, dropna=False).size().reset_index(name="left")
        models = models[models["left"] < models["seed"].map(whole)]
        require(len(models), "no pruned model has lost some of its heads, but not all")
        of_target = models.groupby(MODEL[:-1], dropna=False)["seed"]
        models = models[of_target.transform("nunique") == models["seed"].nunique()]
        require(len(models), "the baselines are not pruned with the same λ or numbers of heads")
        groups = left.merge(models[MODEL], on=MODEL).groupby(MODEL, dropna=False)
        return [(seed, heads) for (*_, seed), heads in groups]

    def survival(self, scope: str) -> pd.DataFrame:
        """The baselines' heads with `survival`, the share of the seed's pruned models that keep the
        head.

        A head counts once, since the heads of a smaller model are mostly among those of a larger
        one.
        """
        models = self.survivors(scope)
        number = pd.Series([seed for seed, _ in models]).value_counts()
        kept = pd.concat([heads for _, heads in models]).groupby(HEAD).size()
        before = self.baseline_heads(scope)
        before = before[before["seed"].isin(number.index)]
        counts = kept.reindex(pd.MultiIndex.from_frame(before[HEAD]), fill_value=0).to_numpy()
        return before.assign(survival=counts / before["seed"].map(number))


def every_evidence(tables: Tables, speed: pd.DataFrame) -> list[Evidence]:
    """The evidence of each corpus, then of each task; `speed`: rows of the table of speed, with
    `task`."""
    every = [evidence_of(tables.of(corpus)) for corpus in tables.corpora()]
    for task in tables.tasks()["corpus"].unique():
        every.append(evidence_of(tables.of(task), speed=speed[speed["task"] == task]))
    return every


def attends(heads: pd.DataFrame) -> bytes:
    """How the heads of a model attend, which tells whether two models are the same."""
    columns = ["layer", "confidence", "entropy"]
    return heads.sort_values(HEAD)[columns].to_numpy(float).tobytes()


def distinct(tables: Tables) -> Tables:
    """The tables of a corpus without seeds whose baseline is that of an earlier seed: the heads of
    an imported model attend alike with every seed, so it is one baseline."""
    heads = tables.heads[tables.heads["kind"] == "baseline"]
    seeds: dict[bytes, int] = {}
    for seed, same in heads.groupby("seed"):
        seeds.setdefault(attends(same), seed)
    same = sorted(set(heads["seed"]) - set(seeds.values()))
    if not same:
        return tables
    said = "%s: seeds without a baseline of their own, which the claims leave out: %s"
    log.warning(said, heads["corpus"].iloc[0], ", ".join(map(str, same)))
    return Tables(
        *(table[~table["seed"].isin(same)] if "seed" in table else table for table in tables)
    )


def evidence_of(tables: Tables, *, speed: pd.DataFrame | None = None) -> Evidence:
    """The evidence of a corpus, or of a classification task with its `speed`."""
    tables = distinct(tables)
    models, second = tables.models, removed(tables, "without", measured_on="second")
    first = models.iloc[0]
    same = (first.get("source_language"), first.get("target_language")) == ("en", "ru")
    shared = Evidence(
        title=first["corpus"],
        scores=models,
        heads=tables.heads,
        single=pd.concat([removed(tables, what) for what in ("without", "alone")]),
        second=second,
        systematic=in_order_of_importance(tables),
        logs=tables.logs,
    )
    if speed is None:
        return replace(
            shared,
            stands_for=first["source"]
            if same and first["source"] in ("wmt", "opensubtitles")
            else "",
            pruned=len(set(models["kind"])) > 1 or len(tables.ablation) > 0,
            least_arcs=int(tables.relations["least_arcs"].iloc[0]) if len(tables.relations) else 0,
        )
    # Without a second test set, heads are ablated on held-out examples instead, which are of the
    # same kind.
    second = second if pd.notna(first.get("second_bleu")) else second[:0]
    known = {"majority": first["majority"], "metric": first["metric"], "speed": speed}
    return replace(shared, of="classification", second=second, **known)
