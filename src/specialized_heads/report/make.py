"""Make a figure or a table from the five tables of an experiment.

    python -m specialized_heads.report.make specialized_heads.report.voita.figure7 --data results/default/data --output f/figure7

The module defines
    numbers   the table of all that is shown, from `data.Tables` and what the settings say
    draw      its figure, of a table with rows
    shown     its text, cell by cell, with `caption` or CAPTION, and for some `notes` and TINTS
    COLUMNS   those of the table that go into the CSV, unless all do
`numbers` takes further files by the name of their option, as paths by the title of the corpus. An output in a folder `figures` is
drawn, any other is a table.
"""

import sys
from importlib import import_module

import pandas as pd

from specialized_heads.report import data, style
from specialized_heads.report.output import save_figure, save_table
from specialized_heads.stage import arguments, run


def main() -> None:
    module = import_module(sys.argv.pop(1))
    options = getattr(module, "FILES", ())
    args = arguments(module.__doc__, files=["data", "output"], many=options)
    titles = args.settings.pop("titles", {})
    files = {option: dict(zip(titles[option], getattr(args, option), strict=True)) for option in options}
    rows = module.numbers(data.load([args.data]), **files, **args.settings)
    written = data.renamed(rows[getattr(module, "COLUMNS", rows.columns)])
    if args.output.parent.name == "figures":
        save_figure(args.output, written, lambda: module.draw(rows) if len(rows) else style.nothing())
        return
    caption = module.caption(rows) if hasattr(module, "caption") else module.CAPTION
    notes = module.notes(rows) if hasattr(module, "notes") else []
    shown = module.shown(rows) if len(rows) else pd.DataFrame(columns=["nothing to show"])
    save_table(args.output, written, shown, caption=caption, notes=notes, tints=getattr(module, "TINTS", {}))


if __name__ == "__main__":
    run(main)
