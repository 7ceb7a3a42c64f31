"""Syntactic heads (section 5.2): figures 3 and 4, and table 1."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specialized_heads.parsing.relations import canonical
from specialized_heads.report import paper, style, sweep
from specialized_heads.report.data import Tables, encoder_heads, first_seed
from specialized_heads.stage import heads_text

FIGURE3_COLUMNS = ["corpus", "relation", "arcs", "position", "count", "share", "baseline"]
REACH = 5  # words; the outermost bars also hold everything beyond
PANELS = 4  # per row
COMMON, MOST_FREQUENT = "#BBBBBB", "#444444"
POSITIONS = [position for position in range(-REACH, REACH + 1) if position]
TABLE1_CAPTION = (
    "Dependency scores: accuracy of the best encoder head and of the most frequent relative "
    "position (baseline), in percent, with 95% bootstrap intervals over sentences. The best head "
    "is chosen on the sentences on which it is scored; this flatters it, and its interval does "
    "not say by how much. Heads are named layer-head."
)
SCORES = ["layer", "head", "accuracy", "low", "high"]
ACCURACIES = "corpus seed relation direction arcs baseline".split()
ACCURACIES += [*SCORES, "syntactic", "best", "reported"]
TABLE1_COLUMNS = ["relation", "direction", "corpus", "arcs"]
TABLE1_COLUMNS += [*SCORES, "baseline", "syntactic", "reported"]
GROUPS = 8  # relations and directions per row of panels
ACROSS = 3  # columns of the legend
GOLDEN = 0.618  # spreads the dots of a column evenly, and the same way each time


def figure3_numbers(tables: Tables) -> pd.DataFrame:
    """One row per bar; share: of the relation's arcs, missing without any; baseline: whether it is
    the most frequent position."""
    frames, title = [], tables.corpora()[0]
    table = tables.of(title).relations
    for relation in table[table["direction"] == "head_to_dependent"].to_dict("records"):
        offsets = pd.Series(relation["offsets"], dtype=int).clip(-REACH, REACH)
        counts = (
            pd.Series(relation["counts"], dtype=int)
            .groupby(offsets)
            .sum()
            .reindex(POSITIONS, fill_value=0)
        )
        bars = pd.DataFrame({"position": POSITIONS, "count": counts.to_numpy()})
        bars["share"] = bars["count"] / (relation["arcs"] or float("nan"))
        # An outermost bar covers several positions, so it is never the single most frequent one.
        bars["baseline"] = (bars["position"] == relation["baseline_offset"]) & (
            bars["position"].abs() < REACH
        )
        frames.append(
            bars.assign(corpus=title, relation=relation["relation"], arcs=relation["arcs"])
        )
    return pd.concat(frames, ignore_index=True)


def figure3_draw(bars: pd.DataFrame) -> Figure:
    """Figure 3: position of the dependent of a relation relative to its head, in words
    (section 5.2).

    Negative positions are to the left of the head. The first and the last bar include everything
    farther away, so the bars of a panel sum to one. The most frequent position is the fixed offset
    that a syntactic head has to beat. Figure 4 and table 1 leave out arcs within a subword.
    """
    relations = style.by(bars, "relation")
    drawn, grid, panels = style.panels(
        len(relations), across=PANELS, height=1.45, more_height=0.45, sharey=True
    )
    title = f"{bars['corpus'].iloc[0]}: position of the dependent relative to its head, words"
    drawn.suptitle(style.wrap(title, inches=style.DOUBLE, size=8))
    top = bars["share"].max()
    for axes, (relation, same) in zip(panels, relations.items(), strict=True):
        title = (
            f"{relation}, {paper.direction_label(relation, 'head_to_dependent')} (n = "
            f"{same['arcs'].iloc[0]:,})"
        )
        axes.set_title(style.wrap(title, inches=style.DOUBLE / PANELS - 0.15))
        axes.set(xlim=(-REACH - 0.7, REACH + 0.7), ylim=(0, 1.0 if pd.isna(top) else 1.15 * top))
        axes.set_xticks(
            [-REACH, -3, -1, 1, 3, REACH], [f"≤−{REACH}", "−3", "−1", "1", "3", f"≥{REACH}"]
        )
        axes.grid(axis="y")
        colours = same["baseline"].map({True: MOST_FREQUENT, False: COMMON})
        labels = [f"{bar.share:.0%}" if bar.baseline else "" for bar in same.itertuples()]
        axes.bar_label(
            axes.bar(same["position"], same["share"], width=0.8, color=colours), labels, padding=1.5
        )
    for axes in grid[:, 0]:
        axes.set_ylabel("share of arcs")
    key = Patch(facecolor=MOST_FREQUENT, label="most frequent position")
    style.legend(drawn, [key], ncols=1, handlelength=1.2)
    return drawn


def figure4_numbers(tables: Tables) -> pd.DataFrame:
    """Accuracy of every encoder head of the baselines of the first seed for every relation, then of
    the paper's best heads.

    Numbers of arcs and baselines are those of the sentences on which heads were scored, or, for a
    model without encoder heads, of all parsed sentences.

    Returns:
        one row per corpus, relation, direction and head, with its 95% interval; syntactic: whether
        the head counts as syntactic for it; reported: by the paper. A relation without arcs and a
        model without heads have one row, without a head.
    """
    rows = []
    for title in tables.corpora():
        own = tables.of(title)
        encoder = encoder_heads(first_seed(own.analysed(title, "baseline")))
        for relation in own.relations.to_dict("records"):
            name = f"{relation['relation']}_{relation['direction']}"
            arcs, baseline = relation["arcs"], relation["baseline_accuracy"]
            if len(encoder):
                arcs, baseline = encoder[[f"{relation['relation']}_arcs", f"{name}_baseline"]].iloc[
                    0
                ]
            shared = {"corpus": title, "arcs": arcs, "baseline": baseline if arcs else None}
            shared["seed"] = encoder["seed"].max()
            shared |= {key: relation[key] for key in ("relation", "direction")}
            known = encoder[encoder[name].notna()] if arcs else encoder.iloc[:0]
            best = known[name].astype(float).idxmax() if len(known) else None
            for index, head in known.iterrows():
                accuracy = {
                    "accuracy": head[name],
                    "low": head[f"{name}_low"],
                    "high": head[f"{name}_high"],
                }
                labels = {"syntactic": name in head["relations"], "best": index == best}
                rows.append(
                    shared | {"layer": head["layer"], "head": head["head"]} | accuracy | labels
                )
            if known.empty:
                rows.append(shared)
    # The paper's rows take the name of the relation in our data: obj, or dobj.
    names = dict.fromkeys(row["relation"] for row in rows)
    for row in paper.TABLE1:
        for name in (name for name in names if canonical(name) == row.relation):
            accuracy = {
                "accuracy": row.best,
                "baseline": row.baseline,
                "best": True,
                "reported": True,
            }
            rows.append(
                {"corpus": row.corpus, "relation": name, "direction": row.direction} | accuracy
            )
    whole, real = ("seed", "arcs", "layer", "head"), ("baseline", "accuracy", "low", "high")
    frame = pd.DataFrame(rows, columns=ACCURACIES).astype(
        dict.fromkeys(whole, "Int64") | dict.fromkeys(real, float)
    )
    return frame.assign(
        **{flag: frame[flag].eq(True) for flag in ("syntactic", "best", "reported")}
    )


def figure4_draw(scores: pd.DataFrame) -> Figure:
    """Figure 4: dependency scores of the encoder's heads for each relation and direction, corpus by
    corpus (section 5.2.2).

    Every head is a dot. The best head is a marker with its 95% interval, and a ✓ where the head
    counts as syntactic for that relation; a bar marks the accuracy of the best fixed offset. The
    paper's best heads appear beside ours. The best head is chosen on the sentences on which it is
    scored.
    """
    groups = dict(list(scores.groupby(["relation", "direction"], sort=False)))
    # Colour and marker of each corpus.
    looks = {
        corpus: style.series(number)[:2] for number, corpus in enumerate(scores["corpus"].unique())
    }
    looks |= {
        corpus: (style.PAPER_COLOUR, marker)
        for corpus, marker in paper.MARKERS.items()
        if corpus in looks
    }
    names = list(groups)
    rows = [names[start : start + GROUPS] for start in range(0, len(names), GROUPS)]
    key = _key(scores, looks)
    below = max(0.3 * -(-len(key) // ACROSS), 0.2 + style.legend_height(key, ncols=ACROSS))
    drawn, _, panels = style.panels(len(rows), across=1, height=1.95, more_height=below)
    for axes, row in zip(panels, rows, strict=True):
        for number, name in enumerate(row):
            columns = style.by(groups[name], "corpus")
            for slot, (corpus, look) in enumerate(looks.items()):
                if corpus in columns:
                    x = number + 0.05 + 0.9 * (slot + 0.5) / len(looks)
                    _column(axes, columns[corpus], x=x, half=0.3 / len(looks), look=look)
        labels = [
            f"{relation}\n{paper.direction_label(relation, direction)}"
            for relation, direction in row
        ]
        axes.set_xticks([number + 0.5 for number in range(len(row))], labels)
        axes.tick_params(axis="x", length=0)
        for number in range(1, len(row)):
            axes.axvline(number, color="#CCCCCC", linewidth=0.5)
        axes.set(
            xlim=(0, GROUPS if len(rows) > 1 else len(row)),
            ylim=(0, 1),
            ylabel="accuracy of a head",
        )
        axes.grid(axis="y")
    style.legend(drawn, key, ncols=ACROSS, handlelength=1.4)
    return drawn


def _column(
    axes: Axes, column: pd.DataFrame, *, x: float, half: float, look: tuple[str, str]
) -> None:
    """One corpus in one group: its heads, its best head and its baseline, within `half` of `x`."""
    colour, marker = look
    if column["accuracy"].isna().all():
        axes.text(x, 0.02, "none", rotation=90, ha="center", va="bottom", size=6, color=colour)
    if column["baseline"].notna().any():
        axes.hlines(
            column["baseline"].iloc[0],
            x - half,
            x + half,
            color="black",
            linewidth=1.4,
            zorder=3,
            clip_on=False,
        )
    others = column[~column["best"] & column["accuracy"].notna()]
    spread = [x + half * (2 * ((place * GOLDEN) % 1) - 1) for place in range(len(others))]
    axes.scatter(spread, others["accuracy"], s=2.5, color=colour, alpha=0.35, linewidths=0)
    for best in column[column["best"]].itertuples():
        if pd.notna(best.low):
            axes.vlines(x, best.low, best.high, color=colour, linewidth=0.9, zorder=4)
        axes.plot(
            x,
            best.accuracy,
            marker=marker,
            color=colour,
            zorder=5,
            linestyle="none",
            markersize=4.5,
        )
        if best.syntactic:
            place = {
                "xy": (x, best.high),
                "xytext": (0, 1),
                "textcoords": "offset points",
                "ha": "center",
            }
            axes.annotate("✓", size=6, color=colour, **place)


def _key(scores: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> list[Line2D]:
    """The entries of the legend, with their labels in lines."""
    handles = []
    for corpus, (colour, marker) in looks.items():
        own = scores[scores["corpus"] == corpus]
        heads = heads_text(len(own[["layer", "head"]].dropna().drop_duplicates()))
        ours = f"{style.of_seed(corpus, own['seed'].iloc[0])} ({heads})"
        label = corpus if corpus in paper.MARKERS else ours
        handles.append(style.marker_key(label, color=colour, marker=marker))
    grey = {"color": style.PAPER_COLOUR}
    if (scores["best"] & scores["syntactic"]).any():
        handles.append(style.marker_key("✓: the best head is syntactic", marker=""))
    handles += [
        style.marker_key("95% bootstrap interval", marker="|", markersize=7, **grey),
        Line2D([], [], color="black", linewidth=1.4, label="best fixed offset"),
        style.marker_key("other heads", markersize=1.8, alpha=0.6, **grey),
    ]
    for handle in handles:
        handle.set_label(
            style.wrap(handle.get_label(), inches=style.DOUBLE / ACROSS - 0.15, size=6.5)
        )
    return handles


def table1_numbers(tables: Tables) -> pd.DataFrame:
    """The best head of each corpus, relation and direction, and the paper's; without arcs or heads,
    a row without accuracy."""
    rows = figure4_numbers(tables)
    rows = rows[rows["best"] | rows["accuracy"].isna()]
    place = rows.groupby(["relation", "direction"], sort=False).ngroup()
    return rows.assign(place=place).sort_values("place", kind="stable", ignore_index=True)


def table1_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 1: accuracy of the best encoder head on each relation, and the positional baseline
    (section 5.2.2).

    Rows with the same relation and direction are neighbours, ours first, then the paper's.
    Accuracies are percentages.
    """
    lines = []
    for row in rows.to_dict("records"):
        known, reported = pd.notna(row["accuracy"]), row["reported"]
        digits = 0 if reported else 1
        accuracy, low, high, baseline = (
            100 * row[name] for name in ("accuracy", "low", "high", "baseline")
        )
        line = {
            "relation": row["relation"],
            "direction": paper.direction_label(row["relation"], row["direction"]),
        }
        line |= {"corpus": row["corpus"], "arcs": "" if reported else f"{row['arcs']:,}"}
        line["best head"] = f"{row['layer']}-{row['head']}" if pd.notna(row["layer"]) else ""
        line["accuracy"] = sweep.value_text(accuracy, low=low, high=high, digits=digits) or "–"
        line["baseline"] = sweep.value_text(baseline, digits=digits) or "–"
        line["syntactic"] = "" if reported or not known else "yes" if row["syntactic"] else "no"
        lines.append(line)
    return pd.DataFrame(lines)
