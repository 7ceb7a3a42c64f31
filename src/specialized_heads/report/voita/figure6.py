"""Figure 6: the Hard Concrete distribution of a gate (section 6.1), from its closed form; it reads no data.

Left, the construction: a Concrete variable on (0, 1) is stretched to (-0.1, 1.1), and values outside of [0, 1] are moved to 0
and 1. Right, the effect of log α: the two point masses, as probabilities, and the density between them.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit, logit

from specialized_heads.model.gates import BETA, HIGH, LOW
from specialized_heads.report import style
from specialized_heads.report.data import Tables

LOG_ALPHAS = (-3.0, -1.0, 0.0, 1.0, 3.0)
SHOWN = 0.0  # log α of the left panel
POINTS = 401  # per curve


def concrete_density(s: np.ndarray, log_alpha: float) -> np.ndarray:
    """Density of the Concrete variable, s in (0, 1); P(it is at most s) is expit(β logit(s) − log α)."""
    below = expit(BETA * logit(s) - log_alpha)
    return BETA * below * (1 - below) / (s * (1 - s))


def stretched_density(g: np.ndarray, log_alpha: float) -> np.ndarray:
    """Density of the stretched variable, g in (-0.1, 1.1); inside (0, 1) it is the gate's own density."""
    return concrete_density((g - LOW) / (HIGH - LOW), log_alpha) / (HIGH - LOW)


def point_masses(log_alpha: float) -> tuple[float, float]:
    """P(g = 0) and P(g = 1)."""
    closed, at_most_open = (expit(BETA * logit((g - LOW) / (HIGH - LOW)) - log_alpha) for g in (0, 1))
    return float(closed), float(1 - at_most_open)


def numbers(tables: Tables | None = None) -> pd.DataFrame:
    """Curves and point masses: curve (Concrete, stretched, Hard Concrete), log_alpha, x, quantity (density, probability), y."""
    inner = np.linspace(0, 1, POINTS)
    # The Concrete density is infinite at 0 and 1, the stretched one at its own ends; both axes end below that.
    open_inner = inner[1:-1]
    stretched = LOW + (HIGH - LOW) * open_inner
    curves = [
        ("Concrete", SHOWN, open_inner, "density", concrete_density(open_inner, SHOWN)),
        ("stretched", SHOWN, stretched, "density", stretched_density(stretched, SHOWN)),
    ]
    for log_alpha in LOG_ALPHAS:
        curves.append(("Hard Concrete", log_alpha, inner, "density", stretched_density(inner, log_alpha)))
        curves.append(("Hard Concrete", log_alpha, [0.0, 1.0], "probability", point_masses(log_alpha)))
    columns = ["curve", "log_alpha", "x", "quantity", "y"]
    return pd.concat([pd.DataFrame(dict(zip(columns, curve))) for curve in curves], ignore_index=True)


def draw(points: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(style.DOUBLE, 2.3), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2.1])
    left.suptitle("(a) construction, log α = 0")
    _construction(left.subplots(), points)
    right.suptitle("(b) Hard Concrete for several log α")
    closed, between, open_ = right.subplots(1, 3, width_ratios=[1.45, 1.8, 1.45])
    hard = points[points["curve"] == "Hard Concrete"]
    names = [style.minus(f"{value:.0f}") for value in LOG_ALPHAS]
    looks = [style.ordered(place, len(LOG_ALPHAS)) for place in range(len(LOG_ALPHAS))]
    for axes, x, title in ((closed, 0.0, "P(g = 0)"), (open_, 1.0, "P(g = 1)")):
        masses = hard.loc[(hard["quantity"] == "probability") & (hard["x"] == x), "y"]
        bars = axes.bar(names, masses, color=[look.colour for look in looks])
        axes.bar_label(bars, fmt="{:.2f}", size=5, padding=1)
        axes.set(title=title, xlabel="log α", ylabel="probability", ylim=(0, 1))
    curves = hard[hard["quantity"] == "density"].groupby("log_alpha")
    for look, name, (_, curve) in zip(looks, names, curves, strict=True):
        between.plot(curve["x"], curve["y"], color=look.colour, linestyle=look.line, label=f"log α = {name}")
    between.set(title="0 < g < 1", xlabel="g", ylabel="density", xlim=(0, 1), ylim=(0, 1))
    right.legend(*between.get_legend_handles_labels(), loc="outside lower center", ncols=5, columnspacing=1.2)
    return figure


def _construction(axes: Axes, points: pd.DataFrame) -> None:
    for curve, look in (("Concrete", style.series(3)), ("stretched", style.series(0))):
        here = points[points["curve"] == curve]
        axes.plot(here["x"], here["y"], color=look.colour, linestyle=look.line, label=curve)
    outside = (here["x"] <= 0) | (here["x"] >= 1)
    axes.fill_between(here["x"], here["y"], where=outside, color=look.colour, alpha=0.3, linewidth=0)
    for mass, x, side in zip(point_masses(SHOWN), (0.07, 0.93), ("left", "right"), strict=True):
        axes.text(x, 1.45, f"moved to {round(x)}:\nP = {mass:.2f}", ha=side, va="center", size=6)
        axes.axvline(round(x), color="#888888", linewidth=0.5)
    axes.set(xlim=(LOW, HIGH), ylim=(0, 2.6), xlabel="value", ylabel="density")
    axes.legend(loc="upper center")
