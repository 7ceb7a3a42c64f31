"""Copy the small files of a finished experiment to a folder that can be kept under version control.

    python -m specialized_heads.report.keep --results results/debian --output docs/reference/debian

What is kept: figures as PNG with their numbers, tables as Markdown with theirs, the claims, the configuration as it was
validated, and the scores of every model. Weights, text and heads stay where they are. What the folder held before goes.
"""

import shutil
import tempfile
from pathlib import Path

from specialized_heads.report.inputs import read_table
from specialized_heads.stage import UserError, arguments, log, run

KEPT = [
    "configuration.yaml",
    "claims.md",
    "claims.csv",
    "figures/*.png",
    "figures/*.csv",
    "tables/*.md",
    "tables/*.csv",
]
SCORES = "*/scores.parquet"  # of every corpus; kept as text


def keep(results: Path, output: Path) -> int:
    """Copy these files, in their folders; returns how many.

    Raises:
        UserError: there is no finished experiment, or `output` holds files that are not of such a folder.
    """
    if missing := [name for name in KEPT[:3] if not (results / name).is_file()]:
        raise UserError(f"{results}: no {missing[0]} there; run the experiment to its end first")
    if output.exists() and not (output / KEPT[0]).is_file():
        raise UserError(f"{output}: holds something else, and would be replaced; name another folder, or remove it")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        new = Path(folder) / output.name
        for path in sorted(found for pattern in KEPT for found in results.glob(pattern)):
            target = new / path.relative_to(results)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        for path in sorted(results.glob(SCORES)):
            target = new / "scores" / f"{path.parent.name}.csv"
            target.parent.mkdir(exist_ok=True)
            read_table(path, ()).to_csv(target, index=False, lineterminator="\n", float_format="%.6g")
        if output.exists():
            shutil.rmtree(output)
        new.rename(output)
    return sum(path.is_file() for path in output.rglob("*"))


def main() -> None:
    files = arguments(__doc__, files=("results", "output"))
    log.info("%d files kept in %s", keep(files.results, files.output), files.output)


if __name__ == "__main__":
    run(main)
