"""How the stabiliser of relevance propagation trades stability for conservation, on a trained model.

For each ε: Spearman correlation of the relevances of all heads of a type between two halves of the development set, and the
share of relevance that the stabiliser absorbs on the way to the last decoder and encoder level (median over steps).

    python benchmarks/relevance_epsilon.py results/default/tatoeba_en_fr > benchmarks/relevance_epsilon.md
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads.maps import select
from specialized_heads.heads.relevance import head_relevance
from specialized_heads.model.checkpoint import load
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import KINDS

EPSILONS = (1e-6, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)


def main() -> None:
    corpus = Path(sys.argv[1])
    prepare_cpu()
    model = load(corpus / "models/baseline/seed1/model.safetensors")
    dev = load_tokens(corpus / "corpus/tokens/dev.safetensors")
    halves = [select(dev, list(range(start, len(dev), 2))) for start in (0, 1)]
    columns = [*(f"agreement, {kind}" for kind in KINDS), "absorbed, decoder", "absorbed, encoder"]
    print(f"| ε | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for epsilon in EPSILONS:
        (first, conservation), (second, _) = (head_relevance(model, half, epsilon=epsilon) for half in halves)
        cells = []
        for kind in KINDS:
            both = [np.concatenate([r[key] for key in r if key[0] == kind]) for r in (first, second)]
            cells.append(pd.Series(both[0]).rank().corr(pd.Series(both[1]).rank()))  # Spearman
        cells += [conservation["decoder 1"], conservation["encoder 1"]]
        print(f"| {epsilon:g} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
