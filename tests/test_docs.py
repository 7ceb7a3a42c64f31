"""The documentation names what there is: links, files, configuration keys, rules and commands."""

import json
import re
import shlex
import typing
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import pytest
import yaml
from pages import PACKAGE, PAGES, ROOT, anchors, blocks, code, links
from pydantic import TypeAdapter, ValidationError

from specialized_heads import config
from specialized_heads.stage import Section, UserError

RULES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))}
# Files that a page tells its reader to make.
NEW = {
    "config/mine.yaml",
    "config/my_pair.yaml",
    "corpus/readers/jsonl.py",
    "report/entropy.py",
    "tests/report/test_report_entropy.py",
    "workflow/report/entropy.rst",
    "figures/entropy",
    "figures/entropy.pdf",
}
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@EACH_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            address = urlsplit(link)
            assert address.scheme in ("http", "https"), link
            assert "." in address.netloc, link
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@EACH_PAGE
def test_no_path_of_somebodys_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w/.~])/(?:home|root|Users|tmp|work)/\S*", text) == []


def test_every_page_of_the_documentation_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            names = [link.partition("#")[0] for link in links(page) if "://" not in link]
            waiting += [(page.parent / name).resolve() for name in names if name.endswith(".md")]
    results = set((ROOT / "docs" / "reference").glob("*/**/*.md"))  # whole folders are linked
    assert set((ROOT / "docs").rglob("*.md")) - results - reached == set()


# Files


def exists(name: str) -> bool:
    """Whether a path that looks like one of the repository leads somewhere; * stands for any text."""
    return any(next(root.glob(name.rstrip("/")), None) is not None for root in (ROOT, PACKAGE))


def looks_like_a_file(span: str) -> bool:
    """Whether code names a file of the repository, from its root or from the package: no results, nothing with gaps."""
    if not re.fullmatch(r"[\w.*/-]+", span) or span in NEW or "..." in span:
        return False
    first, slash, _ = span.partition("/")
    ours = {"docs", "src", "workflow", "config", "tests", "benchmarks", "resources", "envs", "profiles", ".ci"}
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    return bool(slash) and (first in ours or (first in packages and span.endswith((".py", ".js", ".html", ".css"))))


@EACH_PAGE
def test_files_that_are_named_exist(page: Path) -> None:
    named = [span for span in code(page) if looks_like_a_file(span)]
    # Of a run there are folders with the same names as some of ours.
    results = ("benchmarks/", "config/")
    assert [span for span in named if not exists(span) and span not in results] == []


def test_the_check_of_files_sees_what_it_should() -> None:
    assert looks_like_a_file("report/figure77.py") and not exists("report/figure77.py")
    assert looks_like_a_file("workflow/rules/common*.smk") and exists("workflow/rules/common*.smk")
    assert not looks_like_a_file("heads/baseline/seed1.parquet")


# Keys of the configuration

SUFFIXES = ("json", "jsonl", "md", "parquet", "py", "safetensors", "yaml")  # model.json is no key of the section model


def fields() -> dict[str, Any]:
    """What a page may call by its last name: the keys of an experiment, and those of a corpus."""
    return {**config.Corpus.model_fields, **config.Experiment.model_fields}


def sections(field: Any) -> list[type[Section]]:
    """The sections that a key holds: one, several kinds (of source), or none."""
    kinds = [field.annotation, *typing.get_args(field.annotation)]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]


def problem(span: str) -> str | None:
    """What is wrong with `section.key`, `section.key: value` or `key: value`; None where nothing is, or it is no key."""
    found = re.fullmatch(r"(?:corpora\.[\w*]+\.)?([a-z_]+)(?:\.([a-z_]+))?(?:: (\S.*))?", span)
    if not found or found[1] not in fields() or found[2] in SUFFIXES:
        return None
    section, key, value = found.groups()
    field = fields()[section]
    if key:
        known = [kind.model_fields for kind in sections(field)]
        if not known:
            return None
        holders = [keys[key] for keys in known if key in keys]
        if not holders:
            return f"{section} has no key {key}"
        field = holders[0]
    if value is None:
        return None
    try:
        TypeAdapter(Annotated[field.annotation, *(field.metadata or [None])]).validate_python(yaml.safe_load(value))
    except (ValidationError, yaml.YAMLError, UserError) as error:
        return str(error)
    return None


