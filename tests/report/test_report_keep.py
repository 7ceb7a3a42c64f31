"""What is kept of an experiment: its configuration, which gives the same experiment again, and its small files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from specialized_heads.experiment.configuration import load
from specialized_heads.experiment.file import read
from specialized_heads.report import configuration
from specialized_heads.report.keep import keep
from specialized_heads.stage import UserError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["config.yaml", "config/paper.yaml", "config/bert_small.yaml"])
def test_the_written_configuration_is_the_same_experiment(name: str, call: Callable[..., None], tmp_path: Path) -> None:
    given = load(read(ROOT / name))
    call(configuration, settings=given.model_dump(mode="json"), output=tmp_path / "configuration.yaml")
    written = read(tmp_path / "configuration.yaml")
    assert load(written) == given
    assert written["heads"]["bootstrap"] == given.heads.bootstrap  # a key that files may leave out


def test_small_files_are_kept_old_ones_go_and_nothing_else_is_replaced(tmp_path: Path) -> None:
    kept = {"configuration.yaml", "claims.md", "claims.csv", "figures/figure7.png", "figures/figure7.csv"}
    kept |= {"tables/table2.md", "data/models.parquet"}
    results, target = tmp_path / "results", tmp_path / "kept"
    for name in [*kept, "claims.html", "figures/figure7.pdf", "a/models/baseline/seed1/model.safetensors"]:
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(name)
    assert keep(results, target) == len(kept)
    (results / "figures/figure7.png").unlink()
    keep(results, target)
    found = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert found == kept - {"figures/figure7.png"}
    with pytest.raises(UserError, match="results/a: is not a folder of kept results"):
        keep(results, results / "a")
    (results / "claims.md").unlink()
    with pytest.raises(UserError, match="no claims.md"):
        keep(results, tmp_path / "new")
    assert (results / "a/models").exists() and not (tmp_path / "new").exists()
