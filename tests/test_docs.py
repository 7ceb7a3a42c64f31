"""Whatever the documentation names exists: links, files, configuration keys, rules and commands.
Statements of pages hold."""

import ast
import re
import typing
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import pytest
import yaml
from pages import PACKAGE, PAGES, ROOT, anchors, blocks, code, links, prose

from specialized_heads.experiment import configuration as config
from specialized_heads.experiment import figures, sources
from specialized_heads.experiment.file import load, read, whole
from specialized_heads.report.claims.claim import VERDICTS, Unit, ours
from specialized_heads.stage import Section, UserError

# Files that a page tells its reader to make.
NEW = {
    "config/mine.yaml",
    "config/my_pair.yaml",
    "config/my_model.yaml",
    "heads/viewer.html",
    "corpus/readers/jsonl.py",
    "report/figures/entropy.py",
    "heads/punctuation.py",
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


FOLDERS = {
    "docs",
    "src",
    "workflow",
    "config",
    "tests",
    "benchmarks",
    "resources",
    "envs",
    "profiles",
    ".ci",
}
PACKAGES = {path.name for path in PACKAGE.iterdir() if path.is_dir()}


@EACH_PAGE
def test_files_exist(page: Path) -> None:
    spans = {
        span
        for span in code(page)
        if re.fullmatch(r"[\w.*-]+/[\w.*/-]*", span) and "..." not in span
    }
    named = {span for span in spans if span.partition("/")[0] in FOLDERS}
    named |= {
        span
        for span in spans
        if span.partition("/")[0] in PACKAGES and re.search(r"\.(py|js|html|css)$", span)
    }
    named -= NEW | {"benchmarks/", "config/"}  # also folders of a run, or of the package
    assert [
        span
        for span in named
        if not any([*root.glob(span.rstrip("/"))] for root in (ROOT, PACKAGE))
    ] == []


# What a page may call by its last name: the keys of a corpus, and those of an experiment.
FIELDS: dict[str, Any] = {**config.Corpus.model_fields, **config.Experiment.model_fields}
# model.json is no key of the section model
SUFFIXES = {"json", "jsonl", "md", "parquet", "py", "safetensors", "yaml"}


def keys(field: Any) -> set[str]:
    """The keys of a section, or of several kinds (of source); none of a value."""
    kinds = [field.annotation, *typing.get_args(field.annotation)]
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]
    return {key for section in sections for key in section.model_fields}


@EACH_PAGE
def test_configuration_keys_exist(page: Path) -> None:
    named = [
        re.fullmatch(r"(?:corpora\.[\w*]+\.)?([a-z_]+)\.([a-z_]+)(?:: .*)?", span)
        for span in code(page)
    ]
    known = {section: keys(field) | SUFFIXES for section, field in FIELDS.items() if keys(field)}
    assert [m[0] for m in named if m and m[1] in known and m[2] not in known[m[1]]] == []
    inner = set().union(*known.values())
    for block in blocks(page, "yaml"):
        values = yaml.safe_load(re.sub(r"^source: .*\n", "", block, flags=re.MULTILINE)) or {}
        if "experiment" in values:
            load(whole(values, ROOT / "config" / "my.yaml"))
        assert values.keys() - {"extends"} <= FIELDS.keys() | inner


NAMES = r"^ *rule (\w+):|^ *use rule \w+ as (\w+) with:"
RULES = {
    name
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for name in re.findall(NAMES, path.read_text(), re.M)
}
TARGETS = set(
    re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
)


@EACH_PAGE
def test_commands_figures_and_tables_name_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    pattern = (
        r"--configfile[ =](\S+\.yaml)|(?:python|pytest) ((?:benchmarks|resources|tests)/[\w/.]+)"
    )
    files = set(re.findall(pattern, text))
    assert [
        name
        for names in files
        for name in names
        if name and name not in NEW and not (ROOT / name).exists()
    ] == []
    named = set(re.findall(r"--(?:until|forcerun|set-resources|set-threads)[ =](\w+)", text))
    assert named <= {name for names in RULES for name in names} | {"RULE"}
    modules = re.findall(r"-m ((?:specialized_heads|benchmarks)[\w.]*)", text)
    paths = [
        (PACKAGE.parent if name.startswith(PACKAGE.name) else ROOT) / name.replace(".", "/")
        for name in modules
    ]
    assert [path for path in paths if not (path.exists() or path.with_suffix(".py").exists())] == []
    drawn = {
        f"{kind}s/{name}"
        for kind, name in re.findall(r"(?<![\w/])(?:results/\w+/)?(figure|table)s/(\w+)", text)
    }
    assert drawn - NEW <= figures.BY_STEM.keys()
    assert (
        set(re.findall(r"(?:^|`|&& )make ([a-z][\w-]*)(?!=)\b", text, flags=re.MULTILINE))
        <= TARGETS
    )


