"""Jobs that share no disk, only a bucket: each runs in an empty folder and an empty environment, as in a pod.

The bucket is a server of the S3 protocol on this machine. A training that is killed goes on in another folder.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from workflows import ENVIRONMENT, INJECTOR, Workflow, new_project, wait_for

from specialized_heads.stage import read_json

PREFIX = "s3://bucket/project"
STATE = "results/smoke/tatoeba_en_fr/models/baseline/seed1.state"
CREDENTIALS = {"SNAKEMAKE_STORAGE_S3_ACCESS_KEY": "test", "SNAKEMAKE_STORAGE_S3_SECRET_KEY": "test"}
# The start of a job takes longer than most of them run.
GROUPS = {
    "text": ("corpus_raw", "corpus_clean", "corpus_split", "bpe", "tokens", "parse", "relations"),
    "after": (
        "translate",
        "score",
        "gather_scores",
        "dead_heads",
        "measure_speed",
        "relevance",
        "relevance_by_rule",
        "analyse_heads",
        "similarity",
    )
    + ("view_heads", "viewer_index"),
}
SUBMIT = """#!/bin/bash
node=$(mktemp -d "{folder}/nodes/XXXXXX")
cp "${{!#}}" "$node/jobscript"
mkdir "$node/home" "$node/work"
cd "$node/work"
export -n SNAKEMAKE_PROFILE
setsid env -i PATH="$PATH" HOME="$node/home" TMPDIR="$node/home" bash -c '
  echo $$ > ../process; bash ../jobscript > ../log 2>&1; echo $? > ../ended; mv ../ended ../status' > /dev/null 2>&1 < /dev/null &
