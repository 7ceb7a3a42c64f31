"""Stage index: one page with links to the pages of all models of an experiment, by corpus."""

import html
from collections import Counter
from itertools import groupby
from pathlib import Path

from pydantic import Field

from specialized_heads import stage
from specialized_heads.model.architecture import KINDS
from specialized_heads.tables import read_table

CSS = Path(__file__).parent / "page.css"


class Entry(stage.Section):
    """A page: its model, the title of its corpus, and its path relative to the index."""

    title: str
    model: str
    page: str


class Settings(stage.Section):
    experiment: str
    entries: list[Entry] = Field(min_length=1)


def index(settings: Settings, tables: list[Path]) -> str:
    """The page, from the entries, corpus by corpus, and the table of heads of each."""
    name = html.escape(settings.experiment)
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">',
        f"<title>Attention heads: {name}</title>\n<style>\n{CSS.read_text(encoding='utf-8')}</style>\n</head>\n<body>",
        f"<header><h1>Attention heads: {name}</h1></header>",
    ]
    for title, models in groupby(zip(settings.entries, tables, strict=True), key=lambda pair: pair[0].title):
        parts.append(f"<h2>{html.escape(title)}</h2>\n<table class='models'>")
        parts.append("<tr><th>model</th><th>heads (encoder, decoder, cross)</th><th>with a function</th></tr>")
        for entry, table in models:
            rows = read_table(table, columns=["type", "functions"]).to_pylist()
            counts = Counter(row["type"] for row in rows)
            left, labelled = ", ".join(str(counts[kind]) for kind in KINDS), sum(bool(row["functions"]) for row in rows)
            link = f'<a href="{html.escape(entry.page)}">{html.escape(entry.model)}</a>'
            parts.append(f"<tr><td>{link}</td><td>{left}</td><td>{labelled}</td></tr>")
        parts.append("</table>")
    return "\n".join([*parts, "</body>", "</html>", ""])


@stage.command("output", many=("heads",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    stage.write_file(files.output, index(settings, files.heads))