def test_targets_come_before_configfile_which_takes_all_words_up_to_the_next_option() -> None:
    files = [
        *PAGES,
        *(ROOT / "config").rglob("*.yaml"),
        *ROOT.glob("profiles/*/*.yaml"),
        ROOT / "Makefile",
    ]
    order = re.compile(r"--configfile[ =][\w/.]+\.yaml(?: |\\\n)+[\w.]+/[\w./]+")
    assert [
        found[0] for file in files for found in order.finditer(file.read_text(encoding="utf-8"))
    ] == []


# Statements of single pages: quoted messages are the code's, examples run, numbers are in tables.


def test_quoted_messages_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^> (.+)$", page, flags=re.MULTILINE)
    assert len(quoted) > 20
    # Each statement on one line, with its strings joined.
    code = "\n".join(
        ast.unparse(ast.parse(path.read_text(encoding="utf-8"))) for path in PACKAGE.rglob("*.py")
    )
    code = code.replace("\\'", "'")
    for message in quoted:
        parts = [part.strip() for part in message.split("…") if part.strip(" :;,.()")]
        assert re.search(".*?".join(map(re.escape, parts)), code), message


def test_the_example_of_a_source_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = blocks(ROOT / "docs" / "extending.md", "python")
    exec(
        next(text for text in examples if text.startswith("class JsonLines")),
        names := dict(vars(sources)),
    )
    monkeypatch.setattr(sources, "JsonLines", names["JsonLines"], raising=False)
    jsonl = ModuleType("jsonl")
    exec(next(text for text in examples if "readers/jsonl.py" in text.splitlines()[0]), vars(jsonl))
    path = tmp_path / "pairs.jsonl"
    source = names["JsonLines"](kind="jsonl", path=str(path))

    def rows() -> list[dict[str, str]]:
        read = jsonl.read(source, [path], languages=("en", "de"), counts=counts)
        return [row for block in read for row in block.to_pylist()]

    counts: Counter[str] = Counter()
    path.write_text('{"source": "a", "target": "b"}\n\n', encoding="utf-8")
    assert rows() == [{"source": "a", "target": "b", "document": "", "set": ""}]
    assert counts == {"blank_line": 1}
    path.write_text('{"source": 1, "target": "b"}\n', encoding="utf-8")
    with pytest.raises(UserError, match="line 1: must be"):
        rows()


def test_the_claims_of_the_readme_are_those_of_the_evidence() -> None:
    """Both language pairs, always: a row shows what the evidence has for each."""
    evidence = pd.read_csv(
        ROOT / "docs/reference/evidence.csv", keep_default_na=False, na_values=[""]
    )
    judged = set()
    for _, same in evidence.groupby("claim", sort=False):
        best = {
            row["corpus"]: ours(row, Unit(row["unit"]))
            for row in same[same["best"]].to_dict("records")
        }
        first = same.iloc[0]
        pairs = (best.get(f"EN-{other} Tatoeba", "") for other in ("DE", "FR"))
        judged.add((first["reported"], *pairs, first["verdict"]))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = readme.partition("## Does it hold?")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|")[1:] for line in text.splitlines() if line.startswith("| ")]
    shown = {tuple(cell.strip() for cell in row) for row in rows}
    assert len(shown) > 8 and shown - {("paper", "EN-DE", "EN-FR", "verdict (EN-DE)")} < judged
    sentence = text.partition("evidence.md): ")[2].partition("([results")[0]
    of_v, of_m = (list(map(int, re.findall(r"\d+", part))) for part in sentence.split("; "))
    first = evidence.drop_duplicates("claim")
    v, m = (
        Counter(first.loc[first["paper"].str.startswith(name), "verdict"])
        for name in ("Voita", "Michel")
    )
    for numbers, counted in ((of_v, v), (of_m, m)):
        del counted["value only"], counted["not testable"]
        assert numbers == [counted[kind] for kind in VERDICTS if counted[kind]]
    assert f"tests {sum(v.values()) + sum(m.values())} of their claims" in " ".join(readme.split())


