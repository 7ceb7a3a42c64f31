"""Whatever the documentation names exists: links, files, configuration keys, rules and commands."""

import json
import re
import shlex
import typing
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import pytest
import yaml
from pages import PACKAGE, PAGES, ROOT, anchors, blocks, code, links
from pydantic import TypeAdapter, ValidationError

from specialized_heads.experiment import configuration as config
from specialized_heads.experiment import figures
from specialized_heads.stage import Section, UserError

RULES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))]
# Files that a page tells its reader to make.
NEW = {
    "config/mine.yaml",
    "config/my_pair.yaml",
    "config/my_model.yaml",
    "heads/viewer.html",
    "corpus/readers/jsonl.py",
    "report/beyond/entropy.py",
    "heads/first_token.py",
    "tests/report/test_report_entropy.py",
    "figures/entropy",
    "figures/entropy.pdf",
}
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@EACH_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            address = urlsplit(link)
            assert address.scheme in ("http", "https") and "." in address.netloc, link
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_relative_to(ROOT) and target.exists(), link
        assert not anchor or anchor in anchors(target), link


@EACH_PAGE
def test_no_path_of_somebodys_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w/.~])/(?:home|root|Users|tmp|work)/\S*", text) == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            names = [link.partition("#")[0] for link in links(page) if "://" not in link]
            waiting += [(page.parent / name).resolve() for name in names if name.endswith(".md")]
    results = set((ROOT / "docs" / "reference").glob("*/**/*.md"))  # linked as whole folders
    assert set((ROOT / "docs").rglob("*.md")) - results - reached == set()


def test_there_are_few_pages() -> None:
    assert len(list((ROOT / "docs").glob("*.md"))) <= 13
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 100


# Files


def exists(name: str) -> bool:
    """Whether a path below the repository or the package exists; * matches any text."""
    return any(next(root.glob(name.rstrip("/")), None) is not None for root in (ROOT, PACKAGE))


def looks_like_a_file(span: str) -> bool:
    """Whether code names a file of the repository, from its root or from the package; no results, no placeholders."""
    if not re.fullmatch(r"[\w.*/-]+", span) or span in NEW or "..." in span:
        return False
    first, slash, _ = span.partition("/")
    folders = {"docs", "src", "workflow", "config", "tests", "benchmarks", "resources", "envs", "profiles", ".ci"}
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    return bool(slash) and (first in folders or (first in packages and span.endswith((".py", ".js", ".html", ".css"))))


@EACH_PAGE
def test_files_exist(page: Path) -> None:
    # These two are also folders of a run, or of the package.
    named = {span for span in code(page) if looks_like_a_file(span)} - {"benchmarks/", "config/"}
    assert [span for span in named if not exists(span)] == []


def test_the_check_of_files_finds_mistakes() -> None:
    assert looks_like_a_file("report/figure77.py") and not exists("report/figure77.py")
    assert looks_like_a_file("workflow/rules/c*.smk") and exists("workflow/rules/c*.smk")
    assert not looks_like_a_file("heads/baseline/seed1.parquet")


# Configuration keys

# What a page may call by its last name: the keys of a corpus, and those of an experiment.
FIELDS: dict[str, Any] = {**config.Corpus.model_fields, **config.Experiment.model_fields}
SUFFIXES = ("json", "jsonl", "md", "parquet", "py", "safetensors", "yaml")  # model.json is no key of the section model


def sections(field: Any) -> list[type[Section]]:
    """The sections that a key holds: one, several kinds (of source), or none."""
    kinds = [field.annotation, *typing.get_args(field.annotation)]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]


def problem(span: str) -> str | None:
    """What is wrong with `section.key`, `section.key: value` or `key: value`; None for correct keys and other code."""
    match = re.fullmatch(r"(?:corpora\.[\w*]+\.)?([a-z_]+)(?:\.([a-z_]+))?(?:: (\S.*))?", span)
    if not match or match[1] not in FIELDS or match[2] in SUFFIXES:
        return None
    section, key, value = match.groups()
    field = FIELDS[section]
    if key and sections(field):
        holders = [kind.model_fields[key] for kind in sections(field) if key in kind.model_fields]
        if not holders:
            return f"{section} has no key {key}"
        field = holders[0]
    elif key:
        return None
    if value is None:
        return None
    try:
        TypeAdapter(Annotated[field.annotation, *(field.metadata or [None])]).validate_python(yaml.safe_load(value))
    except (ValidationError, yaml.YAMLError, UserError) as error:
        return str(error)
    return None


