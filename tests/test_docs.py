"""Whatever the documentation names exists: links, files, configuration keys, rules and commands."""

import re
import typing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from pages import PACKAGE, PAGES, ROOT, anchors, blocks, code, links

from specialized_heads.experiment import configuration as config
from specialized_heads.experiment import figures
from specialized_heads.stage import Section

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


FOLDERS = {"docs", "src", "workflow", "config", "tests", "benchmarks", "resources", "envs", "profiles", ".ci"}
PACKAGES = {path.name for path in PACKAGE.iterdir() if path.is_dir()}


@EACH_PAGE
def test_files_exist(page: Path) -> None:
    spans = {span for span in code(page) if re.fullmatch(r"[\w.*-]+/[\w.*/-]*", span) and "..." not in span}
    named = {span for span in spans if span.partition("/")[0] in FOLDERS}
    named |= {span for span in spans if span.partition("/")[0] in PACKAGES and re.search(r"\.(py|js|html|css)$", span)}
    named -= NEW | {"benchmarks/", "config/"}  # also folders of a run, or of the package
    assert [span for span in named if not any([*root.glob(span.rstrip("/"))] for root in (ROOT, PACKAGE))] == []


# What a page may call by its last name: the keys of a corpus, and those of an experiment.
FIELDS: dict[str, Any] = {**config.Corpus.model_fields, **config.Experiment.model_fields}
SUFFIXES = {"json", "jsonl", "md", "parquet", "py", "safetensors", "yaml"}  # model.json is no key of the section model


def keys(field: Any) -> set[str]:
    """The keys of a section, or of several kinds (of source); none of a value."""
    kinds = [field.annotation, *typing.get_args(field.annotation)]
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]
    return {key for section in sections for key in section.model_fields}


@EACH_PAGE
def test_configuration_keys_exist(page: Path) -> None:
    named = [re.fullmatch(r"(?:corpora\.[\w*]+\.)?([a-z_]+)\.([a-z_]+)(?:: .*)?", span) for span in code(page)]
    known = {section: keys(field) | SUFFIXES for section, field in FIELDS.items() if keys(field)}
    assert [m[0] for m in named if m and m[1] in known and m[2] not in known[m[1]]] == []
    inner = set().union(*known.values())
    for block in blocks(page, "yaml"):
        values = yaml.safe_load(re.sub(r"^source: .*\n", "", block, flags=re.MULTILINE)) or {}
        if "experiment" in values:
            config.load(values)
        assert values.keys() <= FIELDS.keys() | inner


NAMES = r"^ *rule (\w+):|^ *use rule \w+ as (\w+) with:"
RULES = {name for path in (ROOT / "workflow/rules").glob("*.smk") for name in re.findall(NAMES, path.read_text(), re.M)}
TARGETS = set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


@EACH_PAGE
def test_commands_figures_and_tables_name_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    pattern = r"--configfile[ =](\S+\.yaml)|(?:python|pytest) ((?:benchmarks|resources|tests)/[\w/.]+)"
    files = set(re.findall(pattern, text))
    assert [name for names in files for name in names if name and name not in NEW and not (ROOT / name).exists()] == []
    named = set(re.findall(r"--(?:until|forcerun|set-resources|set-threads)[ =](\w+)", text))
    assert named <= {name for names in RULES for name in names} | {"RULE"}
    modules = re.findall(r"-m ((?:specialized_heads|benchmarks)[\w.]*)", text)
    paths = [(PACKAGE.parent if name.startswith(PACKAGE.name) else ROOT) / name.replace(".", "/") for name in modules]
    assert [path for path in paths if not (path.exists() or path.with_suffix(".py").exists())] == []
    drawn = {f"{kind}s/{name}" for kind, name in re.findall(r"(?<![\w/])(?:results/\w+/)?(figure|table)s/(\w+)", text)}
    assert drawn - NEW <= figures.BY_STEM.keys()
    assert set(re.findall(r"(?:^|`|&& )make ([a-z][\w-]*)(?!=)\b", text, flags=re.MULTILINE)) <= TARGETS


def test_targets_come_before_configfile_which_takes_all_words_up_to_the_next_option() -> None:
    files = [*PAGES, *(ROOT / "config").glob("*.yaml"), *ROOT.glob("profiles/*/*.yaml"), ROOT / "Makefile"]
    order = re.compile(r"--configfile[ =][\w/.]+\.yaml(?: |\\\n)+[\w.]+/[\w./]+")
    assert [found[0] for file in files for found in order.finditer(file.read_text(encoding="utf-8"))] == []
