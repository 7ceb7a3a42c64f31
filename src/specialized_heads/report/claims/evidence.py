"""What an experiment has to show for a corpus, and the quantities that several claims measure on it.

Scores of seeds are not pooled: each seed gives a value and an interval of its own, and a claim is judged by their means. So
the interval stands for the chance choice of test sentences, which more seeds do not make smaller. What is counted, heads or
models, is counted over all seeds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from specialized_heads.heads.functions import SYNTACTIC
from specialized_heads.model.transformer import KINDS
from specialized_heads.parsing.relations import DIRECTIONS

TOTALS = [f"{kind}_total" for kind in KINDS]
LEAST_BASELINE = 5.0  # of a baseline: no model can lose more BLEU than that
INTERVAL = ["difference", "difference_low", "difference_high"]


@dataclass(frozen=True)
class Evidence:
    """The tables of one corpus.

    Attributes:
        title: how tables call the corpus.
        stands_for: the corpus of the paper that it is, by data and languages: "wmt", "opensubtitles", or "" for any other.
        pruned: whether the experiment prunes on it.
        scores: one row per model.
        heads: one row per head of the baselines and of the models pruned with gates, with kind, scope, lam, asked, seed.
        single: BLEU without single heads and with each alone, by seed; empty where it was not asked for. `second` is
            the same on another set.
        systematic: BLEU along the order of importance, by seed and moment of training; empty where it was not asked for.
        least_arcs: how many arcs of a relation, at the least, an accuracy is taken from; a threshold of the configuration.
    """

    title: str
    stands_for: str
    pruned: bool
    scores: pd.DataFrame
    heads: pd.DataFrame
    single: pd.DataFrame
    second: pd.DataFrame
    systematic: pd.DataFrame
    least_arcs: int

    def baselines(self) -> pd.DataFrame:
        """Scores of the baselines, one row per seed."""
        return self.scores[self.scores["kind"] == "baseline"].sort_values("seed")

    def gated(self, scope: str) -> pd.DataFrame:
        """Scores of the models that gates pruned with a scope."""
        return self.scores[(self.scores["kind"] == "pruned") & (self.scores["scope"] == scope)]

    def too_low(self) -> bool:
        """Whether a baseline translates too badly for half a point of BLEU, the tolerance of differences, to say anything."""
        return bool(self.baselines()["bleu"].min() < LEAST_BASELINE)

    def curve(self, scope: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of each seed: the share of heads left that the scope can remove, ascending, and the difference of BLEU there.

        Models of all targets, λ and number of heads, are points of one curve; those with the same share are averaged. The
        last point is the baseline.

        Yields:
            shares (points,) and differences (points, 3): the value and both ends of its interval.
        """
        columns = TOTALS[:1] if scope == "encoder" else TOTALS
        for _, baseline in self.baselines().groupby("seed"):
            whole = baseline[columns].sum(axis=1).iloc[0]
            own = self.gated(scope)
            own = own[own["seed"] == baseline["seed"].iloc[0]]
            points = own.assign(share=own[columns].sum(axis=1) / whole).groupby("share")[INTERVAL].mean()
            points.loc[1.0] = 0.0
            points = points.sort_index()
            yield points.index.to_numpy(float), points.to_numpy(float)

    def baseline_heads(self) -> pd.DataFrame:
        """The baselines' encoder heads."""
        return self.heads[(self.heads["kind"] == "baseline") & (self.heads["type"] == "encoder")]

    def functions(self, heads: pd.DataFrame) -> list[set[str]]:
        """The functions of these encoder heads. Syntactic is one only by a relation that has enough arcs to tell."""
        found = []
        for head in heads.to_dict("records"):
            few = max((head[f"{_relation(name)}_arcs"] for name in head["relations"]), default=0) < self.least_arcs
            found.append({name for name in head["functions"] if name != SYNTACTIC or not few})
        return found

    def survivors(self, scope: str) -> Iterator[tuple[pd.Series, pd.DataFrame, pd.DataFrame]]:
        """Models that gates pruned with a scope: their row of the scores, their encoder heads, and their baseline's."""
        encoder = self.heads[self.heads["type"] == "encoder"]
        for _, model in self.gated(scope).iterrows():
            same_seed = encoder[encoder["seed"] == model["seed"]]
            own = same_seed[(same_seed["kind"] == "pruned") & (same_seed["scope"] == scope)]
            for key in ("lam", "asked"):
                own = own[own[key].eq(model[key]) | (own[key].isna() & pd.isna(model[key]))]
            yield model, own, same_seed[same_seed["kind"] == "baseline"]


def _relation(name: str) -> str:
    """The relation of a name with a direction, such as nsubj_head_to_dependent."""
    for direction in DIRECTIONS:
        name = name.removesuffix(f"_{direction}")
    return name


def at_share(shares: np.ndarray, differences: np.ndarray, share: float) -> np.ndarray:
    """The differences of a curve at a share of heads, on the straight line between the two points beside it: (3,)."""
    return np.array([np.interp(share, shares, column) for column in differences.T])
