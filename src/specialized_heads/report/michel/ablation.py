"""The change in BLEU without each single head, for all three attention types (Michel et al. 2019, section 3.2, table 1).

A cell is a head; its colour is BLEU without it minus BLEU of the whole model. A frame marks a difference at p < 0.01. Each
corpus shows one model, because heads of different seeds do not correspond.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from specialized_heads.report import style
from specialized_heads.report.data import Tables, first_seed, removed, score_name
from specialized_heads.report.voita.paper import SIGNIFICANT

# Losses in the purple of the other heat maps, gains in green.
CHANGES = LinearSegmentedColormap.from_list("changes", ["#5B2A86", "#A98BC4", "#F7F5F8", "#8FC29A", "#22733B"])
COLUMNS = ["corpus", "seed", "type", "layer", "head", "bleu", "bleu_full", "delta", "p_value", "significant", "metric"]
SMALLEST_RANGE = 0.5  # BLEU; on a shorter scale noise would look like an effect


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus and head: BLEU without it, of the whole model, and the difference."""
    single = first_seed(removed(tables, "without"))
    return single.assign(significant=single["p_value"].astype(float) < SIGNIFICANT)[COLUMNS].reset_index(drop=True)


def draw(heads: pd.DataFrame) -> Figure:
    """Draw one row of panels per corpus, one panel per attention type; of models with encoder heads alone all in one row."""
    groups = dict(list(heads.groupby(["corpus", "type"], sort=False)))
    types = ["encoder"] if set(heads["type"]) == {"encoder"} else list(style.TYPES)
    shown = [(corpus, kind) for corpus in heads["corpus"].unique() for kind in types]
    height = 0.55 + 0.2 * max(3, int(heads["layer"].max()))
    drawn, _, panels = style.panels(len(shown), across=3, height=height, more_height=0.55)
    limit = max(SMALLEST_RANGE, float(heads["delta"].abs().max()))
    for axes, (corpus, kind) in zip(panels, shown, strict=True):
        title = corpus if len(types) == 1 else f"{corpus}: {style.TYPES[kind][0]}"
        axes.set_title(style.wrap(title, inches=style.DOUBLE / 3 - 0.4, size=7), size=7)
        if (corpus, kind) in groups:
            mesh = _grid(axes, groups[corpus, kind], limit=limit)
        else:
            style.message(axes, "no heads", inches=1.5)
    style.colour_bar(drawn, mesh, panels, f"difference in {score_name(heads)}", fraction=0.025, aspect=25)
    frame = Patch(facecolor="none", edgecolor="black", linewidth=1.1)
    drawn.legend([frame], [f"differs from the whole model, p < {SIGNIFICANT}"], loc="outside lower center")
    return drawn


def _grid(axes: Axes, heads: pd.DataFrame, *, limit: float) -> QuadMesh:
    """The heads of one type by number and, downwards, by layer; a head that the model lacks is empty."""
    layers, width = int(heads["layer"].max()), int(heads["head"].max())
    values = heads.pivot(index="layer", columns="head", values="delta")
    values = values.reindex(index=range(1, layers + 1), columns=range(1, width + 1)).to_numpy(float)
    size = min(6.0, (style.DOUBLE / 3 - 0.45) / width * 72 / 3.2)
    look = {"colours": CHANGES, "low": -limit, "high": limit}
    mesh = style.heat_map(axes, values, digits="+z.1f" if size >= 3.8 else "", size=size, **look)
    for head in heads[heads["significant"]].itertuples():
        corner = head.head - 0.46, head.layer - 0.46
        axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, linewidth=1.1, zorder=3))
    axes.set(xticks=range(1, width + 1, 1 if width <= 12 else 2), yticks=range(1, layers + 1))
    axes.set(xlabel="head", ylabel="layer")
    return mesh
