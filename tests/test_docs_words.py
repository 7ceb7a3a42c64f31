"""Words, numbers and times of the documentation: one name for one thing, one way to write a number,
and one table of times, with which all other statements agree."""

import os
import re
from pathlib import Path

import pytest
from pages import PAGES, ROOT, prose

NUMBER = r"\d[\d,]*(?:\.\d+)?"
RESULTS = [
    ROOT / "docs" / "reference" / f"{name}.md"
    for name in ("README", "functions", "relevance", "pruning", "survival", "michel")
]
WRITTEN = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
    ROOT / "results" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
CONFIGURATIONS = [
    path
    for path in [ROOT / "config.yaml", *sorted((ROOT / "config").rglob("*.yaml"))]
    if not path.is_symlink()
]


@pytest.mark.parametrize("page", [*RESULTS, *WRITTEN], ids=lambda path: str(path.relative_to(ROOT)))
def test_numbers_are_written_one_way(page: Path) -> None:
    """12,000 and 0.89, not 12000 and .89; years have no comma."""
    others = r"\]\([^)]*\)|`[^`]*`|seed 12345|Windows-1252|U\+\w+"
    text = re.sub(others, "", prose(page))
    years = r"19\d\d\b|200[1-9]\b|20[12]\d\b"
    assert re.findall(rf"(?<![\w.,])\.\d+|(?<![\w.,])(?!{years})\d{{4,}}\b", text) == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_fit(page: Path) -> None:
    """100 characters, in code too; tables and configurations of one line per section are wider."""
    text = re.sub(r"^```yaml\n.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert [
        line for line in text.splitlines() if len(line) > 100 and not line.startswith("|")
    ] == []


# Words of which another is in use: largest weights, heads left, given baselines; and phrases that
# a reader has stumbled over.
REPLACED = (
    r"arg-?max|maxima\b|strongest attention|retained|remaining (?:\w+ )?heads|heads (?:are )?kept|"
    r"heads? to keep|keeps? (?:\w+ )?heads|by today's rules|has its maximum at|compared likewise|"
    r"reach the accepted range|of function against none|the loss shows neither|leave them all|"
    r"make up for those|each baseline by itself"
)


@pytest.mark.parametrize(
    "page",
    [*WRITTEN, *CONFIGURATIONS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_one_thing_has_one_name(page: Path) -> None:
    assert re.findall(REPLACED, " ".join(page.read_text(encoding="utf-8").split())) == []


def times() -> dict[str, tuple[str, str]]:
    """The table of times: on two cores and core-hours, by each file or command that a row names."""
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8").partition("## How much")[0]
    rows = re.findall(r"^\| ([^|]+) \|[^|]+\| ([^|]+) \| ?([^|]*)\|$", text, flags=re.MULTILINE)
    named = r"(?<=\]\()[^)#]+|(?<=`)[^`]+(?=`)"
    return {name: (two, work) for names, two, work in rows for name in re.findall(named, names)}


def hours(time: str) -> float:
    first = float(re.findall(NUMBER, time)[0])
    return first / 60 if "minute" in time else first


def test_times_of_the_table_agree_with_each_other() -> None:
    of = times()
    assert len(of) > 20 and all((ROOT / "config" / name).exists() for name in of if "." in name)
    estimated = [(two, work) for two, work in of.values() if "~" in two and work]
    assert len(estimated) > 7
    for two, work in estimated:
        assert hours(two) == pytest.approx(hours(work) / 2, rel=0.04)
    run = re.findall(
        r"configfile config/(\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M
    )
    known = [hours(of[name][0]) for name in ("../config.yaml", *run) if name != "bert_small.yaml"]
    assert hours(of["make reference"][0]) == pytest.approx(sum(known), abs=0.5)
    assert f"about {hours(of['make reference'][0]):.0f} hours" in (ROOT / "Makefile").read_text()


def test_times_elsewhere_are_those_of_the_table() -> None:
    """Of a study that its own file or the section names, or of a page that the table links."""
    of, found = times(), 0
    statement = rf"({NUMBER})( to {NUMBER})? (?:core-hour|core-minute|hours on two|minutes on two)"
    elsewhere = {*PAGES} - {ROOT / "CHANGELOG.md", ROOT / "config" / "README.md"}
    for path in [*CONFIGURATIONS, *elsewhere]:
        for part in path.read_text(encoding="utf-8").split("\n## "):
            words = " ".join(part.replace("\n#", "\n").split())
            near = os.path.relpath(path, ROOT / "config")
            names = {near, *re.findall(r"(?<=config/)[\w/]+\.yaml(?=[)`])", words)} & of.keys()
            for first, last in re.findall(statement, words):
                assert any(first + last in " ".join(of[name]) for name in names), (path, words)
                found += 1
    assert found > 10
    readme, contributing = (ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING"))
    install, default = of["make install"][0], of["../config.yaml"][0].removesuffix(" minutes")
    assert f"two cores: {install} to install, {default} to run" in readme.read_text()
    for command in ("make test", "make test-all"):
        assert re.search(rf"^{command} .* {of[command][0]};", contributing.read_text(), flags=re.M)


def test_memory_and_disk_of_the_readme_are_those_of_the_table() -> None:
    table = (ROOT / "config" / "README.md").read_text().partition("## How much")[2]
    (clone,) = re.findall(r"^\| clone.*?([\d.]+) GB", table, flags=re.MULTILINE)
    (environments,) = re.findall(
        r"^\| environment \| \| ([\d.]+) GB .*, ([\d.]+) GB ", table, flags=re.MULTILINE
    )
    ((memory, results),) = re.findall(
        r"^\| the default \| (\d+) GB \| ([\d.]+) GB", table, flags=re.MULTILINE
    )
    cpu, cuda = (round(float(clone) + float(each) + float(results)) for each in environments)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| memory | {memory} GB" in readme and f"| disk | {cpu} GB; {cuda} GB with" in readme


def test_memory_on_a_gpu_is_what_the_arithmetic_gives() -> None:
    def estimate(parameters: float, layers: int, width: int, tokens: int) -> list[float]:
        return [16e-3 * parameters, 61e-9 * tokens * layers * width, 0.5]

    def table(name: str) -> list[list[str]]:
        text = (ROOT / "docs" / name).read_text(encoding="utf-8").replace(",", "")
        rows = re.findall(r"^\| (.*\d GB|.* \d+\.\d+) \|$", text, flags=re.MULTILINE)
        return [row.split(" | ") for row in rows]

    imported = [row for row in table("models.md") if "=" in row[-1]]
    for _, parameters, sizes, tokens, sums in imported:
        *layers, width = map(int, re.findall(r"\d+", sizes))
        parts = estimate(float(parameters.split(":")[0]), sum(layers), width, int(tokens))
        assert [float(part) for part in re.findall(NUMBER, sums)] == pytest.approx(
            [*parts, sum(parts)], abs=0.06
        )
    simulated = [row for row in table("paper_scale.md") if len(row) == 6 and row[3] == "30"]
    for sizes, _, tokens, _, parameters, total in simulated:
        width, *layers = map(int, re.findall(r"\d+", sizes))
        there = estimate(float(parameters), sum(layers), width, int(tokens.split()[0]))
        assert sum(there) == pytest.approx(float(total), abs=0.35)
    assert len(imported) == 3 and len(simulated) == 5
