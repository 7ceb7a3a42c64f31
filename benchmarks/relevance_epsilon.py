"""How stable and how well conserved relevance is by each rule and stabiliser, on trained models.

ρ: Spearman correlation of the relevances of a layer's heads between random halves of the development set, mean over splits and
layers. Top head: how often the halves agree on a layer's most relevant head, mean over layers. Deviation: how far the relevance
that arrives at the first decoder layer and at the first encoder layer is from the 1 that the logit started with, median and
largest over predictions; where the stabiliser's share is lost, this is the loss. ε 0 is the paper's rule, computed in float64. A
second table compares the order of heads within layers where the stabiliser's share is lost with that where it is returned.

    python benchmarks/relevance_epsilon.py results/default/tatoeba_en_fr results/default/tatoeba_en_de \
        > benchmarks/relevance_epsilon.md
"""

import sys
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from specialized_heads.config.sections import Heads
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads.relevance.average import Average, average_relevance, stability
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import load
from specialized_heads.model.functional import prepare_cpu

EPSILONS = (1e-2, 3e-2, 1e-1, 3e-1)
LEVELS = ("decoder 1", "encoder 1")
COLUMNS = [
    *("corpus", "rule"),
    *(f"{name}, {kind}" for kind in KINDS for name in ("ρ", "top head")),
    *(f"deviation, {level} ({which})" for level in LEVELS for which in ("median", "largest")),
]
ORDERS = ["corpus", "ε", *(f"lost against returned, {kind}" for kind in KINDS)]


def variants() -> list[tuple[str, str, Heads]]:
    """What is compared: name in the table, rule, settings."""
    epsilons = [
        (f"epsilon {epsilon:g}, {absorbed}", "epsilon", Heads(relevance_epsilon=epsilon, relevance_absorbed=absorbed))
        for absorbed in ("lost", "returned")
        for epsilon in EPSILONS
    ]
    alphas = [(f"alpha_beta, α {alpha:g}", "alpha_beta", Heads(relevance_alpha=alpha)) for alpha in (1.5, 2.0)]
    others = [(rule, rule, Heads()) for rule in ("z_plus", "attention", "gradient_input")]
    return [("epsilon 0, the paper's rule", "epsilon", Heads(relevance_epsilon=0)), *epsilons, *alphas, *others]


def cells(average: Average) -> list[str]:
    """The cells of one variant on one corpus, without its names."""
    rows = stability(average)
    numbers = [
        f"{np.mean([layer[name] for layer in rows[kind]]):.2f}"
        for kind in KINDS
        for name in ("rank_correlation", "top_head")
    ]
    return numbers + [
        f"{average.conservation[level][which]:.1e}" for level in LEVELS for which in ("median", "largest")
    ]


def same_order(one: Average, other: Average, kind: str) -> float:
    """Rank correlation of two relevances within the layers of a type, mean over layers."""
    return np.mean([spearmanr(one.heads[key], other.heads[key]).statistic for key in one.heads if key[0] == kind])


def heading(columns: list[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def main() -> None:
    prepare_cpu()
    print(heading(COLUMNS))
    orders = []
    for corpus in map(Path, sys.argv[1:]):
        weights = corpus / "models/baseline/seed1/model.safetensors"
        dev = load_tokens(corpus / "corpus/tokens/dev.safetensors")
        averages = {}
        for name, rule, settings in variants():
            model = load(weights) if settings.relevance_epsilon else load(weights).double()
            averages[name] = average_relevance(model, dev, rule=rule, settings=settings)
            print(f"| {' | '.join([corpus.name, name, *cells(averages[name])])} |", flush=True)
        for epsilon in EPSILONS:
            lost, returned = (averages[f"epsilon {epsilon:g}, {absorbed}"] for absorbed in ("lost", "returned"))
            agreement = [f"{same_order(lost, returned, kind):.3f}" for kind in KINDS]
            orders.append(f"| {' | '.join([corpus.name, f'{epsilon:g}', *agreement])} |")
    print("", heading(ORDERS), *orders, sep="\n")


if __name__ == "__main__":
    main()
