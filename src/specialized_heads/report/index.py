"""Stage: one page with all results of an experiment, `index.html`, and in `summary.txt` the lines
with which a run ends.

Both begin with the baselines, the best pruned models and the number of claims with each verdict.
The page shows every figure and links to every table, to the viewer and to the numbers. It has no
scripts and needs no network, and its links are relative, so that the folder can be moved.
"""

import html
import re
from itertools import groupby
from pathlib import Path

import pandas as pd

from specialized_heads import stage
from specialized_heads.experiment.figures import BY_STEM, CLAIMS, Result
from specialized_heads.report import style, sweep
from specialized_heads.report.claims.claim import VERDICTS, Verdict
from specialized_heads.report.data import TOTALS, is_decided, read_csv
from specialized_heads.tables import read_table

CSS = Path(__file__).parents[1] / "assets" / "page.css"
LOOKS = """body { max-width: 66rem; }
nav a { display: inline-block; margin-right: 1rem; }
h2 { border-top: 1px solid var(--rule); margin-top: 2rem; padding-top: 1rem; }
h3 { font-size: 0.95rem; margin: 1.2rem 0 0.3rem; }
dl { display: grid; gap: 0.2rem 1rem; margin: 0 0 0.5rem; }
dl { grid-template-columns: auto minmax(0, 1fr); }
dt { font-weight: 600; }
dd { grid-column: 2; margin: 0; overflow-wrap: anywhere; }
dl, p { max-width: 60rem; }
figure { margin: 0 0 1.5rem; }
.scroll th, .scroll td { overflow-wrap: break-word; }
img { height: auto; max-width: 100%; }
"""
BEST = (
    "Best pruned: of the models that have lost heads to gates, the one with the highest score; "
    "models with undecided gates are "
    "considered only if there are no others. Scores and numbers of heads are means over seeds."
)
MEANINGS = VERDICTS | {
    Verdict.NOT_TESTABLE: "the experiment lacks what the claim needs; the page of claims says what"
}


class Settings(stage.Section):
    experiment: str
    results: list[str]  # figures and tables, by stem
    tables: list[str]  # of the five
    viewer: bool


def of_models(models: pd.DataFrame) -> dict[str, list[str]]:
    """Score and heads of the baseline and of the best pruned model of each corpus and task, as
    text."""
    lines: dict[str, list[str]] = {"Baseline": [], "Best pruned": []}
    for title, rows in models.astype({"target_heads": float}).groupby("title", sort=False):
        rows = rows.assign(heads=rows[TOTALS].sum(axis=1), decided=is_decided(rows).astype(float))
        whole = rows.loc[rows["kind"] == "baseline", "heads"].max()
        kept = rows[rows["kind"].isin(["baseline", "pruned"])]
        means = sweep.over_seeds(
            kept, ["heads", "bleu", "decided"], ["metric", "scope", *sweep.TARGET]
        )
        means = means[(means["kind"] == "baseline") | (means["heads"] < whole)]
        means = means.assign(undecided=means["decided"] < 1)
        for name, kind in (("Baseline", "baseline"), ("Best pruned", "pruned")):
            ranked = means[means["kind"] == kind].sort_values(
                ["undecided", "bleu", "heads"], ascending=[True, False, True]
            )
            for model in ranked.head(1).to_dict("records"):
                heads = f"{model['heads']:.1f}".removesuffix(".0")
                text = f"{title}: {model['metric']} {model['bleu']:.1f} with {heads}"
                more = [f"mean of {model['seeds']} seeds"] if model["seeds"] > 1 else []
                if kind == "pruned":
                    text += f" of {whole:.0f}"
                    more = [
                        sweep.target(model["lam"], model["target_heads"]),
                        style.SCOPES[model["scope"]],
                        *more,
                    ]
                    more += ["gates not decided"] if model["undecided"] else []
                lines[name].append(f"{text} heads" + (f" ({', '.join(more)})" if more else ""))
    return lines


def counted(claims: pd.DataFrame) -> pd.DataFrame:
    """How many claims have each verdict (rows) on each corpus (columns), without verdicts that no
    claim has."""
    counts = pd.crosstab(claims["verdict"], claims["corpus"])
    present = [verdict.value for verdict in Verdict if verdict.value in counts.index]
    return counts.reindex(index=present, columns=claims["corpus"].unique())


def of_claims(counts: pd.DataFrame) -> list[str]:
    """The claims of each corpus by verdict, as text; without values that neither paper claims."""
    judged = counts.drop(index=Verdict.VALUE_ONLY.value, errors="ignore")
    texts = {
        title: [f"{n} {verdict}" for verdict, n in own.items() if n]
        for title, own in judged.items()
    }
    return [f"{title}: {', '.join(own)}" for title, own in texts.items() if own]


