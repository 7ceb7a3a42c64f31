"""The slurm profile on a real slurm gives the results of a local run, also after cancelled jobs and failing nodes."""

import functools
import hashlib
import time

from workflows import wait_for

MODEL = "tatoeba_en_fr/models/baseline/seed1"


def results(project) -> dict[str, str]:
    """Hashes of the models and of everything made from them, by path."""
    root = project.file("")
    parts = ("tatoeba_en_fr/models", "data", "figures", "tables")
    files = [path for part in parts for path in root.joinpath(part).rglob("*")]
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()
    }


def test_cluster_jobs_make_the_results_of_a_local_run(local, project, cluster) -> None:
    process = project.submit()
    jobs = {}
    while process.poll() is None:
        rows = cluster.ask("squeue", "--noheader", "--states=all", "--format=%k|%C|%m|%l|%b").splitlines()
        jobs |= {row.split("|")[0].partition("_wildcards")[0]: row.split("|")[1:] for row in rows}
        time.sleep(0.5)

    printed = process.communicate()[0]
    assert process.returncode == 0, printed[-5000:]
    assert results(project) == results(local)
    # Cores, memory and time of the profile. The two scores were one job, and so were the tables, figure and table.
    assert jobs["rule_train_baseline"][:3] == ["4", "16000M", "2-00:00:00"]
    names = [
        "train_baseline",
        "prune",
        "translate",
        "scores_score",
        "relevance_by_rule",
        "relevance",
        "analyse_heads",
        "figures",
    ]
    assert {next((name for name in names if job.startswith(f"rule_{name}")), job) for job in jobs} == set(names)


def test_training_survives_cancelled_jobs_and_failing_nodes(local, project, cluster) -> None:
    state, weights = project.file(f"{MODEL}.state") / "state.pt", project.file(f"{MODEL}/model.safetensors")
    process = project.submit("--retries", "0")
    while_it_runs = functools.partial(wait_for, unless=lambda: process.poll() is not None)
    while_it_runs(state.exists)
    [(number, _)] = cluster.jobs("train_baseline")
    cluster.ask("scancel", number)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "CANCELLED" in printed
    assert state.exists()
    assert not weights.exists()

    process = project.submit("--retries", "0")
    saved = state.stat().st_mtime_ns
    while_it_runs(lambda: state.exists() and state.stat().st_mtime_ns > saved)
    [(number, node)] = cluster.jobs("train_baseline")
    failed = cluster.script("node-fails", node)
    assert failed.returncode == 0, failed.stdout
    assert state.exists()
    while_it_runs(weights.exists)
    job = cluster.ask("scontrol", "show", "job", number)
    assert f"JobId={number} " in job
    assert "Restarts=1" in job
    assert cluster.script("node-starts", node).returncode == 0
    printed, _ = process.communicate(timeout=180)
    assert process.returncode == 0, printed[-5000:]
    log = project.file("tatoeba_en_fr/logs/train_baseline_seed1.log").read_text(encoding="utf-8")
    assert "resuming at update" in log
    assert results(project) == results(local)
