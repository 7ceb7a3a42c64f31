"""Text as people have it, through the workflow: other formats, codes of countries, text that a
filter drops. One run for all."""

import csv
import io
import json
import subprocess
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pages import ROOT, blocks
from workflows import ENVIRONMENT, PIPED, Run, ended, start

from specialized_heads.stage import read_json

WORDS = {
    "garden": "花园", "window": "窗户", "river": "河流", "letter": "信件", "winter": "冬天",
    "teacher": "老师", "summer": "夏天", "kitchen": "厨房", "bridge": "桥梁", "forest": "森林",
}  # fmt: skip
TWO = list(product(WORDS, WORDS))
SOURCES = [
    f'The {one} is "near" the {two}.' if one < two else f"A {one}, a {two}." for one, two in TWO
]
TARGETS = [f"Der {one}en war beim {two}en." for one, two in TWO]
CHINESE = [f"{WORDS[one]}近{WORDS[two]}" for one, two in TWO]  # a fifth as long as its translation
LONG = "word " * 120
SEGMENTS = [f'<seg id="{number}">{text}</seg>' for number, text in enumerate(SOURCES, start=1)]
TAGS = [line for text in SOURCES for line in ("<s>", text, "</s>")]
OBJECTS = [json.dumps({"en": source, "de": target}) for source, target in zip(SOURCES, TARGETS)]


def tsv(sources: list[str], targets: list[str] = TARGETS, quoting: int = csv.QUOTE_NONE) -> str:
    """Pairs as a writer of CSV files writes them."""
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter="\t", quoting=quoting, quotechar=None if quoting == csv.QUOTE_NONE else '"'
    )
    writer.writerows(zip(sources, targets))
    return text.getvalue()


# Each corpus: its text, or the source side of two files; and what its log says: an error, a warning
# or nothing.
CORPORA: dict[str, tuple[str | list[str], str]] = {
    "plain": (tsv(SOURCES), ""),
    "two_files": (SOURCES, ""),
    "some_quoted": (
        tsv(SOURCES, quoting=csv.QUOTE_MINIMAL),
        "column 1: quotes of a CSV writer in 45 of 100 texts",
    ),
    "all_quoted": (
        tsv(TARGETS, SOURCES, csv.QUOTE_ALL),
        "column 1: quotes of a CSV writer in 100 of 100 texts",
    ),
    "side_quoted": (
        [f'"{text}"' for text in TARGETS],
        "side_quoted: quotes of a CSV writer in 100 of 100 texts",
    ),
    "json_lines": (OBJECTS, "json_lines: JSON in 100 of 100 texts"),
    "sgml": (
        ['<doc docid="1">', *SEGMENTS, "</doc>"],
        "sgml: markup (XML or SGML) in 102 of 102 texts",
    ),
    "xml": (TAGS, "xml: markup (XML or SGML) in 200 of 300 texts"),
    "columns": (tsv(SOURCES).splitlines(), "columns: several columns in 100 of 100 texts"),
    "chinese": (tsv(SOURCES, CHINESE), ""),
    "long": (
        tsv([LONG] * 20 + SOURCES[20:]),
        "20 of 100 pairs are dropped as too_long (20%); raise filters.max_words",
    ),
    "uneven": (
        tsv(["A."] * 95 + SOURCES[95:]),
        "95 of 100 pairs do not pass the filters (uneven 95); if they are tr",
    ),
    "korea": (
        tsv(SOURCES),
        "language: 'kr' is not the language of the country KR; write 'ko' if you mean that one",
    ),
}
REFUSED = {name for name, (_, said) in CORPORA.items() if " in " in said or "do not pass" in said}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """All corpora, as far as they can be made, in a folder of the user."""
    folder = tmp_path_factory.mktemp("sources")
    corpora = {}
    for name, (text, _) in CORPORA.items():
        source = {"kind": "local", "path": name}
        if isinstance(text, list):
            targets = TARGETS + ["Ja."] * (len(text) - len(TARGETS))
            source = {"kind": "local", "source_path": name, "target_path": f"{name}.de"}
            (folder / f"{name}.de").write_text("\n".join(targets), encoding="utf-8")
        (folder / name).write_text(
            text if isinstance(text, str) else "\n".join(text), encoding="utf-8", newline=""
        )
        language = {"chinese": "zh-Hans", "korea": "kr"}.get(name, "de")
        corpora[name] = {"title": name, "source": source, "target_language": language}
        corpora[name] |= {"split": {"dev": 5, "test": 5, "analysis": 5}}
    values = {"experiment": "test", "corpora": corpora, "parser": {"engine": "stanza"}}
    (folder / "my.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    targets = [f"results/test/{name}/corpus/counts.json" for name in CORPORA]
    return folder, snakemake(folder, *targets, "--keep-going", "--configfile", "my.yaml")


def snakemake(folder: Path, *arguments: str) -> Run:
    return ended(
        start(folder, "--snakefile", str(ROOT / "Snakefile"), "--cores", "2", *arguments, **PIPED)
    )


@pytest.mark.parametrize("name", CORPORA)
def test_text(made: tuple[Path, Run], name: str) -> None:
    folder, run = made
    said = CORPORA[name][1]
    results = folder / "results" / "test" / name
    logs = "".join(path.read_text(encoding="utf-8") for path in (results / "logs").iterdir())
    assert said in logs and "Traceback" not in logs, logs
    counts = results / "corpus" / "counts.json"
    assert counts.exists() == (name not in REFUSED), run.printed[-3000:]
    if not said:
        assert "dropped as" not in logs and "not the language" not in logs
        assert read_json(counts)["clean"] == 100
        train = pd.read_parquet(counts.with_name("train.parquet"))
        assert set(train["source"]) <= set(SOURCES) and set(train["target"]) <= {*TARGETS, *CHINESE}


def test_the_documented_command_removes_quotes(made: tuple[Path, Run], tmp_path: Path) -> None:
    folder, _ = made
    [command] = [block for block in blocks(ROOT / "docs" / "data.md", "") if "csv.reader" in block]
    for name in ("some_quoted", "all_quoted", "side_quoted"):
        (tmp_path / "quoted.tsv").write_bytes((folder / name).read_bytes())
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, env=ENVIRONMENT)
        plain = {"all_quoted": tsv(TARGETS, SOURCES), "side_quoted": "\n".join(TARGETS)}.get(
            name, tsv(SOURCES)
        )
        assert (tmp_path / "plain.tsv").read_text(encoding="utf-8").split("\n")[
            :100
        ] == plain.splitlines()[:100]


CODES = {
    "jp": "ja",
    "cn": "zh",
    "jap": "ja",
    "gr": "el",
    "cz": "cs",
    "dk": "da",
    "ua": "uk",
    "jp_JP": "ja",
}


def test_codes_that_are_no_languages(tmp_path: Path) -> None:
    corpora = {}
    for code in CODES:
        source = {"kind": "local", "path": code}
        corpora[code] = {"title": code, "source": source, "target_language": code}
    values = {"experiment": "test", "corpora": corpora, "parser": {"engine": "stanza"}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    run = snakemake(tmp_path, "--dry-run", "--configfile", "my.yaml")
    assert run.status == 1 and "Traceback" not in run.printed
    for code, likely in CODES.items():
        said = (
            f"{code.partition('_')[0]!r} is not the code of a language (ISO 639); the likely "
            f"one is {likely!r}"
        )
        assert f"corpora.{code}.target_language: {said}" in run.printed
