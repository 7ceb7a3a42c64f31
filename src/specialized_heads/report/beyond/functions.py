"""Table: functions of the baseline's encoder heads, one row per corpus.

The table gives, for each function, the score of the best head and the number of heads with the label. Corpora can be the same
text trained by different recipes (config/studies/recipes.yaml), which makes this the table that compares them.
"""

from math import nan

import pandas as pd

from specialized_heads.heads.functions import FUNCTIONS, OF_TOKENS, SYNTACTIC, Function
from specialized_heads.report.beyond.emergence import SHARES, relation_name
from specialized_heads.report.data import Tables

CAPTION = (
    "Functions of the baseline's encoder heads: development loss (nats per token); best share of argmaxes at each "
    "neighbour, among the queries that have that neighbour; largest margin over the best fixed offset, for a single seed with "
    "its 95% interval and its relation; best share of argmaxes at the least frequent token; number of heads with each label "
    "(positional, syntactic with an interval above zero, rare words), of all. With several seeds: lowest to highest."
)


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per baseline.

    heads: of the encoder; labelled: those with a function; uncertain: those of them whose interval includes zero;
    `share_<offset>`: the largest share at each neighbour; margin: the largest, with interval and relation; `<function>_heads`:
    heads with this label.
    """
    rows = []
    baselines = tables.translation().query("kind == 'baseline'")
    for model in baselines.itertuples():
        heads = tables.of(model.corpus).analysed(model.corpus, "baseline")
        encoder = heads[(heads["seed"] == model.seed) & (heads["type"] == "encoder")]
        row = {name: getattr(model, name) for name in ("corpus", "seed", "updates", "dev_loss")}
        row |= {"heads": len(encoder), "labelled": int((encoder["functions"].map(len) > 0).sum())}
        uncertain = encoder.loc[encoder["relations_certain"].map(len) == 0, "functions"]
        row["uncertain"] = sum(list(names) == [SYNTACTIC] for names in uncertain)
        row |= encoder[list(SHARES)].max().to_dict()
        margins = encoder.filter(regex="_margin$").stack().dropna()
        row |= {"relation": None, "margin": nan, "margin_low": nan, "margin_high": nan}
        if len(margins):  # none without encoder heads or without arcs
            head, column = margins.idxmax()
            row["relation"] = column.removesuffix("_margin")
            row |= {f"margin{end}": encoder.at[head, f"{column}{end}"] for end in ("", "_low", "_high")}
        labels = [name for names in encoder["functions"] for name in names]
        row |= {function.score: encoder[function.score].max() for function in OF_TOKENS}
        row |= {_column(function): labels.count(function.name) for function in FUNCTIONS}
        row["syntactic_heads"] = int((encoder["relations_certain"].map(len) > 0).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for corpus, seeds in rows.groupby("corpus", sort=False):
        best = seeds.sort_values("margin", na_position="first").iloc[-1]
        line = {"corpus": corpus, "seeds": str(len(seeds)), "updates": f"{best['updates']:,}"}
        line["dev loss"] = between(seeds["dev_loss"], "{:.3f}")
        for column, name in SHARES.items():
            line[name] = between(seeds[column], "{:.2f}")
        margin = between(100 * seeds["margin"], "{:+.0f}")
        if len(seeds) == 1 and best["relation"]:
            low, high = 100 * best["margin_low"], 100 * best["margin_high"]
            margin += f" [{low:.0f}, {high:.0f}] {relation_name(best['relation'])}"
        line["syntactic margin, points"] = margin
        for function in OF_TOKENS:
            line[function.measure] = between(seeds[function.score], "{:.2f}")
        for function in FUNCTIONS:
            untested = function.score in seeds and seeds[function.score].isna().all()
            count = "–" if untested else between(seeds[_column(function)], "{:.0f}") + f" of {best['heads']}"
            line[f"{function.name} heads"] = count
        lines.append(line)
    return pd.DataFrame(lines)


def notes(rows: pd.DataFrame) -> list[str]:
    """How many heads of each baseline have a function and, if none has, why that is likely."""
    lines = []
    for row in rows.itertuples():
        have = "has" if row.labelled == 1 else "have"
        line = f"{row.corpus}, seed {row.seed}: {row.labelled} of {row.heads} encoder heads {have} a function"
        if row.uncertain:
            line += f", {row.uncertain} of them with a margin whose interval includes zero"
        if not row.labelled:
            few = f"{row.updates:,} updates of training are few, or " if row.updates else ""  # 0: imported
            line += f"; most likely {few}the model is small"
        lines.append(f"{line}.")
    return lines


def _column(function: Function) -> str:
    """The column with the number of heads that have a function."""
    return f"{function.name.replace(' ', '_')}_heads"  # not the name alone, which may be that of its score


def between(values: pd.Series, form: str) -> str:
    """Lowest to highest value, or the one that all share; a dash where there is none."""
    if values.isna().all():
        return "–"
    low, high = form.format(values.min()), form.format(values.max())
    return low if low == high else f"{low} to {high}"
