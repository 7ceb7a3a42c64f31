"""Table of the environment: versions, processor, GPUs and state of the code, of the job that writes it.

It describes the software and hardware behind the results, provided that all jobs ran on the same kind of machine. The code is
identified by its version, a hash of its source files and, in a git checkout, the commit.
"""

import os
import platform
import re
import subprocess
from importlib.metadata import distributions
from pathlib import Path

import pandas as pd
import torch

import specialized_heads
from specialized_heads.model.devices import PROCESSOR, idle_gpus
from specialized_heads.report.data import Tables
from specialized_heads.stage import code_hash, processors

CAPTION = (
    "Software, machine and code of the job that wrote this table, after all others. It differs from machine to machine."
)
PACKAGES = (
    "torch", "numpy", "pandas", "pyarrow", "matplotlib", "safetensors", "sentencepiece", "sacremoses", "sacrebleu", "pydantic",
    "snakemake",
)  # fmt: skip
ROOT = Path(specialized_heads.__file__).parents[2]
CODE = ("Snakefile", "src", "workflow")  # below the root; an edit of these can change results


def git(*arguments: str) -> str:
    """The output of git in the project's folder; "" where it fails or is not installed."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def commit() -> str:
    """The git commit, and whether files that can change results differ from it."""
    # A copy of the project inside another repository is not a checkout of that repository.
    if not git("ls-files", "--error-unmatch", "src/specialized_heads/__init__.py"):
        return "not a git checkout"
    changed = len(git("status", "--porcelain", "--untracked-files=all", "--", *CODE).splitlines())
    since = f"{changed} file{'s' * (changed > 1)} changed" if changed else "unchanged"
    return f"{git('rev-parse', 'HEAD')}, {since}"


def numbers(tables: Tables, *, engines: list[str], device: str) -> pd.DataFrame:
    """One row per fact, with the packages of these engines of dependency parsing."""
    parsers = ["stanza"] if "stanza" in engines else []
    usable = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    gpus = ", ".join(map(torch.cuda.get_device_name, usable)) or idle_gpus()
    # Linux alone has it.
    described = PROCESSOR.read_text(encoding="utf-8") if PROCESSOR.is_file() else ""
    names = re.findall(r"model name\s*: (.+)", described)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    installed = {found.name: found.version for found in distributions()}  # rules can have environments of their own
    rows = [("software", "Python", platform.python_version())]
    rows += [("software", name, installed.get(name, "not in this environment")) for name in (*PACKAGES, *parsers)]
    rows += [
        ("software", "CUDA of torch", torch.version.cuda or "none"),
        ("machine", "system", platform.platform()),
        ("machine", "processor", names[0] if names else platform.machine()),
        ("machine", "instructions that torch uses", torch.backends.cpu.get_cpu_capability()),
        ("machine", "processors of this job", str(processors())),
        ("machine", "processors of the machine", str(os.cpu_count())),
        ("machine", "memory", f"{memory / 1e9:.1f} GB"),
        ("machine", "GPU", gpus or "none visible to this job"),
        ("machine", "configured device", device),
        ("code", "version", specialized_heads.__version__),
        ("code", "git commit", commit()),
        ("code", "SHA-256 of the source files", code_hash(".")),
    ]
    return pd.DataFrame(rows, columns=["part", "name", "value"])


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    return rows
