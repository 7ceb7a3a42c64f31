"""Make a figure, a table, or both, from a module of the report.

    python -m specialized_heads.report.make specialized_heads.report.voita.figure7 --scores ... --output ...

The module defines
    READS     the files of each option (`inputs.Files`)
    numbers   from their contents, in this order: the table of all that is shown
    draw      its figure
    shown     its text, cell by cell, with `caption` or CAPTION, and for some `notes` and TINTS
    COLUMNS   those of the table that go into the CSV, unless all do
A keyword-only parameter of these functions is a setting of the same name. A module with both `draw` and `shown` takes `--figure`
and `--table` in place of `--output`.
"""

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pydantic import create_model

from specialized_heads.report.output import save_figure, save_table
from specialized_heads.stage import Section, arguments, run

BLEU = "BLEU"  # default of the setting `metric`, which names the score of classification tasks


def main() -> None:
    module = import_module(sys.argv.pop(1))
    parts = {
        name: part for name, part in vars(module).items() if name in ("numbers", "draw", "shown", "caption", "notes")
    }
    both = {"draw", "shown"} <= set(parts)
    single = [option for option, files in module.READS.items() if not files.by]
    several = [option for option, files in module.READS.items() if files.by]
    outputs = ["figure", "table"] if both else ["output"]
    args = arguments(module.__doc__, files=[*outputs, *single], many=several)
    # Most experiments have no tasks.
    owners = {by: (files.owners, [] if by == "tasks" else ...) for files in module.READS.values() if (by := files.by)}
    given = {name: kind for part in parts.values() for name, kind in _settings(part).items()}
    settings = create_model("Settings", __base__=Section, **owners | given).model_validate(args.settings)

    def call(part: str, *values: object) -> Any:
        return parts[part](*values, **{name: getattr(settings, name) for name in _settings(parts[part])})

    read = []
    for option, files in module.READS.items():
        paths = getattr(args, option)
        read.append(files.several(paths, getattr(settings, files.by)) if files.by else files.one(paths))
    rows = call("numbers", *read)
    written = rows[getattr(module, "COLUMNS", rows.columns)]
    if getattr(settings, "metric", BLEU) != BLEU:
        written = written.rename(columns=lambda name: name.replace("bleu", "score"))
    if "draw" in parts:
        save_figure(args.figure if both else args.output, written, lambda: call("draw", rows))
    if "shown" in parts:
        caption = call("caption", rows) if "caption" in parts else module.CAPTION
        notes = call("notes", rows) if "notes" in parts else []
        stem = args.table if both else args.output
        save_table(stem, written, call("shown", rows), caption=caption, notes=notes, tints=getattr(module, "TINTS", {}))


def _settings(part: Callable) -> dict[str, tuple]:
    """Type and default of the settings that a function takes."""
    parameters = [each for each in inspect.signature(part).parameters.values() if each.kind is each.KEYWORD_ONLY]
    return {each.name: (each.annotation, ... if each.default is each.empty else each.default) for each in parameters}


if __name__ == "__main__":
    run(main)
