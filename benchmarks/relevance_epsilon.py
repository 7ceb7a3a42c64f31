"""How stable and how conserved relevance is by each rule and stabiliser, on trained models.

Agreement: Spearman correlation of the relevances of all heads of a type between two halves of the development set (every
second sentence). Deviation: how far the relevance that arrives at the first decoder layer and at the first encoder layer is
from the 1 that the logit started with, as the median and the largest over the predictions of both halves; by a rule that
loses the stabiliser's share, this is what is lost on the way. A second table compares the order of heads where the share is lost
with the order where it is returned: Spearman correlation for the same ε, mean of the two halves.

    python benchmarks/relevance_epsilon.py results/default/tatoeba_en_fr results/default/libreoffice_en_ru \
        > benchmarks/relevance_epsilon.md
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads.maps import select
from specialized_heads.heads.relevance.average import Average, average_relevance
from specialized_heads.model.checkpoint import load
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import KINDS
from specialized_heads.sections import Heads

EPSILONS = (1e-6, 1e-2, 3e-2, 1e-1, 3e-1)
LEVELS = ("decoder 1", "encoder 1")
COLUMNS = [
    *("corpus", "rule"),
    *(f"agreement, {kind}" for kind in KINDS),
    *(f"deviation, {level} ({which})" for level in LEVELS for which in ("median", "largest")),
]
ORDERS = ["corpus", "ε", *(f"lost against returned, {kind}" for kind in KINDS)]


def variants() -> list[tuple[str, str, Heads]]:
    """What is compared: how the table calls it, the rule, its settings."""
    found = [
        (f"epsilon {epsilon:g}, {absorbed}", "epsilon", Heads(relevance_epsilon=epsilon, relevance_absorbed=absorbed))
        for absorbed in ("lost", "returned")
        for epsilon in EPSILONS
    ]
    found += [(f"alpha_beta, α {alpha:g}", "alpha_beta", Heads(relevance_alpha=alpha)) for alpha in (1.5, 2.0)]
    return found + [(rule, rule, Heads()) for rule in ("z_plus", "attention", "gradient_input")]


def spearman(one: Average, other: Average, kind: str) -> float:
    """Rank correlation of two relevances of all heads of a type."""
    both = [np.concatenate([found.heads[key] for key in found.heads if key[0] == kind]) for found in (one, other)]
    return pd.Series(both[0]).rank().corr(pd.Series(both[1]).rank())


def row(first: Average, second: Average) -> list[str]:
    """The cells of one variant on one corpus, from both halves, without its names."""
    cells = [f"{spearman(first, second, kind):.3f}" for kind in KINDS]
    for level in LEVELS:
        found = [half.conservation[level] for half in (first, second)]
        cells.append(f"{np.mean([value['median'] for value in found]):.1e}")
        cells.append(f"{max(value['largest'] for value in found):.1e}")
    return cells


def heading(columns: list[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def main() -> None:
    prepare_cpu()
    print(heading(COLUMNS))
    orders = []
    for corpus in map(Path, sys.argv[1:]):
        model = load(corpus / "models/baseline/seed1/model.safetensors")
        dev = load_tokens(corpus / "corpus/tokens/dev.safetensors")
        halves = [select(dev, list(range(start, len(dev), 2))) for start in (0, 1)]
        found = {}
        for name, rule, settings in variants():
            found[name] = [average_relevance(model, half, rule=rule, settings=settings) for half in halves]
            print(f"| {' | '.join([corpus.name, name, *row(*found[name])])} |", flush=True)
        for epsilon in EPSILONS:
            pairs = list(zip(found[f"epsilon {epsilon:g}, lost"], found[f"epsilon {epsilon:g}, returned"], strict=True))
            cells = [f"{np.mean([spearman(*pair, kind) for pair in pairs]):.3f}" for kind in KINDS]
            orders.append(f"| {' | '.join([corpus.name, f'{epsilon:g}', *cells])} |")
    print("", heading(ORDERS), *orders, sep="\n")


if __name__ == "__main__":
    main()