NUMBER = r"\d[\d,]*(?:\.\d+)?|(?<![\d)])\.\d+"


REFERENCE = ROOT / "docs" / "reference"
RESULTS = [
    REFERENCE / f"{name}.md"
    for name in ("README", "functions", "relevance", "pruning", "survival", "michel")
]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *RESULTS], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_measured_number_is_in_a_table_that_its_section_links(page: Path) -> None:
    missing = []
    for section in prose(page).split("\n## "):
        linked = {page.parent / target for target in re.findall(r"\]\(([^)#:]+\.\w+)", section)}
        tables = {path.with_suffix(suffix) for path in linked for suffix in (".csv", ".md")}
        rows = [
            numbers(line)
            for path in tables
            if path.is_file()
            for line in path.read_text().splitlines()
        ]
        others = r"\]\([^)]*\)|`[^`]*`|95% intervals|Python [\d.]+|CC-BY [\d.]+|MPL-[\d.]+"
        text = " ".join(re.sub(others, "", section).split())
        intervals = rf"({NUMBER})%?(?: points)? \[\W?({NUMBER})%?, \W?({NUMBER})%?\]"
        for interval in re.findall(intervals, text):
            if not any(all(shows(row, number) for number in interval) for row in rows):
                missing.append((section.partition("\n")[0], interval))
        for number in re.findall(rf"({NUMBER})%", text) + re.findall(r"\d*\.\d+", text):
            if not any(shows(row, number) for row in rows):
                missing.append((section.partition("\n")[0], number))
    assert not missing


def test_every_number_of_a_finding_is_on_the_page_that_it_links() -> None:
    text = prose(REFERENCE / "README.md").partition("## Ten findings\n")[2].partition("\n## ")[0]
    findings = text.strip().split("\n- ")
    assert len(findings) == 10
    for finding in findings:
        pages = [REFERENCE / name for name in re.findall(r"\]\((\w+\.md)", finding)]
        assert len(pages) == 1 and re.search(r"\]\(\w+/figures/|claims\.md", finding), finding
        unlinked = [
            " ".join(re.sub(r"\]\([^)]*\)", "", text).split())
            for text in (finding, prose(pages[0]))
        ]
        written, there = ({*re.findall(rf"{NUMBER}|\[[−\d][^\]]*\]", text)} for text in unlinked)
        assert written <= there, finding


def numbers(line: str) -> list[float]:
    return [
        float(number.replace(",", "")) for number in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", line)
    ]


def shows(row: list[float], text: str) -> bool:
    """Whether a row has a number, or a share as a percentage, that rounds to what is written."""
    number, half = float(text.replace(",", "")), 0.5001 * 10.0 ** -len(text.partition(".")[2])
    return any(abs(scale * value - number) <= half for value in row for scale in (1, 100))


def test_the_claims_of_each_study_are_those_of_the_evidence() -> None:
    keys, values = ["claim", "corpus"], ["value", "low", "high", "verdict", "text"]
    evidence = pd.read_csv(REFERENCE / "evidence.csv").set_index(keys)
    for path in REFERENCE.glob("*/claims.csv"):
        own = pd.read_csv(path).set_index(keys)[values].sort_index()
        same = evidence[evidence["experiment"] == path.parent.name][values].sort_index()
        pd.testing.assert_frame_equal(own, same, check_dtype=False)


def test_of_figures_and_tables_those_are_kept_that_a_page_links() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    kept = [*REFERENCE.glob("*/figures/*"), *REFERENCE.glob("*/tables/*")]
    stems = {path.with_suffix("").relative_to(REFERENCE).as_posix() for path in kept}
    assert [stem for stem in sorted(stems) if stem not in text and "environment" not in stem] == []


@pytest.mark.parametrize(
    "name",
    [
        "default",
        "long_pruning",
        "long_pruning_en_fr",
        "equal_depth",
        "equal_schedules",
        "bert_small",
        "minilm",
    ],
)
def test_the_kept_configuration_is_the_shipped_one(name: str) -> None:
    [shipped] = (
        [ROOT / "config.yaml"] if name == "default" else (ROOT / "config").rglob(f"{name}.yaml")
    )
    kept = ROOT / "docs" / "reference" / name / "configuration.yaml"
    assert load(read(shipped)) == load(read(kept))
