"""Runs corpus stages as Snakemake does, and makes small corpora."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specialized_heads.corpus.pairs import Pairs

Stage = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def stage() -> Stage:
    """`stage("raw", settings={...}, resource=path, ...)`: run one stage in its own process."""

    def call(module: str, *, settings: dict, **files: Path) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", f"specialized_heads.corpus.{module}", "--settings", json.dumps(settings)]
        for name, path in files.items():
            command += [f"--{name.replace('_', '-')}", str(path)]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)

    return call


@pytest.fixture
def everyday() -> Pairs:
    """500 pairs of distinct words in English and Russian letters, each sentence a group of its own."""
    english = ["cat", "dog", "house", "river", "child", "letter", "winter", "garden", "window", "teacher"]
    russian = ["кот", "пёс", "дом", "река", "дитя", "письмо", "зима", "сад", "окно", "учитель"]
    verbs = [("sees", "видит"), ("likes", "любит"), ("hears", "слышит"), ("finds", "находит"), ("knows", "знает")]
    pairs = Pairs([], [], [])
    for i, subject in enumerate(english):
        for j, thing in enumerate(english):
            for k, (verb, translated) in enumerate(verbs):
                pairs.source.append(f"The {subject} {verb} {'a' * (k + 1)} {thing}, number {i}.")
                pairs.target.append(f"{russian[i]} {translated} {'а' * (j + 1)} {russian[j]}, номер {i}.")
                pairs.document.append(f"page {i}/{j}/{k}")
    return pairs
