"""Hostile configurations, given to the command that checks them, and some to Snakemake as a user
would start it."""

import re
from pathlib import Path

import pytest
import yaml
from workflows import PIPED, ROOT, Run, ended, start

from specialized_heads.experiment.configuration import FOLDERS
from specialized_heads.stage import read_json

GOOD = """\
experiment: test
corpora:
  first:
    title: One
    source: {kind: local, path: pairs.tsv}
    target_language: fr
parser: {engine: conllu, path: trees.conllu}
"""


def with_(text: str) -> bytes:
    """The good configuration with more text at its end."""
    return (GOOD + text).encode()


def instead(old: str, new: str) -> bytes:
    """The good configuration with a part replaced."""
    assert old in GOOD
    return GOOD.replace(old, new).encode()


PYTHON = "!!python/object/apply:os.system [touch payload]"
YTE = "__use_yte__: true\ndevice: ?__import__('os').system('touch payload')\n"
CONFIGURATIONS = {  # the content, and the file, place and key that the message names
    "nothing": (b"", "my.yaml: holds nothing"),
    "list": (b"- experiment\n- corpora\n", "my.yaml: holds a list"),
    "latin_1": (with_("# caf\n").replace(b"caf", b"caf\xe9"), "my.yaml: line 8: not UTF-8"),
    "tab": (with_("training:\n\tupdates: 5\n"), "my.yaml: line 9, column 1: not YAML", "tabs"),
    "key_twice": (
        with_("experiment: other\n"),
        "my.yaml: line 8: duplicate key experiment, first on line 1",
    ),
    "key_twice_deep_inside": (
        instead("title: One", "title: One\n    title: Two"),
        "line 5: duplicate key title",
    ),
    "octal": (with_("seeds: [1, 0100]\n"), "my.yaml: line 8: YAML reads 0100 as another number"),
    "key_that_is_a_list": (with_("? [a, b]\n: 5\n"), "my.yaml: line 8: a key must be a word"),
    "alias_of_itself": (
        with_("seeds: &s [1, *s]\n"),
        "my.yaml: line 8, column 8: not YAML",
        "alias",
    ),
    "nested_deeply": (b"[" * 50_000, "my.yaml: nested too deeply"),
    "large": (b"#" * 2_000_000, "my.yaml: 2000000 bytes"),
    "tag_that_runs_a_command": (
        with_(f"device: {PYTHON}\n"),
        "my.yaml: line 8, column 9: not YAML",
        "tag",
    ),
    "template_that_runs_python": (with_(YTE), "my.yaml: __use_yte__"),
    "section_that_is_a_list": (with_("training: [updates]\n"), "my.yaml: line 8: training: "),
    "true_for_a_number": (
        with_("training: {updates: yes}\n"),
        "my.yaml: line 8: training: updates must not be true",
    ),
    "norwegian": (
        instead("language: fr", "language: no"),
        "target_language must not be false",
        "unquoted",
    ),
    "number_of_thirty_digits": (
        with_(f"training: {{updates: {10**30}}}\n"),
        "updates: a number is too large",
    ),
    "corpus_that_runs_a_command": (
        instead("first:", '"$(touch payload)":'),
        "'$(touch payload)'",
        "a folder",
    ),
    "corpus_in_the_place_of_figures": (
        instead("first:", "figures:"),
        "corpora.figures: ",
        "is reserved",
    ),
    "path_with_a_wildcard": (instead("pairs.tsv", "'{seed}.tsv'"), "corpora.first.source.path: "),
    "embedded_text_that_leads_out": (
        instead("local, path: pairs.tsv", "embedded, name: ../../etc"),
        "source.name: ",
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations(run, refused, folder: Path, name: str) -> None:
    content, *expected = CONFIGURATIONS[name]
    (folder / "my.yaml").write_bytes(content)
    refused(run("experiment.file", "my.yaml"), *expected)


def test_no_corpus_takes_the_name_of_another_folder_of_results() -> None:
    rules = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk")
    )
    named = set(re.findall(r"results/\{+experiment\}+/(\w+)/", rules))
    assert named | {"figures", "tables"} == set(FOLDERS)  # one rule makes the files in these two


def test_no_configuration_to_check(run, refused, folder: Path) -> None:
    refused(run("experiment.file", "none.yaml"), "none.yaml: cannot be read", "check the path")
    refused(run("experiment.file"), "name a file")


def snakemake(folder: Path, *arguments: str) -> Run:
    """Run the workflow in a folder of the user."""
    return ended(
        start(folder, "--snakefile", str(ROOT / "Snakefile"), "--cores", "1", *arguments, **PIPED)
    )


def test_a_hostile_configuration_through_snakemake(folder: Path) -> None:
    content, *expected = CONFIGURATIONS["corpus_that_runs_a_command"]
    (folder / "my.yaml").write_bytes(content)
    done = snakemake(folder, "--dry-run", "--configfile", "my.yaml")
    assert done.status == 1
    assert "Traceback" not in done.printed
    [line] = [line for line in done.printed.splitlines() if line.startswith("my.yaml: ")]
    assert all(words in line for words in expected)
    (folder / "my.yaml").write_bytes(CONFIGURATIONS["tag_that_runs_a_command"][0])
    # Snakemake refuses what it cannot read with its own words.
    assert (
        "not valid JSON or YAML"
        in snakemake(folder, "--dry-run", "--configfile", "my.yaml").printed
    )
    assert {path.name for path in folder.iterdir()} <= {"my.yaml", ".snakemake"}


def test_the_default_configuration_is_read_before_snakemake_does(folder: Path) -> None:
    """Then even invalid YAML gets its line number."""
    (folder / "config.yaml").write_bytes(CONFIGURATIONS["tab"][0])
    done = snakemake(folder, "--dry-run")
    assert done.status == 1
    assert "\nconfig.yaml: line 9, column 1: not YAML" in done.printed
    assert "Traceback" not in done.printed


def test_a_mistake_in_an_option_is_not_blamed_on_the_file_alone(folder: Path) -> None:
    (folder / "my.yaml").write_text(GOOD, encoding="utf-8")
    done = snakemake(folder, "--dry-run", "--configfile", "my.yaml", "--config", "trainning=3")
    assert (
        "\nmy.yaml with --config trainning: trainning: unknown key; nearest known key: training"
        in done.printed
    )


PATHS = [
    '-dash  it\'s "quoted" $(touch payload) `touch payload`; touch payload.tsv',
    "--option",
    "two\nlines #&|<>!\\*?[a]~ юникод.tsv",
]


def test_paths_that_are_odd_but_legal_are_read(folder: Path) -> None:
    """A raw stage per corpus, in one run of Snakemake."""
    values = yaml.safe_load(GOOD)
    first = values["corpora"].pop("first")
    (folder / "trees.conllu").touch()
    for number, path in enumerate(PATHS):
        (folder / path).write_text(f"one {number}\tun {number}\n", encoding="utf-8")
        source = {"source": {"kind": "local", "path": path}, "title": f"{number} {path}"}
        values["corpora"][f"corpus{number}"] = first | source
    (folder / "my.yaml").write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    cards = [f"results/test/corpus{number}/corpus/raw.json" for number in range(len(PATHS))]
    done = snakemake(folder, *cards, "--configfile", "my.yaml")
    assert done.status == 0, done.printed[-3000:]
    for card, path in zip(cards, PATHS, strict=True):
        assert [file["file"] for file in read_json(folder / card)["files"]] == [path]
    assert not list(folder.rglob("payload"))
