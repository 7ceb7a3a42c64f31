"""Every example of a configuration in the documentation, or in a comment of a configuration, runs.

Text and trees that an example names are made, and corpora of OPUS are served on this machine.
Models on the hub are only planned.
"""

import copy
import io
import re
import shlex
import subprocess
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from loopback import serving
from pages import PAGES, ROOT, blocks, code, prose
from workflows import PIPED, Workflow, ended, start

from specialized_heads.experiment import configuration as config
from specialized_heads.experiment import file
from specialized_heads.experiment.sources import Local
from specialized_heads.stage import read_json

PAGES = [page for page in PAGES if page.parent == ROOT / "docs"]
SECTIONS = {
    name: getattr(config.sections, name.capitalize()).model_fields for name in config.OVERRIDABLE
}
KEYS = {
    *config.Corpus.model_fields,
    *Local.model_fields,
    *SECTIONS,
    *(key for keys in SECTIONS.values() for key in keys),
}
OPUS = "https://object.pouta.csc.fi/"
SUBJECTS, VERBS, OBJECTS = (
    [first + last for first, last in product(letters, ("ale", "ore", "ind", "urk", "ess", "amp"))]
    for letters in (
        ("b", "c", "d"),
        ("f", "g", "h"),
        ("k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "pl", "st", "gr", "tr"),
    )
)
ENGLISH = [
    f"The {subject} {verb}s a {thing}."
    for subject, verb, thing in product(SUBJECTS, VERBS, OBJECTS)
]
GERMAN = [
    f"Der {subject}en {verb}t ein {thing}."
    for subject, verb, thing in product(SUBJECTS, VERBS, OBJECTS)
]
# of these pairs
PARTS = {
    "dev": slice(9_000, 9_600),
    "test": slice(10_000, 11_200),
    "analysis": slice(12_000, 12_300),
}
TRAIN = slice(8_000)


def whole(page: Path) -> Iterator[tuple[str, str]]:
    """The examples of a page that are whole files: their path, and their text."""
    paths = re.findall(r"[Ss]ave this as `(config/\w+\.yaml)`", prose(page))
    yield from zip(
        paths,
        (block for block in blocks(page, "yaml") if block.startswith(("experiment:", "extends:"))),
        strict=True,
    )


def fragments(page: Path) -> Iterator[dict[str, Any]]:
    """The examples of a page that are a part of a file: blocks, single lines of `source`, and keys
    with a value in the text."""
    for block in blocks(page, "yaml"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if all(line.startswith("source: ") for line in lines):
            yield from map(yaml.safe_load, lines)
        elif "experiment:" not in block:
            yield yaml.safe_load(block)
    for span in code(page):
        key, _, value = span.partition(": ")
        *parents, last = key.split(".")
        if value and last in KEYS and set(parents) <= SECTIONS.keys():
            value = yaml.safe_load(value)
            yield {parents[0]: {last: value}} if parents else {last: value}


def comments(path: Path) -> Iterator[dict[str, Any]]:
    """The keys in comments of a configuration, for its first corpus; files that need each other
    together."""
    values = file.read(path)
    corpus = next(iter(values.get("corpora", {}).values()), {})
    found = re.findall(
        r"^ +# (\w+): (.+?)(?: #.*)?$", path.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    keys = {key: yaml.safe_load(value) for key, value in found if key in Local.model_fields}
    two = {key: keys.pop(key) for key in ("source_path", "target_path") if key in keys}
    for more in [*([two] if two else []), *({key: value} for key, value in keys.items())]:
        source = {
            key: value
            for key, value in corpus["source"].items()
            if more is not two or key != "path"
        }
        yield {key: corpus[key] for key in ("filters", "split") if key in corpus} | {
            "source": source | more
        }


def corpus_of(example: dict[str, Any]) -> dict[str, Any] | None:
    """The example as keys of a corpus of the seven lines of own_pair.md; None if it is not about a
    corpus or a section."""
    ((key, value), *more) = example.items()
    if key in config.Corpus.model_fields:
        return example
    if key in Local.model_fields and not more:
        return {"source": {"kind": "local", "path": "data/en-de.tsv"} | example}
    if key in SECTIONS:
        return {"override": example}
    if sections := [name for name, fields in SECTIONS.items() if key in fields]:
        return {"override": {sections[0]: example}}
    return None


WHOLE = {path: (page, text) for page in PAGES for path, text in whole(page)}
OTHERS = {"baseline"}  # needs one that was trained, as the tests of given baselines do
FOUND = {
    f"{page.stem}-{number}": corpus_of(example)
    for page in [*PAGES, *sorted((ROOT / "config").glob("*.yaml"))]
    for number, example in enumerate(fragments(page) if page.suffix == ".md" else comments(page))
}
EXAMPLES = {name: keys for name, keys in FOUND.items() if keys and not OTHERS & keys.keys()}


def resolved(path: str) -> dict[str, Any]:
    """The values of a whole example, those of the files that it extends included."""
    return file.whole(yaml.safe_load(WHOLE[path][1]), ROOT / path)


def test_there_are_examples_of_all_kinds() -> None:
    """What a page writes in another way would be skipped."""
    assert {page.stem for page, _ in WHOLE.values()} >= {"own_pair", "models"}
    assert WHOLE["config/my_pair.yaml"][1].count("\n") == 7  # as the page says
    kinds = {"own_pair": 10, "parsing": 1, "local": 3, "troubleshooting": 3}
    found = [name.partition("-")[0] for name in EXAMPLES]
    assert {page: found.count(page) >= least for page, least in kinds.items()} == dict.fromkeys(
        kinds, True
    )


def write_text(folder: Path, source: dict[str, Any]) -> None:
    """The files of a source, relative to the folder; those that are there stay."""
    local = Local.model_validate(source)
    first, second, third = (*local.columns, 3)[:3]
    for key, path in local.by_key().items():
        chosen = PARTS.get(key, TRAIN)
        lines = []
        for number, (english, german) in enumerate(zip(ENGLISH[chosen], GERMAN[chosen])):
            cells = {first: english, second: german}
            cells |= {third: f"document {number // 20}"} if local.group_by == "document" else {}
            row = [cells.get(column, str(number)) for column in range(1, max(cells) + 1)]
            lines.append({"source_path": english, "target_path": german}.get(key, "\t".join(row)))
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / path).exists():
            (folder / path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_treebank(path: Path) -> None:
    """The analysis sentences as a treebank."""
    arcs = [(2, "det"), (3, "nsubj"), (0, "root"), (5, "det"), (3, "obj"), (3, "punct")]
    trees = []
    for text in ENGLISH[PARTS["analysis"]]:
        words = [*text.removesuffix(".").split(), "."]
        rows = [
            f"{n}\t{word}\t_\tX\t_\t_\t{head}\t{name}\t_\t_"
            for n, (word, (head, name)) in enumerate(zip(words, arcs), 1)
        ]
        trees.append("\n".join([f"# text = {text}", *rows, ""]))
    path.write_text("\n".join(trees) + "\n", encoding="utf-8")


def archive() -> bytes:
    """A release of OPUS, as macOS packs it again: beside each file, another one for its
    attributes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for language, texts in (("de", GERMAN), ("en", ENGLISH)):
            file.writestr(f"Tatoeba.de-en.{language}", "\n".join(texts[TRAIN]) + "\n")
            file.writestr(f"__MACOSX/._Tatoeba.de-en.{language}", b"\0\5\x16\7\0Mac OS X")
    return packed.getvalue()


def below(folder: str, example: dict[str, Any]) -> dict[str, Any]:
    """The example with its paths in a folder of its own."""
    paths = {"path", "source_path", "target_path", *PARTS}
    return {
        key: below(folder, value)
        if isinstance(value, dict)
        else f"{folder}/{value}"
        if key in paths and isinstance(value, str)
        else value
        for key, value in example.items()
    }


def test_parts_of_configurations(project: Workflow) -> None:
    """Each is a corpus of the seven lines: all are planned to the end, and what decides the text is
    read, cleaned and split."""
    values = resolved("config/my_pair.yaml")
    [base] = values["corpora"].values()
    [sed] = re.findall(
        r"^    (sed .+)$",
        (ROOT / "docs" / "parsing.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    values["corpora"], targets = {}, []
    for name, keys in EXAMPLES.items():
        folder = project.root / name
        folder.mkdir()
        write_treebank(folder / "treebank.conllu")
        subprocess.run(sed, shell=True, cwd=folder, check=True)
        corpus = base | {"title": name} | copy.deepcopy(keys)
        parser = corpus.get("override", {}).get("parser", {})
        if parser == {"engine": "conllu"}:
            parser["path"] = "treebank.conllu"  # as the sentence around it says
        corpus = values["corpora"][name] = below(name, corpus)
        if (
            "path" in parser
            and not (trees := project.root / corpus["override"]["parser"]["path"]).exists()
        ):
            trees.parent.mkdir(exist_ok=True)
            write_treebank(trees)
        if corpus["source"]["kind"] == "local":
            write_text(project.root, corpus["source"])
        if {"source", "filters", "split"} & keys.keys():
            targets.append(f"{name}/corpus/counts.json")
        if "path" in parser and "source" in keys:
            targets.append(f"{name}/parses/analysis.json")
    results = project.root / "results" / "my_pair"
    with serving(archive()) as server:
        values["downloads"] = {"mirrors": {OPUS: server.url("")}}
        run = project.configured(values).run(*(f"results/my_pair/{target}" for target in targets))
    assert run.status == 0, run.printed[-5000:]
    for target in targets:
        numbers = read_json(results / target)
        if target.endswith("counts.json"):
            read = set(
                pd.read_parquet(results / target.replace("counts.json", "train.parquet"))["source"]
            )
            assert len(read) > 3_000 and read <= set(ENGLISH), target
            assert (
                sum(numbers["dropped_in_reading"].values())
                + sum(numbers["dropped_in_cleaning"].values())
                == 0
            ), target
        else:
            assert numbers["sentences_parsed"] == 300 and numbers["engine"] == "conllu", target
    # The configuration that a run writes has all keys.
    written = file.load(values).model_dump(mode="json")
    run = project.configured(written).run("--dry-run", "--quiet")
    assert run.status == 0, run.printed[-5000:]


@pytest.mark.parametrize("path", WHOLE)
def test_whole_configurations(project: Workflow, path: str) -> None:
    """The text is read, cleaned and split, and each documented command is planned to its end."""
    page, text = WHOLE[path]
    (project.root / path).write_text(text, encoding="utf-8")
    values = resolved(path)
    for corpus in values["corpora"].values():
        if corpus["source"]["kind"] == "local":
            write_text(project.root, corpus["source"])
    text = "\n".join(blocks(page, "")).replace("\\\n", " ")
    commands = [
        line for line in re.findall(r"^snakemake (.+)$", text, flags=re.MULTILINE) if path in line
    ]
    assert commands
    for command in commands:
        run = ended(
            start(
                project.root, *shlex.split(command, comments=True), "--dry-run", "--quiet", **PIPED
            )
        )
        assert run.status == 0, (command, run.printed[-5000:])
    with serving(archive()) as server:
        workflow = project.configured(values | {"downloads": {"mirrors": {OPUS: server.url("")}}})
        results = [
            f"results/{values['experiment']}/{name}/corpus/counts.json"
            for name in values["corpora"]
        ]
        run = workflow.run(*results)
    assert run.status == 0, run.printed[-5000:]
    read = {name: read_json(project.root / name)["read"] for name in results}
    embedded = [corpus["source"]["kind"] == "embedded" for corpus in values["corpora"].values()]
    assert [number == len(ENGLISH[TRAIN]) for number in read.values()] == [
        not own for own in embedded
    ], read
    run = project.configured(file.load(values).model_dump(mode="json")).run("--dry-run", "--quiet")
    assert run.status == 0, run.printed[-5000:]


def test_a_data_set_in_a_comment(project: Workflow) -> None:
    """The one that has no address, placed as docs/data.md says."""
    text = (ROOT / "config" / "paper.yaml").read_text(encoding="utf-8")
    changed, number = re.subn(r"^( +)# (- \w+)$", r"\1\2", text, flags=re.MULTILINE)
    assert number == 1
    (project.root / "config" / "paper.yaml").write_text(changed, encoding="utf-8")
    [(name, folder)] = re.findall(
        r"put\s+`([\w.]+)`\s+into\s+`([\w/]+)`", prose(ROOT / "docs" / "data.md")
    )
    (project.root / folder).mkdir(parents=True)
    (project.root / folder / name).touch()
    run = Workflow(project.root, "config/paper.yaml").run("--dry-run", "--quiet")
    assert run.status == 0, run.printed[-5000:]
