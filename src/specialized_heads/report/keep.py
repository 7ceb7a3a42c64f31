"""Copy the small files of a finished experiment to a folder that can be kept under version control.

    python -m specialized_heads.report.keep --results results/my_pair --output docs/reference/my_pair

It copies figures as PNG and tables as Markdown, both with their numbers, the claims, the validated configuration and the five
tables of all that was measured, but no weights and no text. The folder's former content is replaced.
"""

import shutil
import tempfile
from pathlib import Path

from specialized_heads.stage import Files, UserError, command, log

NEEDED = ["configuration.yaml", "claims.md", "claims.csv"]
KEPT = [*NEEDED, "figures/*.png", "figures/*.csv", "tables/*.md", "tables/*.csv", "data/*.parquet"]


def keep(results: Path, output: Path) -> int:
    """Copy these files into the same folders below `output`; return their number.

    Raises:
        UserError: the experiment is not finished, or `output` is a folder of something else.
    """
    if missing := [name for name in NEEDED if not (results / name).is_file()]:
        raise UserError(f"{results}: no {missing[0]}; run the experiment to its end first")
    if output.exists() and not (output / NEEDED[0]).is_file():
        raise UserError(
            f"{output}: is not a folder of kept results and would be replaced; give another one, or remove it"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        new = Path(folder) / output.name
        for path in sorted(path for pattern in KEPT for path in results.glob(pattern)):
            target = new / path.relative_to(results)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        if output.exists():
            shutil.rmtree(output)
        new.rename(output)
    return sum(path.is_file() for path in output.rglob("*"))


@command("results", "output")
def main(files: Files) -> None:
    log.info("%d files kept in %s", keep(files.results, files.output), files.output)
