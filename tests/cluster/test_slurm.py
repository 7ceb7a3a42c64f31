"""The slurm profile on a real slurm: the results of a local run, also where jobs are cancelled and nodes fail."""

import hashlib
import subprocess
import time
from collections.abc import Callable

MODEL = "tatoeba_en_fr/models/baseline/seed1"


def results(project) -> dict[str, str]:
    """Hashes of all that is made of the models, by path; PDF, PNG and SVG show the numbers of the CSV."""
    root = project.file("")
    files = [path for part in ("tatoeba_en_fr/models", "figures", "tables") for path in root.joinpath(part).rglob("*")]
    files.append(project.file("tatoeba_en_fr/scores.parquet"))
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()
    }


def wait_for(condition: Callable[[], object], process: subprocess.Popen, *, seconds: float = 120) -> None:
    """Wait until it holds, while the process runs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[0][-5000:]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_jobs_of_the_cluster_make_the_results_of_a_local_run(local, project, cluster) -> None:
    process = project.submit(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    asked = {}
    while process.poll() is None:
        rows = cluster.ask("squeue", "--noheader", "--states=all", "--format=%k|%C|%m|%l|%b").splitlines()
        asked |= {row.split("|")[0].partition("_wildcards")[0]: row.split("|")[1:] for row in rows}
        time.sleep(0.5)
    printed = process.communicate()[0]
    assert process.returncode == 0, printed[-5000:]
    assert results(project) == results(local)
    # Cores, memory and time of the profile; the two scores were one job, as were figure and table.
    assert asked["rule_train_baseline"][:3] == ["4", "16000M", "2-00:00:00"]
    names = ["train_baseline", "prune", "translate", "scores_score", "gather_scores", "figures"]
    assert {next((name for name in names if job.startswith(f"rule_{name}")), job) for job in asked} == set(names)


def test_training_survives_cancelled_jobs_and_failing_nodes(local, project, cluster) -> None:
    state = project.file(f"{MODEL}.state") / "state.pt"
    process = project.submit("--retries", "0", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(state.exists, process)
    [(number, _)] = cluster.jobs("train_baseline")
    cluster.ask("scancel", number)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "CANCELLED" in printed
    assert state.exists()
    assert not project.file(f"{MODEL}/model.safetensors").exists()

    process = project.submit("--retries", "0", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    saved = state.stat().st_mtime_ns
    wait_for(lambda: state.exists() and state.stat().st_mtime_ns > saved, process)
    [(number, node)] = cluster.jobs("train_baseline")
    failed = cluster.script("node-fails", node)
    assert failed.returncode == 0, failed.stdout
    assert state.exists()
    wait_for(lambda: project.file(f"{MODEL}/model.safetensors").exists(), process)
    assert f"JobId={number} " in cluster.ask("scontrol", "show", "job", number)
    assert "Restarts=1" in cluster.ask("scontrol", "show", "job", number)
    assert cluster.script("node-starts", node).returncode == 0
    printed, _ = process.communicate(timeout=180)
    assert process.returncode == 0, printed[-5000:]
    log = project.file("tatoeba_en_fr/logs/train_baseline_seed1.log").read_text(encoding="utf-8")
    assert "going on at update" in log
    assert results(project) == results(local)
