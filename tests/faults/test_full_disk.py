"""A full disk: the job names the file and leaves nothing incomplete, and with more room the same command succeeds."""

import os
import shutil
import subprocess
import sys

import pytest
from workflows import ENVIRONMENT

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"


@pytest.mark.parametrize(
    ("log", "module", "largest", "file"),
    [
        (f"{RU}/logs/corpus_clean.log", "corpus.clean", 20_000, f"{RU}/corpus/clean.parquet"),
        ("logs/figures/figure3.log", "report.voita.figure3", 8_000, "figures/figure3.pdf"),
    ],
    ids=["text", "figure"],
)
def test_a_file_larger_than_the_limit(scene, log: str, module: str, largest: int, file: str) -> None:
    """`largest` bytes, as `ulimit -f` sets; to a program a quota looks the same."""
    scene.arm("limit", module=f"specialized_heads.{module}", largest=largest)

    status, printed = scene.stage(log)

    assert status == 2, printed
    assert f"error: results/smoke/{file}: the file would exceed the size limit" in printed
    assert "Traceback" not in printed
    assert not scene.armed()
    status, printed = scene.stage(log)
    assert status == 0, printed
    assert scene.differences() == []


# Runs the command with two small disks, then with more room. The results are copied, because the disks vanish with the script.
SCRIPT = """
models=$1 corpus=$2; shift 2
mount -t tmpfs -o size=1m none "$models" && mount -t tmpfs -o size=1m none "$corpus" || exit 77
"$@" > first.log 2>&1
echo $? > first
mount -o remount,size=50m "$models" && mount -o remount,size=50m "$corpus"
"$@" > second.log 2>&1
echo $? > second
cp -a "$models" models; cp -a "$corpus" corpus
"""


def test_a_full_disk(scene) -> None:
    """Two small disks, one for a model in training, one for a text."""
    private = ["unshare", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*private, "mount", "-t", "tmpfs", "none", "/mnt"]).returncode:
        pytest.skip("this machine does not allow mounting file systems, even privately")
    root, models, corpus = scene.project.root, f"{RU}/models/baseline", f"{FR}/corpus"
    targets = [f"results/smoke/{MODEL}/model.safetensors", f"results/smoke/{FR}/corpus/raw.parquet"]
    command = [sys.executable, "-m", "snakemake", "--configfile", scene.project.configuration, "--cores", "2"]
    script = ["sh", "-c", SCRIPT, "sh", f"results/smoke/{models}", f"results/smoke/{corpus}"]

    subprocess.run([*private, *script, *command, "--keep-going", *targets], cwd=root, env=ENVIRONMENT, check=True)

    printed = (root / "first.log").read_text(encoding="utf-8")
    assert (root / "first").read_text() != "0\n"
    for file in (f"{MODEL}.state/state.pt", f"{FR}/corpus/raw.parquet"):
        assert f"error: results/smoke/{file}: the disk is full; free some space and run again" in printed
    assert (root / "second").read_text() == "0\n", (root / "second.log").read_text(encoding="utf-8")[-3000:]
    for copy, folder, names in (
        ("models", models, ("seed1/model.safetensors", "seed1/model.json")),
        ("corpus", corpus, ("raw.parquet", "raw.json")),
    ):
        for name in names:
            assert (root / copy / name).read_bytes() == scene.undisturbed.file(f"{folder}/{name}").read_bytes(), name
        assert not [path for path in (root / copy).rglob("*") if path.name.startswith(".")]
    assert not (root / "models" / "seed1.state").exists()


# Missing permissions and wrong clocks: either results are the same bytes, or one line says what is wrong.

YEARS = 365.25 * 24 * 3600


@pytest.fixture(scope="module")
def unprivileged() -> tuple[str, ...]:
    """The start of a command that must respect permissions, which root does not unless it gives up that right."""
    rights = "-dac_override,-dac_read_search"
    command = ("setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}") if os.geteuid() == 0 else ()
    if command and (shutil.which("setpriv") is None or subprocess.run([*command, "true"]).returncode):
        pytest.skip("root cannot give up its rights here")
    return command


@pytest.mark.parametrize(
    ("log", "path", "forbidden", "allowed", "error"),
    [
        (f"{FR}/logs/relations.log", f"{FR}/parses/analysis.parquet", 0, 0o644, "{path}: permission denied"),
        (
            "logs/figures/figure3.log",
            "figures",
            0o555,
            0o755,
            "{path}/figure3.pdf: cannot be written; make its folder writable",
        ),
    ],
    ids=["unreadable_input", "read_only_folder"],
)
def test_a_missing_permission(scene, unprivileged, log, path: str, forbidden: int, allowed: int, error: str) -> None:
    scene.file(path).chmod(forbidden)
    status, printed = scene.stage(log, before=unprivileged)
    assert (status, printed.count("error: ")) == (2, 1), printed
    assert f"error: results/smoke/{error.format(path=path)}" in printed

    scene.file(path).chmod(allowed)
    assert scene.stage(log, before=unprivileged)[0] == 0
    assert scene.differences() == []


def test_a_clock_that_is_years_off_and_runs_backwards(scene) -> None:
    scene.arm("clock", module="specialized_heads.training.train", clock=60 * YEARS)
    status, printed = scene.stage(f"{RU}/logs/train_baseline_seed1.log")
    assert status == 0, printed
    assert not scene.armed()
    assert scene.differences() == []