basename "$node"
"""
STATUS = """#!/bin/bash
node="{folder}/nodes/$1"
if [ -e "$node/status" ]; then [ "$(cat "$node/status")" = 0 ] && echo success || echo failed
elif kill -0 -- "-$(cat "$node/process" 2> /dev/null || echo 1)" 2> /dev/null; then echo running
elif [ -e "$node/process" ] && [ ! -e "$node/status" ]; then echo failed
else echo running; fi
"""


@dataclass(frozen=True)
class Cloud:
    """A bucket, a project in a git checkout, and the folders of the jobs."""

    project: Path
    folder: Path
    client: Any  # of boto3

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Snakemake, which submits every job; its output goes to the file `printed`."""
        options = ["--executor", "cluster-generic", "--jobs", "2", "--seconds-between-status-checks", "1"]
        options += [f"--cluster-generic-{name}-cmd={self.folder / name}" for name in ("submit", "status")]
        options += ["--shared-fs-usage", "none", "--job-deploy-sources", "--default-storage-provider", "s3"]
        options += ["--default-storage-prefix", PREFIX, "--configfile", "config/changed.yaml"]
        options += ["--groups", *(f"{name}={group}" for group, names in GROUPS.items() for name in names)]
        options += ["--group-components", "figures=100", "--show-failed-logs", "--latency-wait", "10"]
        with open(self.folder / "printed", "w", encoding="utf-8") as stream:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *options, *arguments],
                cwd=self.project,
                env=ENVIRONMENT | CREDENTIALS | {"SNAKEMAKE_STORAGE_S3_ENDPOINT_URL": self.client.meta.endpoint_url},
                text=True,
                start_new_session=True,
                stdout=stream,
                stderr=stream,
            )

    def printed(self) -> str:
        return (self.folder / "printed").read_text(encoding="utf-8")[-5000:]

    def keys(self, below: str = "") -> set[str]:
        """The files of the bucket, below the prefix of the project."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=f"project/{below}")
        try:
            return {each["Key"].removeprefix("project/") for page in pages for each in page.get("Contents", [])}
        except self.client.exceptions.NoSuchBucket:
            return set()

    def read(self, key: str) -> bytes:
        return self.client.get_object(Bucket="bucket", Key=f"project/{key}")["Body"].read()

    def kill(self, rule: str) -> None:
        """Kill the machine that runs a job of this rule, without a warning."""
        for node in (self.folder / "nodes").iterdir():
            if (
                f'"rule": "{rule}"' in (node / "jobscript").read_text(encoding="utf-8")
                and not (node / "status").exists()
            ):
                os.killpg(int((node / "process").read_text()), signal.SIGKILL)
                shutil.rmtree(node / "work")
                return
        raise AssertionError(f"no job of {rule} is running")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed (pip install snakemake-storage-plugin-s3)")
    server = pytest.importorskip("moto.server", reason="moto is not installed (pip install 'moto[server]')")
    for package in ("storage-plugin-s3", "executor-plugin-cluster-generic"):
        name = f"snakemake_{package.replace('-', '_')}"
        pytest.importorskip(name, reason=f"snakemake-{package} is not installed")
    if not shutil.which("git"):
        pytest.skip("git is not installed, with which Snakemake finds the files that jobs need")
    folder = tmp_path_factory.mktemp("cloud")
    workflow = new_project(folder / "project")
    shutil.rmtree(workflow.root / "resources" / "baselines")  # which no job here needs
    shutil.copy2(INJECTOR, workflow.root / "src" / "sitecustomize.py")  # training saves its state after every update
    values = workflow.settings()
    values["corpora"] = {"tatoeba_en_fr": values["corpora"]["tatoeba_en_fr"]}
    values["pruning"] |= {"encoder": [], "all": [0.01], "retrain": []}
    (workflow.root / "config/changed.yaml").write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=workflow.root, check=True)
    (folder / "nodes").mkdir()
    for name, script in (("submit", SUBMIT), ("status", STATUS)):
        (folder / name).write_text(script.format(folder=folder), encoding="utf-8")
        (folder / name).chmod(0o755)
    bucket = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    bucket.start()
    address = "http://{}:{}".format(*bucket.get_host_and_port())
    client = boto3.client(
        "s3", "us-east-1", endpoint_url=address, aws_access_key_id="test", aws_secret_access_key="test"
    )
    yield Cloud(workflow.root, folder, client)
    bucket.stop()


def test_an_experiment_runs_to_its_report_though_its_training_is_killed(cloud: Cloud, smoke: Workflow) -> None:
    process = cloud.start("--retries", "0")
    saved = f"{STATE}/state.pt"
    wait_for(lambda: saved in cloud.keys(STATE), unless=lambda: process.poll() is not None, seconds=600)
    time.sleep(1)
    cloud.kill("train_baseline")
    assert process.wait(timeout=300) == 1, cloud.printed()
    assert "Error in rule train_baseline" in cloud.printed()
    assert saved in cloud.keys(STATE)

    process = cloud.start()
    assert process.wait(timeout=1500) == 0, cloud.printed()
    log = cloud.read("results/smoke/tatoeba_en_fr/logs/train_baseline_seed1.log").decode()
    assert "resuming at update" in log
    made = cloud.keys("results/")
    assert not any(".state/" in key for key in made)
    assert {
        "results/smoke/claims.html",
        "results/smoke/tables/models.md",
        "results/smoke/ro-crate-metadata.json",
    } < made

    # The same corpus, and two of the same models, as in the smoke experiment, which ran on a disk.
    same = [key for key in made if "/logs/" not in key and "/benchmarks/" not in key and "speed" not in key]
    same = [key for key in same if key.startswith("results/smoke/tatoeba_en_fr/")]
    same = [key for key in same if not key.endswith(("scores.parquet", "dead_heads.json"))]  # of all models
    assert sum(key.endswith(".safetensors") for key in same) >= 3
    for key in same:
        assert cloud.read(key) == (smoke.root / key).read_bytes(), key
    # What Snakemake leaves where it runs: no copies of results but its own records.
    assert not (cloud.project / "results").exists()


def test_the_crate_names_files_by_their_place_in_the_results(cloud: Cloud, tmp_path: Path) -> None:
    crate = tmp_path / "crate.json"
    crate.write_bytes(cloud.read("results/smoke/ro-crate-metadata.json"))
    names = {entity["@id"] for entity in read_json(crate)["@graph"]}
    assert {"tables/table2.csv", "tatoeba_en_fr/models/baseline/seed1/model.safetensors"} < names
    assert not any("s3://" in name or ".snakemake" in name for name in names)


@pytest.mark.parametrize("name", ["kubernetes", "aws-batch", "google-batch"])
def test_the_profile_makes_a_plan(cloud: Cloud, name: str) -> None:
    """Without the service itself, of which there is none here."""
    settings = yaml.safe_load((cloud.project / "profiles" / name / "config.yaml").read_text(encoding="utf-8"))
    for kind, plugin in (("executor", settings["executor"]), ("storage", settings["default-storage-provider"])):
        package = f"snakemake-{kind}-plugin-{plugin}"
        pytest.importorskip(package.replace("-", "_"), reason=f"{package} is not installed (pip install {package})")
    service = {
        "SNAKEMAKE_AWS_BATCH_JOB_QUEUE": "arn:aws:batch:queue",
        "SNAKEMAKE_AWS_BATCH_JOB_ROLE": "arn:aws:iam:role",
    }
    text = "results/paper/wmt_en_ru/corpus/raw.parquet"
    planned = subprocess.run(
        [sys.executable, "-m", "snakemake", text, "--workflow-profile", f"profiles/{name}", "--dry-run"]
        + ["--default-storage-prefix", "s3://bucket/planned", "--configfile", "config/paper.yaml"],
        cwd=cloud.project,
        env=ENVIRONMENT | CREDENTIALS | service | {"SNAKEMAKE_STORAGE_S3_ENDPOINT_URL": cloud.client.meta.endpoint_url},
        capture_output=True,
        text=True,
    )
    printed = planned.stdout + planned.stderr
    assert planned.returncode == 0, printed[-3000:]
    # Fetched files reach the jobs through the bucket.
    [inputs] = re.findall(r"^rule corpus_raw:\n +input: (.*)$", printed, flags=re.MULTILINE)
    assert all(each.startswith("s3://bucket/planned/data/") for each in inputs.split(", ")), inputs
    assert not re.search(r"\.json\b", inputs)