@EACH_PAGE
def test_keys_of_the_configuration_exist(page: Path) -> None:
    assert [said for said in map(problem, code(page)) if said] == []
    for block in blocks(page, "yaml"):
        values = yaml.safe_load(re.sub(r"^source: .*\n", "", block, flags=re.MULTILINE)) or {}
        if "apiVersion" in values:
            continue
        if "experiment" in values:
            config.load(values)
            continue
        for key, value in values.items():
            near = [kind for field in fields().values() for kind in sections(field) if key in kind.model_fields]
            assert key in fields() or near, f"{key}: no section, and no key of one"
            if key in fields() and key != "corpora":
                assert problem(f"{key}: {json.dumps(value)}") is None


def test_the_check_of_keys_sees_what_it_should() -> None:
    assert problem("training.updats") == "training has no key updats"
    assert "integer" in problem("training.updates: many")
    assert problem("source.overlp") == "source has no key overlp"
    assert problem("parser: {engin: stanza}")
    assert problem("model.json") is problem("source.overlap") is problem("seeds: [1, 2]") is None


# Commands


def rules() -> set[str]:
    names = r"^ *rule (\w+):|^ *use rule \w+ as (\w+) with:"
    return {a or b for text in RULES.values() for a, b in re.findall(names, text, flags=re.MULTILINE)}


def shown(kind: str) -> set[str]:
    """The names of figures or tables that a rule makes."""
    return {name for text in RULES.values() for name in re.findall(rf'{kind}_outputs\("(\w+)"\)', text)}


def commands(page: Path) -> list[list[str]]:
    """The commands of a page, in blocks and in its text, as words."""
    lines = [line for block in blocks(page, "", "sh", "bash") for line in block.replace("\\\n", " ").splitlines()]
    calls = [
        line for line in [*lines, *code(page)] if re.match(r"(\w+=\S+ )?(\S+/)?(snakemake|python|pytest|make) ", line)
    ]
    found = []
    for part in (part for line in calls for part in line.split("&&")):
        try:
            found.append(shlex.split(part, comments=True))
        except ValueError:  # a quotation that goes on in the next line
            found.append(part.split())
    return [words for words in found if words]


def wrong(words: list[str]) -> list[str]:
    """The arguments of a command that name nothing that there is."""
    found = []
    for option, value in zip(words, [*words[1:], ""], strict=True):
        missing = {
            "--configfile": not (ROOT / value).is_file() and value not in NEW,
            "--workflow-profile": not (ROOT / value / "config.yaml").is_file(),
            "--until": value not in rules(),
            "--forcerun": value not in rules() | {"RULE"},
            "--set-resources": value.partition(":")[0] not in rules(),
            "--set-threads": value.partition("=")[0] not in rules(),
            "-m": not value.startswith("pip") and not is_module(value),
        }
        if missing.get(option):
            found.append(f"{option} {value}")
    for word in words[1:]:
        figure = re.fullmatch(r"results/\w+/(figure|table)s/(\w+)\.\w+", word)
        if figure and figure[2] not in shown(figure[1]) and f"figures/{figure[2]}" not in NEW:
            found.append(word)
        script = re.fullmatch(r"(benchmarks|resources|tests)/[\w/.]+", word)
        if script and not (ROOT / word).exists():
            found.append(word)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(INSTALLED):", ".venv/installed:")
        targets = set(re.findall(r"^([\w./]+):", makefile, flags=re.MULTILINE))
        found += [word for word in words[1:] if word not in targets and "=" not in word]
    return found


def is_module(name: str) -> bool:
    if name.split(".")[0] not in ("specialized_heads", "benchmarks"):
        return True
    path = (PACKAGE.parent if name.startswith("specialized_heads") else ROOT) / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file() or "<" in name


@EACH_PAGE
def test_commands_name_what_there_is(page: Path) -> None:
    assert [said for words in commands(page) for said in wrong(words)] == []


@EACH_PAGE
def test_figures_and_tables_that_are_named_are_made(page: Path) -> None:
    named = [re.fullmatch(r"(figure|table)s/(\w+)(?:\.\w+)?", span) for span in code(page) if span not in NEW]
    assert [found[0] for found in named if found and found[2] not in shown(found[1])] == []


def test_the_check_of_commands_sees_what_it_should() -> None:
    assert wrong(["snakemake", "--configfile", "config/none.yaml", "--until", "corpus_splt"]) == [
        "--configfile config/none.yaml",
        "--until corpus_splt",
    ]
    assert wrong(["snakemake", "results/default/figures/figure70.pdf"]) == ["results/default/figures/figure70.pdf"]
    assert wrong(["python", "-m", "specialized_heads.nothing"]) == ["-m specialized_heads.nothing"]
    assert wrong(["make", "tests"]) == ["tests"]
    assert wrong(["snakemake", "--cores", "all", "--configfile", "config/smoke.yaml", "--forcerun", "parse"]) == []