@EACH_PAGE
def test_configuration_keys_exist(page: Path) -> None:
    assert [text for text in map(problem, code(page)) if text] == []
    for block in blocks(page, "yaml"):
        values = yaml.safe_load(re.sub(r"^source: .*\n", "", block, flags=re.MULTILINE)) or {}
        if "experiment" in values:
            config.load(values)
            continue
        for key, value in values.items():
            inner = any(key in kind.model_fields for field in FIELDS.values() for kind in sections(field))
            assert key in FIELDS or inner, f"{key}: no section, and no key of one"
            if key in FIELDS and key != "corpora":
                assert problem(f"{key}: {json.dumps(value)}") is None


def test_the_check_of_keys_finds_mistakes() -> None:
    assert problem("training.updats") == "training has no key updats"
    assert "integer" in problem("training.updates: many")
    assert problem("source.limt") == "source has no key limt"
    assert problem("parser: {engin: stanza}")
    assert problem("model.json") is problem("source.limit") is problem("seeds: [1, 2]") is None


# Commands


@cache
def rules() -> set[str]:
    names = r"^ *rule (\w+):|^ *use rule \w+ as (\w+) with:"
    return {a or b for text in RULES for a, b in re.findall(names, text, flags=re.MULTILINE)}


def shown(kind: str) -> set[str]:
    """The names of the figures or tables that are made."""
    return {stem.removeprefix(f"{kind}s/") for stem in figures.BY_STEM if stem.startswith(f"{kind}s/")}


def commands(page: Path) -> list[list[str]]:
    """The commands of a page, in blocks and in its text, as words."""
    lines = [line for block in blocks(page, "", "sh", "bash") for line in block.replace("\\\n", " ").splitlines()]
    program = re.compile(r"(\w+=\S+ )?(\S+/)?(snakemake|python|pytest|make) ")
    parts = [part for line in [*lines, *code(page)] if program.match(line) for part in line.split("&&")]
    split = []
    for part in parts:
        try:
            split.append(shlex.split(part, comments=True))
        except ValueError:  # a quotation that continues on the next line
            split.append(part.split())
    return [words for words in split if words]


def wrong(words: list[str]) -> list[str]:
    """The arguments of a command that name nothing that exists."""
    mistakes = []
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
            mistakes.append(f"{option} {value}")
    for word in words[1:]:
        figure = re.fullmatch(r"results/\w+/(figure|table)s/(\w+)\.\w+", word)
        if figure and figure[2] not in shown(figure[1]) and f"figures/{figure[2]}" not in NEW:
            mistakes.append(word)
        if re.fullmatch(r"(benchmarks|resources|tests)/[\w/.]+", word) and not (ROOT / word).exists():
            mistakes.append(word)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = set(re.findall(r"^([\w./-]+):", makefile, flags=re.MULTILINE))
        mistakes += [word for word in words[1:] if word not in targets and "=" not in word]
    return mistakes


def is_module(name: str) -> bool:
    if name.split(".")[0] not in ("specialized_heads", "benchmarks"):
        return True
    path = (PACKAGE.parent if name.startswith("specialized_heads") else ROOT) / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file() or "<" in name


@EACH_PAGE
def test_commands_name_what_exists(page: Path) -> None:
    assert [text for words in commands(page) for text in wrong(words)] == []


def test_targets_come_before_configfile_which_takes_all_words_up_to_the_next_option() -> None:
    files = [*PAGES, *(ROOT / "config").glob("*.yaml"), *ROOT.glob("profiles/*/*.yaml"), ROOT / "Makefile"]
    order = re.compile(r"--configfile[ =][\w/.]+\.yaml(?: |\\\n)+[\w.]+/[\w./]+")
    assert [found[0] for file in files for found in order.finditer(file.read_text(encoding="utf-8"))] == []
    assert order.search("snakemake --configfile config/smoke.yaml results/smoke/claims.md")


@EACH_PAGE
def test_figures_and_tables_are_made(page: Path) -> None:
    named = [re.fullmatch(r"(figure|table)s/(\w+)(?:\.\w+)?", span) for span in code(page) if span not in NEW]
    assert [match[0] for match in named if match and match[2] not in shown(match[1])] == []


def test_the_check_of_commands_finds_mistakes() -> None:
    assert wrong(["snakemake", "--configfile", "config/none.yaml", "--until", "corpus_splt"]) == [
        "--configfile config/none.yaml",
        "--until corpus_splt",
    ]
    assert wrong(["snakemake", "results/default/figures/figure70.pdf"]) == ["results/default/figures/figure70.pdf"]
    assert wrong(["python", "-m", "specialized_heads.nothing"]) == ["-m specialized_heads.nothing"]
    assert wrong(["make", "tests"]) == ["tests"]
    assert wrong(["snakemake", "--cores", "all", "--configfile", "config/smoke.yaml", "--forcerun", "parse"]) == []
