"""What pruning costs in BLEU (section 6): figure 7, table 2, and the controls of pruning."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.experiment.names import CONTROLS
from specialized_heads.report import paper, style, sweep
from specialized_heads.report.claims.evidence import MODEL
from specialized_heads.report.data import TOTALS, Tables, stack, with_ends

FIGURE7_COLUMNS = [*sweep.POINT, *with_ends("heads", "share", "bleu", "difference")]
FIGURE7_COLUMNS += ["difference_lowest", "difference_highest", "p_value", "decided", "reference"]
FIGURE7_COLUMNS += ["sentences"]
TABLE2_CAPTION = (
    "Heads left in encoder self-attention, decoder self-attention and cross-attention, and test "
    "BLEU with 95% bootstrap intervals, after pruning and trained from scratch; p: against the "
    "baseline of the same seed (paired bootstrap); tok.: BLEU of lower-case Moses tokens, closer "
    "to the paper's"
)
SEVERAL = (
    "with several seeds, BLEU is mean ± standard deviation, heads are means, and p is the largest, "
    "or 1 if some seeds gain and others lose"
)
SCORES = [*with_ends("bleu"), "p_value", "difference", "bleu_tokenised"]
SHOWN = {
    "": ("BLEU", "tok.", "p"),
    "scratch_": ("BLEU from scratch", "tok. (scratch)", "p (scratch)"),
}
SCRATCH = {name: f"scratch_{name}" for name in ("kind", "updates", *SCORES)}
TABLE2_COLUMNS = [
    "corpus",
    "kind",
    *MODEL,
    *TOTALS,
    "sentences",
    "updates",
    *SCORES,
    *SCRATCH.values(),
]
KINDS = ["baseline", "pruned", *CONTROLS]
CONTROLS_CAPTION = (
    "Pruned models and their controls: heads left in encoder self-attention, decoder "
    "self-attention and cross-attention; updates of training, or of fine-tuning alone if the "
    "baseline was pruned; test BLEU with 95% bootstrap interval, or mean ± standard deviation "
    "over seeds; p: against the baseline of the same seed (paired bootstrap), the largest over "
    "seeds, or 1 if some seeds gain and others lose."
)
CONTROLS_COLUMNS = ["corpus", "scope", "lam", "target_heads", "kind", "seeds", *TOTALS]
CONTROLS_COLUMNS += ["updates", "bleu", "bleu_sd", "p_value"]


def figure7_numbers(tables: Tables) -> pd.DataFrame:
    """Points of each corpus that has models with pruned encoder heads, then the paper's.

    The columns are those of `sweep.costs`.
    """
    corpora = style.by(tables.pruned(), "corpus")
    points = stack(
        [
            sweep.costs(scores, scope="encoder").assign(corpus=title)
            for title, scores in corpora.items()
        ],
        FIGURE7_COLUMNS,
    )
    reported = pd.DataFrame(paper.FIGURE7).assign(kind="reported", reference="baseline")
    reported = reported.assign(
        share=reported["heads"] / paper.HEADS_PER_TYPE, difference=-reported["loss"]
    )
    return stack([points, reported], FIGURE7_COLUMNS) if len(points) else points


def figure7_draw(points: pd.DataFrame) -> Figure:
    """Figure 7: BLEU with fewer encoder heads (section 6.2.1), and the change in BLEU.

    Left, BLEU with its 95% bootstrap interval, or the range over several seeds. Right, the
    difference from the reference: the baseline, or the model trained for as long with λ 0 if there
    is one. Bars are 95% intervals of the paired bootstrap; with several seeds, of the mean, as in
    the claims, with the lowest and the highest seed beside it ("of 2": a mean of fewer seeds). The
    paper's two results are beside ours on the right; its BLEU was 29.6 and 32.4. A filled marker
    differs from the reference at p < 0.05, for every seed and in the same direction. A grey square
    has undecided gates, and does not count in the claims.
    """
    corpora = style.by(points, "corpus")
    drawn = Figure(
        figsize=(style.DOUBLE, 2.6 + 0.13 * ((len(corpora) + 4) // 2)), layout="constrained"
    )
    panels = drawn.subplots(1, 2)
    handles = []
    for number, (corpus, rows) in enumerate(corpora.items()):
        if corpus in paper.MARKERS:
            point = {"color": style.PAPER_COLOUR, "marker": paper.MARKERS[corpus], "markersize": 6}
            handles += panels[1].plot(
                rows["share"], rows["difference"], label=corpus, linestyle="none", **point
            )
            continue
        look = style.series(number)
        for series, line in sweep.split(rows, look):
            for axes, y in zip(panels, ("bleu", "difference"), strict=True):
                # Where two models have equally many heads, the line goes to the stronger penalty.
                sweep.line(axes, series.iloc[::-1], x="share", y=y, look=line)
        for control in rows[rows["lam"] == 0].itertuples():
            place = {"xytext": (5, 5 + 8 * (number % 3)), "textcoords": "offset points"}
            panels[1].annotate(
                "λ 0", (control.share, control.difference), size=6.5, color=look.colour, **place
            )
        sizes = f"n = {rows['sentences'].iloc[0]:,.0f}" + sweep.seeds_note(
            rows, text=", mean of {} seeds"
        )
        handles.append(
            style.key(look, f"{corpus}, {sizes}; reference: {sweep.reference_text(rows)}")
        )
    for handle in handles:
        handle.set_label(style.wrap(handle.get_label(), inches=style.DOUBLE / 2 - 0.4, size=6.5))
    panels[1].margins(y=0.12)  # room for the labels of λ 0
    panels[1].axhline(0, **style.REFERENCE)
    whole = {paper.HEADS_PER_TYPE, *points.loc[points["kind"] == "baseline", "heads"]}
    of = f"{max(whole):.0f} encoder heads" if len(whole) == 1 else "all encoder heads"
    for axes, ylabel in zip(panels, ("BLEU", "change in BLEU"), strict=True):
        style.share_axis(axes, of, ylabel=ylabel)
        if len(whole) == 1:
            number = (lambda share: share * max(whole)), (lambda heads: heads / max(whole))
            axes.secondary_xaxis("top", functions=number).set_xlabel("heads left, number")
        sweep.widen(axes)
    handles += [
        Line2D([], [], label="reference", **style.REFERENCE),
        *sweep.filled_key(points),
        *sweep.bars_key(points),
        *sweep.key(points),
    ]
    drawn.set_figheight(max(drawn.get_figheight(), 2.0 + style.legend_height(handles, ncols=2)))
    style.legend(drawn, handles, ncols=2)
    return drawn


def table2_numbers(tables: Tables) -> pd.DataFrame:
    """One row per baseline and pruned model of each corpus, with its twin from scratch under
    `scratch_`, then the paper's. The twins are of kind `continued` if there are any."""
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        kind = "continued" if (scores["kind"] == "continued").any() else "scratch"
        twins = scores.loc[scores["kind"] == kind, [*MODEL, *SCRATCH]].rename(columns=SCRATCH)
        scopes = {"all"} | set(twins["scope"])
        pruned = scores[(scores["kind"] == "pruned") & scores["scope"].isin(scopes)]
        pruned = sweep.in_order(pruned, {"scope": True, **sweep.WEAKEST_FIRST, "seed": True})
        baselines = scores[scores["kind"] == "baseline"].sort_values("seed")
        models = [baselines, pruned.merge(twins, on=MODEL, how="left")]
        frames += [frame.assign(corpus=title) for frame in models if len(frame)]
    frames += [_reported(corpus, bleu) for corpus, bleu in paper.BASELINE_BLEU.items()]
    rows = pd.concat(
        [frame.reindex(columns=TABLE2_COLUMNS).astype(object) for frame in frames],
        ignore_index=True,
    )
    whole = ["seed", *TOTALS, "sentences", "updates", "scratch_updates"]
    types = dict.fromkeys(("corpus", "kind", "scope", SCRATCH["kind"]), object) | dict.fromkeys(
        whole, "Int64"
    )
    return rows.astype(dict.fromkeys(TABLE2_COLUMNS, float) | types)