def page(found: dict[str, list[str]], counts: pd.DataFrame, settings: Settings) -> str:
    """The page; `found`: what it begins with, by name."""
    results = [BY_STEM[stem] for stem in settings.results]
    categories = [
        (category, list(own))
        for category, own in groupby(results, key=lambda result: result.category)
    ]
    links = [(f"#{number}", category) for number, (category, _) in enumerate(categories)]
    links += [("viewer/index.html", "Viewer")] if settings.viewer else []
    name, css = html.escape(f"Results: {settings.experiment}"), CSS.read_text(encoding="utf-8")
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" '
        'href="data:,">',
        f"<title>{name}</title>\n<style>\n{css}{LOOKS}</style>\n</head>\n<body>\n<header><h1>{name}</h1></header>",
        "<dl>",
        *(f"<dt>{key}</dt>" + "".join(map(_line, texts)) for key, texts in found.items()),
        "</dl>",
        *([f'<p class="note">{BEST}</p>'] if "Best pruned" in found else []),
        "<nav>" + "\n".join(_link(path, text) for path, text in links) + "</nav>",
    ]
    for number, (category, own) in enumerate(categories):
        parts.append(f'<h2 id="{number}">{html.escape(category)}</h2>')
        parts += [_verdicts(counts)] if category == CLAIMS and len(counts) else []
        parts += map(_shown, own)
    numbers = [_link(f"data/{table}.parquet", table) for table in settings.tables]
    configuration = _link("configuration.yaml", "configuration")
    parts.append(
        f"<h2>Numbers</h2>\n<p>Tables for pandas: {', '.join(numbers)}. The {configuration} with "
        f"all defaults.</p>"
    )
    return "\n".join([*parts, "</body>", "</html>", ""])


def _verdicts(counts: pd.DataFrame) -> str:
    lines = [
        [verdict, *own, MEANINGS[Verdict(verdict)]]
        for verdict, own in zip(counts.index, counts.to_numpy())
    ]
    table = pd.DataFrame(lines, columns=["verdict", *counts.columns, "meaning"])
    with pd.option_context("display.max_colwidth", None):
        page = table.to_html(index=False, border=0, justify="unset", classes="models")
    return f'<div class="scroll">{page}</div>'


def _shown(result: Result) -> str:
    """A figure with its caption, or a link to a table, and links to its other formats."""
    first, *others = (f"{result.stem}.{suffix}" for suffix in result.suffixes)
    label = html.escape(result.label.replace("\u2007", ""))  # which sorts the labels of the report
    formats = ", ".join(_link(path, path.rpartition(".")[2].upper()) for path in others)
    if not result.stem.startswith("figures/"):
        return f'<h3><a href="{first}">{label}</a> <small>({formats})</small></h3>'
    # Code is between backticks, as in all docstrings.
    text = re.sub("`+([^`]+)`+", r"<code>\1</code>", html.escape(result.caption))
    caption = "".join(f"<p>{part}</p>" for part in text.split("\n\n"))
    # A dot of the screen for two of the image, so that all figures have one scale.
    image = (
        f'<picture><source srcset="{first} 2x"><img src="{first}" alt="{label}" '
        f'loading="lazy"></picture>'
    )
    figure = (
        f'<figure><a href="{first}">{image}</a><figcaption '
        f'class="note">{caption}</figcaption></figure>'
    )
    return f"<h3>{label} <small>({formats})</small></h3>\n{figure}"


def _line(text: str) -> str:
    return f"<dd>{html.escape(text)}</dd>"


def _link(path: str, text: str) -> str:
    return f'<a href="{html.escape(path)}">{html.escape(text)}</a>'


def former(folder: Path, settings: Settings) -> list[str]:
    """Figures and tables of the folder that these settings no longer ask for, and its viewer."""
    gone = [stem for stem in BY_STEM if stem not in settings.results]
    names = [f"{stem}.{suffix}" for stem in gone for suffix in (*BY_STEM[stem].suffixes, "csv")]
    names += [] if settings.viewer else ["viewer/index.html"]
    return [name for name in dict.fromkeys(names) if (folder / name).is_file()]


@stage.command("models", "claims", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    if old := former(files.output.parent, settings):
        said = "%s: files of earlier settings, which the page of results leaves out: %s"
        stage.log.warning(said, files.output.parent, ", ".join(old))
    counts = counted(read_csv(files.claims, dtype=str, keep_default_na=False))
    found = of_models(read_table(files.models).to_pandas()) | {"Claims": of_claims(counts)}
    found = {name: texts for name, texts in found.items() if texts}
    stage.write_file(files.output, page(found, counts, settings))
    folder = files.output.parent
    found["Report"] = [
        f"{files.output}",
        f"tables: {folder / 'tables'}",
        f"numbers: {folder / 'data'}",
    ]
    found |= {"Viewer": [f"{folder / 'viewer' / 'index.html'}"]} if settings.viewer else {}
    lines = "".join(
        f"{f'{name}:':<13}{'; '.join(map(stage.one_line, texts))}\n"
        for name, texts in found.items()
    )
    stage.write_file(files.output.with_name("summary.txt"), lines)
