"""Rights that are missing, and clocks that are wrong: results are the same bytes, or a line says what is missing."""

import os
import shutil
import subprocess
import time

import pytest

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
YEARS = 365.25 * 24 * 3600


@pytest.fixture(scope="module")
def bound_by_rights() -> tuple[str, ...]:
    """What starts a command that permissions hold for: root passes over them, unless it gives that up."""
    given_up = "-dac_override,-dac_read_search"
    command = ("setpriv", f"--bounding-set={given_up}", f"--inh-caps={given_up}") if os.geteuid() == 0 else ()
    if command and (shutil.which("setpriv") is None or subprocess.run([*command, "true"]).returncode):
        pytest.skip("root cannot give up its rights here")
    return command


def test_an_input_that_may_not_be_read(scene, bound_by_rights: tuple[str, ...]) -> None:
    log, name = f"{FR}/logs/relations.log", f"{FR}/parses/analysis.parquet"
    scene.file(name).chmod(0)
    status, said = scene.stage(log, before=bound_by_rights)
    assert (status, said.count("error: ")) == (2, 1), said
    assert f"error: results/smoke/{name}: permission denied" in said
    scene.file(name).chmod(0o644)
    assert scene.stage(log, before=bound_by_rights)[0] == 0
    assert scene.differences() == []


def test_a_folder_that_may_not_be_written(scene, bound_by_rights: tuple[str, ...]) -> None:
    scene.file("figures").chmod(0o555)
    status, said = scene.stage("logs/figure3.log", before=bound_by_rights)
    assert (status, said.count("error: ")) == (2, 1), said
    assert "error: results/smoke/figures/figure3.pdf: cannot be written; make its folder writable" in said
    scene.file("figures").chmod(0o755)
    assert scene.stage("logs/figure3.log", before=bound_by_rights)[0] == 0
    assert scene.differences() == []


def test_a_text_out_of_the_future(scene) -> None:
    """Results of it stand, for its content is the same; one made anew is older, which Snakemake does not believe, and says so."""
    name, text = f"{RU}/corpus/raw.parquet", scene.project.root / "resources" / RU / "corpus.parquet"
    now, later = text.stat().st_mtime, time.time() + 10 * YEARS
    os.utime(text, (later, later))
    run = scene.run(name)
    assert (run.status, run.rules) == (0, set()), run.printed[-3000:]
    scene.file(name).unlink()
    run = scene.run(name)
    assert run.status != 0
    assert f"Output results/smoke/{name} has older modification time" in run.printed
    assert f"than input resources/{RU}/corpus.parquet" in run.printed
    os.utime(text, (now, now))
    run = scene.run(name)
    assert (run.status, run.rules) == (0, {"corpus_raw"}), run.printed[-3000:]
    assert scene.differences() == []


def test_results_out_of_the_past_in_any_order(scene) -> None:
    """As after a copy without times, or with the clock of a machine whose battery is empty."""
    names = sorted(path for path in scene.file(f"{RU}/corpus").rglob("*") if path.is_file())
    for number, path in enumerate(names):
        os.utime(path, (number * 7919 % 1000, number * 7919 % 1000))  # seconds after 1970
    run = scene.run(f"{RU}/corpus/tokens/dev.safetensors")
    assert run.status == 0, run.printed[-3000:]
    assert scene.differences() == []


@pytest.mark.parametrize(
    ("log", "module"),
    [
        (f"{RU}/logs/train_baseline_seed1.log", "training.train"),
        (f"{RU}/logs/corpus_raw.log", "corpus.raw"),
        ("logs/figure3.log", "report.figure3"),
    ],
)
def test_a_clock_that_is_years_off_and_runs_backwards(scene, log: str, module: str) -> None:
    scene.arm("clock", module=f"specialized_heads.{module}", clock=60 * YEARS)
    status, said = scene.stage(log)
    assert status == 0, said
    assert scene.armed() == []
    assert scene.differences() == []
