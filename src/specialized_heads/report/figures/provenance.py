"""Where results come from: the text of each corpus, and the software, machine and code that made
them."""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import specialized_heads
from specialized_heads.model.devices import PROCESSOR, idle_gpus
from specialized_heads.report.data import Tables
from specialized_heads.stage import code_hash, processors, read_json

DATA_CARD_CAPTION = (
    "Data card: source, licence and size of each corpus, and the pairs removed by reading, "
    "cleaning and splitting, each counted "
    "under the first reason that applied. The pairs read include pages and blocks that yielded no "
    "pairs. Lengths are in "
    "words separated by white space. No group is divided between sets: it is a document or, in "
    "text without documents, the pairs "
    "that share a sentence."
)
SPLITS = ("train", "dev", "test", "analysis")
DETAILS = ("sha256", "address", "characters")  # too long, or too many, for the table
Value = str | int | float
ENVIRONMENT_CAPTION = (
    "Software, machine and code of the job that wrote this table, after all "
    "others. It differs from machine to machine."
)
PACKAGES = (
    "torch", "numpy", "pandas", "pyarrow", "matplotlib", "safetensors", "sentencepiece",
    "sacremoses", "sacrebleu", "pydantic", "snakemake",
)  # fmt: skip
ROOT = Path(specialized_heads.__file__).parents[2]
CODE = ("Snakefile", "src", "workflow")  # below the root; an edit of these can change results


def quantities(
    card: dict[str, Any], counts: dict[str, Any], parses: dict[str, Any]
) -> Iterator[tuple[str, str, Value]]:
    """Step, quantity and value of everything that raw stage, split stage and parser say of one
    corpus."""
    yield "source", "kind", card["kind"]
    yield "source", "licence", card["licence"]
    for number, file in enumerate(card["files"], start=1):
        yield "source", f"file {number}", file["file"]
        yield "source", f"file {number} bytes", file["bytes"]
        yield "source", f"file {number} sha256", file["sha256"]
        yield "source", f"file {number} address", file.get("url", "")
    for number, package in enumerate(
        [*card.get("made_from", []), *card.get("packages", [])], start=1
    ):
        yield (
            "source",
            f"package {number}",
            f"{package.get('package') or package.get('name')} {package['version']}",
        )
    for step, total in (("reading", "read"), ("cleaning", "raw"), ("splitting", "clean")):
        yield step, "pairs", counts[total]
        for reason, pairs in counts[f"dropped_in_{step}"].items():
            yield step, f"dropped: {reason.replace('_', ' ')}", pairs
        if step == "cleaning":
            for change, pairs in counts["changed_in_cleaning"].items():
                yield step, f"changed: {change.replace('_', ' ')}", pairs
    for split in SPLITS:
        sizes = counts["splits"][split]
        yield split, "pairs", sizes["pairs"]
        yield split, "groups", sizes["groups"]
        for side in ("source", "target"):
            yield split, f"{side} words", sizes[f"{side}_words"]
            yield split, f"{side} characters", sizes[f"{side}_characters"]
            for statistic, length in sizes[f"{side}_length"].items():
                yield split, f"{side} length, {statistic}", length
    yield "analysis", "sentences with a tree", parses["sentences_parsed"]


def data_card_numbers(
    tables: Tables, cards: dict[str, Path], counts: dict[str, Path], parses: dict[str, Path]
) -> pd.DataFrame:
    """One row per corpus and quantity: corpus, part, quantity, value (text, pairs, words,
    characters or a length in words)."""
    rows = [
        (title, *row)
        for title in cards
        for row in quantities(*(read_json(files[title]) for files in (cards, counts, parses)))
    ]
    return pd.DataFrame(rows, columns=["corpus", "part", "quantity", "value"], dtype=object)


def data_card_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The data card: where the text of each corpus comes from, what each step removed and why, and
    what is left.

    The CSV has one row per corpus and quantity. The table has one row per quantity and one column
    per corpus; it omits the `DETAILS` and reasons that removed nothing.
    """
    corpora = list(rows["corpus"].unique())
    # What only later corpora have follows what the first one has of the same part.
    parts = list(rows["part"].unique())
    lines = []
    groups = rows.groupby(["part", "quantity"], sort=False)
    for (part, quantity), same in sorted(groups, key=lambda item: parts.index(item[0][0])):
        known = dict(zip(same["corpus"], same["value"], strict=True))
        idle = quantity.startswith(("dropped", "changed")) and not any(known.values())
        if not idle and not quantity.endswith(DETAILS):
            lines.append([part, quantity, *(_text(known.get(corpus, "–")) for corpus in corpora)])
    return pd.DataFrame(lines, columns=["part", "quantity", *corpora], dtype=object)


def _text(value: Value) -> str:
    return (
        value
        if isinstance(value, str)
        else f"{value:,}"
        if isinstance(value, int)
        else f"{value:.1f}"
    )


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


def environment_numbers(tables: Tables, *, engines: list[str], device: str) -> pd.DataFrame:
    """One row per fact, with the packages of these engines of dependency parsing."""
    parsers = ["stanza"] if "stanza" in engines else []
    usable = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    gpus = ", ".join(map(torch.cuda.get_device_name, usable)) or idle_gpus()
    # Linux alone has it.
    described = PROCESSOR.read_text(encoding="utf-8") if PROCESSOR.is_file() else ""
    names = re.findall(r"model name\s*: (.+)", described)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # rules can have environments of their own
    installed = {found.name: found.version for found in distributions()}
    rows = [("software", "Python", platform.python_version())]
    rows += [
        ("software", name, installed.get(name, "not in this environment"))
        for name in (*PACKAGES, *parsers)
    ]
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


def environment_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table of the environment: versions, processor, GPUs and state of the code, of the job that
    writes it.

    It describes the software and hardware behind the results, provided that all jobs ran on the
    same kind of machine. The code is identified by its version, a hash of its source files and, in
    a git checkout, the commit.
    """
    return rows
