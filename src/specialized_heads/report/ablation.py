"""Figure: how BLEU changes without each single head, for all three attention types (Michel et al. 2019, section 3.2).

A cell is a head; its colour is BLEU without it minus BLEU of the whole model. A frame marks a difference at p < 0.01.
One model per corpus: heads of different seeds have nothing to do with each other.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from specialized_heads.report import style
from specialized_heads.report.output import save_figure
from specialized_heads.report.runs import ABLATION_COLUMNS, SIGNIFICANT, TOO_FEW, Runs, read_runs
from specialized_heads.stage import arguments, run

# Losses in the purple of other heat maps, gains in green.
CHANGES: Colormap = LinearSegmentedColormap.from_list(
    "changes", ["#5B2A86", "#A98BC4", "#F7F5F8", "#8FC29A", "#22733B"]
)
COLUMNS = ["corpus", "seed", "type", "layer", "head", "bleu", "bleu_full", "delta", "p_value", "significant"]
LEAST_RANGE = 0.5  # BLEU; a shorter scale would make noise look like an effect


def numbers(tables: pd.DataFrame) -> pd.DataFrame:
    """One row per corpus and head: corpus, seed, type, layer, head, bleu (without it), bleu_full (of the whole model),
    delta (the difference), p_value (paired bootstrap), significant (at p < 0.01)."""
    single = tables[tables["what"] == "without"]
    return single.assign(significant=single["p_value"].astype(float) < SIGNIFICANT)[COLUMNS].reset_index(drop=True)


def draw(heads: pd.DataFrame) -> Figure:
    """Draw one row of panels per corpus, one panel per attention type."""
    if heads.empty:
        return style.message_figure(f"Ablation: {TOO_FEW}", width=style.DOUBLE)
    corpora = dict(list(heads.groupby("corpus", sort=False)))
    layers = [int(own["layer"].max()) for own in corpora.values()]
    height = sum(0.55 + 0.2 * max(number, 3) for number in layers) + 0.55
    figure = Figure(figsize=(style.DOUBLE, height), layout="constrained")
    panels = figure.subplots(
        len(corpora), len(style.TYPES), squeeze=False, height_ratios=[max(number, 3) + 1.5 for number in layers]
    )
    limit = max(LEAST_RANGE, float(heads["delta"].abs().max()))
    mesh = None
    for row, (corpus, own) in zip(panels, corpora.items(), strict=True):
        for axes, (kind, (name, _)) in zip(row, style.TYPES.items(), strict=True):
            same = own[own["type"] == kind]
            text = f"{corpus}: {name}" if len(corpora) > 1 else name
            axes.set_title(style.wrap(text, inches=style.DOUBLE / 3 - 0.2, size=7), size=7)
            if same.empty:
                style.message(axes, "no heads", inches=1.5)
            else:
                mesh = _grid(axes, same, layers=int(own["layer"].max()), limit=limit)
    bar = figure.colorbar(mesh, ax=panels.ravel().tolist(), fraction=0.025, aspect=25)
    bar.set_label("difference in BLEU")
    bar.outline.set_visible(False)
    frame = Patch(facecolor="none", edgecolor="black", linewidth=1.1)
    figure.legend([frame], [f"differs from the whole model, p < {SIGNIFICANT}"], loc="outside lower center")
    return figure


def _grid(axes: Axes, heads: pd.DataFrame, *, layers: int, limit: float) -> QuadMesh:
    """Heads of one type, their numbers to the right, layers downwards; a head that the model lacks is empty."""
    width = int(heads["head"].max())
    values = np.ma.masked_all((layers, width))
    size = min(6.0, (style.DOUBLE / 3 - 0.45) / width * 72 / 3.2)
    for head in heads.to_dict("records"):
        x, y, delta = head["head"], head["layer"], head["delta"]
        values[y - 1, x - 1] = delta
        if size >= 3.8:
            dark = abs(delta) > 0.65 * limit
            text = f"{delta:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")
            axes.text(x, y, text, size=size, ha="center", va="center", color="white" if dark else "black")
        if head["significant"]:
            axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, linewidth=1.1, zorder=3))
    axes.set(xlim=(0.5, width + 0.5), ylim=(layers + 0.5, 0.5), xlabel="head", ylabel="layer")
    axes.set(xticks=range(1, width + 1, 1 if width <= 12 else 2), yticks=range(1, layers + 1))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    edges = np.arange(width + 1) + 0.5, np.arange(layers + 1) + 0.5
    return axes.pcolormesh(*edges, values, cmap=CHANGES, vmin=-limit, vmax=limit, edgecolors="white", linewidth=1.0)


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["tables"])
    runs = Runs.model_validate(args.settings).runs
    heads = numbers(read_runs(args.tables, runs, columns=ABLATION_COLUMNS))
    save_figure(args.output, heads, lambda: draw(heads))


if __name__ == "__main__":
    run(main)