def _reported(corpus: str, bleu: float) -> pd.DataFrame:
    rows = [["baseline", "", *[paper.HEADS_PER_TYPE] * 3, bleu, None]]
    rows += [["pruned", "all", *row[1:]] for row in paper.TABLE2 if row.corpus == corpus]
    return pd.DataFrame(rows, columns=["kind", "scope", *TOTALS, "bleu", "scratch_bleu"]).assign(
        corpus=corpus
    )


def table2_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 2: heads left per attention type, BLEU after pruning, and BLEU of the same
    configuration trained from scratch.

    One row per target, a λ or a number of heads (section 6.3.1): for scope `all`, and also for
    scope `encoder` where its configurations were trained from scratch. The seeds of a model share a
    row of the table, but have one row each in the CSV. The paper's rows follow ours.
    """
    # The paper's models have no target to tell them apart: each is a row.
    reported = rows["seed"].isna()
    keys = ["corpus", "kind", "scope", "lam", "target_heads", reported.cumsum().where(reported, 0)]
    cells = pd.DataFrame(
        [_table2_row(same) for _, same in rows.groupby(keys, dropna=False, sort=False)]
    )
    if cells["seeds"].isin(["", "1"]).all():
        cells = cells.drop(columns="seeds")
    return cells.drop(columns="scope") if rows["scope"].replace("", pd.NA).nunique() < 2 else cells


def _table2_row(same: pd.DataFrame) -> dict[str, str]:
    """One row of the table: the seeds of one model."""
    first = same.iloc[0]
    ours = pd.notna(first["seed"])
    digits = 1 if ours or first["kind"] == "baseline" else 2  # as in the paper
    target = (
        sweep.target(first["lam"], first["target_heads"])
        if ours and first["kind"] == "pruned"
        else ""
    )
    line = {
        "corpus": first["corpus"],
        "n": f"{first['sentences']:,}" if ours else "",
        "model": target or first["kind"],
        "scope": first["scope"],
        "seeds": str(len(same)) if ours else "",
        "enc/dec/cross": sweep.by_type_text(same[TOTALS].mean()),
    }
    for prefix, names in SHOWN.items():
        own = same.dropna(subset=f"{prefix}bleu")
        bleu, tokens = own[f"{prefix}bleu"], own[f"{prefix}bleu_tokenised"]
        low, high = own[f"{prefix}bleu_low"].mean(), own[f"{prefix}bleu_high"].mean()
        p_value = sweep.p_of_seeds(own[f"{prefix}p_value"], own[f"{prefix}difference"])
        text = sweep.value_text(bleu.mean(), sd=bleu.std(), low=low, high=high, digits=digits)
        if 0 < len(own) < len(same):
            text += f", seed{'s' * (len(own) > 1)} {', '.join(map(str, own['seed']))}"
        texts = [text, sweep.value_text(tokens.mean(), sd=tokens.std()), sweep.p_cell(p_value)]
        line |= dict(zip(names, texts, strict=True))
    return line


def table2_caption(rows: pd.DataFrame) -> str:
    """The caption, which names the seeds, unequal training, and a table without pruned models."""
    ours = rows[rows["seed"].notna()]
    parts = [TABLE2_CAPTION]
    if ours["seed"].nunique() > 1:
        parts.append(SEVERAL)
    for corpus, same in ours.groupby("corpus", sort=False):
        twins, baselines = same[same["scratch_updates"].notna()], same[same["kind"] == "baseline"]
        if len(twins):
            updates = twins["scratch_updates"].min()
            full = baselines["updates"].max() + twins["updates"].max()
            decays = "two decays" if (twins["scratch_kind"] == "continued").all() else "one decay"
            said = f"{updates:,} updates in {decays}, {full:,} of the pruned models in two"
            parts.append(f"{corpus} from scratch: {said}")
    if (ours["kind"] == "baseline").all():
        parts.append(sweep.NO_PRUNED)
    return "; ".join(parts) + "."


def controls_numbers(tables: Tables) -> pd.DataFrame:
    """One row per model: baselines, then target by target in the order of `KINDS`; heads and BLEU
    are means over seeds."""
    models = tables.pruned()
    corpora = list(models["corpus"].unique())
    models = models[models["kind"].isin(KINDS)]
    places = {
        "corpus_place": models["corpus"].map(corpora.index),
        "place": models["kind"].map(KINDS.index),
    }
    models = models.assign(**places, scope=models["scope"].mask(models["kind"] == "baseline", ""))
    order = dict.fromkeys(["corpus_place", "scope"], True) | sweep.WEAKEST_FIRST
    order |= dict.fromkeys(["place", "seed"], True)
    models, values = sweep.in_order(models, order), ["bleu", *TOTALS]
    keys, same = ["corpus", "scope", "lam", "target_heads", "kind"], {"p_values": "difference"}
    return sweep.over_seeds(models, values, keys, sort=False, first=["updates"], **same)


def controls_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Controls of pruning: each pruned model beside the models trained from scratch (section 6,
    footnote 8).

    scratch: the same heads per layer, from random initialisation. count: as many heads of each
    type, spread evenly over the layers, from random initialisation. regularised: the pruning
    objective from random initialisation, whose gates may leave another number of heads. continued,
    continued_count, continued_regularised: these three, trained on with the schedule of pruning.
    """
    lines = [
        {
            "corpus": row.corpus,
            "scope": row.scope,
            "target": "" if row.kind == "baseline" else sweep.target(row.lam, row.target_heads),
            "model": row.kind,
            "enc/dec/cross": sweep.by_type_text(row._asdict()),
            "updates": f"{row.updates:,}",
            "BLEU": sweep.value_text(
                row.bleu, sd=row.bleu_sd, low=row.bleu_low, high=row.bleu_high
            ),
            "n": str(row.seeds),
            "p": sweep.p_cell(row.p_value),
        }
        for row in rows.itertuples()
    ]
    return sweep.without_constant(pd.DataFrame(lines))
