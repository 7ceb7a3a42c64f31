"""What is kept of an experiment: its configuration, which gives the same experiment again, and its small files."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml

from specialized_heads.experiment.configuration import load
from specialized_heads.report import configuration
from specialized_heads.report.keep import keep
from specialized_heads.stage import UserError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["config.yaml", "config/paper.yaml", "config/bert_small.yaml"])
def test_the_written_configuration_is_the_same_experiment(name: str, call: Callable[..., None], tmp_path: Path) -> None:
    given = load(yaml.safe_load((ROOT / name).read_text(encoding="utf-8")))
    call(configuration, settings=given.model_dump(mode="json"), output=tmp_path / "configuration.yaml")
    written = yaml.safe_load((tmp_path / "configuration.yaml").read_text(encoding="utf-8"))
    assert load(written) == given
    assert written["heads"]["bootstrap"] == given.heads.bootstrap  # a key that files may leave out


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    names = ["configuration.yaml", "claims.md", "claims.csv", "claims.html", "tables/table2.md"]
    names += [f"figures/figure7.{suffix}" for suffix in ("png", "pdf", "csv")]
    for name in [*names, "a/models/baseline/seed1/model.safetensors"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    scores = pd.DataFrame({"kind": ["baseline"], "encoder_heads": [[8, 8]], "bleu": [1 / 3]})
    scores.to_parquet(folder / "a/scores.parquet")
    return folder


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_small_files_are_kept_and_old_ones_go(results: Path, tmp_path: Path) -> None:
    kept = {"configuration.yaml", "claims.md", "claims.csv", "figures/figure7.png", "figures/figure7.csv"}
    kept |= {"tables/table2.md", "scores/a.csv"}
    assert keep(results, tmp_path / "kept") == len(kept)
    assert files_below(tmp_path / "kept") == kept
    assert (tmp_path / "kept/scores/a.csv").read_text() == "kind,encoder_heads,bleu\nbaseline,[8 8],0.333333\n"
    (results / "figures" / "figure7.png").unlink()
    keep(results, tmp_path / "kept")
    assert files_below(tmp_path / "kept") == kept - {"figures/figure7.png"}


def test_nothing_else_is_replaced(results: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="mine: is not a folder of kept results"):
        keep(results, tmp_path / "mine")
    assert files_below(tmp_path / "mine") == {"notes.txt"}
    (results / "claims.md").unlink()
    with pytest.raises(UserError, match="no claims.md; run the experiment to its end first"):
        keep(results, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
