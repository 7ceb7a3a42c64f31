"""A configuration file that extends another one."""

from pathlib import Path

import pytest

from specialized_heads.experiment import file as config
from specialized_heads.experiment.file import places, read
from specialized_heads.stage import UserError

BASE = """\
experiment: base
seeds: [1, 2]
corpora:
  first:
    {title: One, source: {kind: embedded, name: first}, target_language: fr,
     override: {training: {updates: 5}}}
  second: {title: Two, source: {kind: embedded, name: second}, target_language: de}
training:
  updates: 100
  schedule: linear
  warmup: 10
pruning: {encoder: [0.01], all: [0.1], retrain_updates: 7}
"""


@pytest.fixture
def extending(tmp_path: Path):
    """Write a file that extends `BASE`, in a folder of its own."""
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    (tmp_path / "studies").mkdir()

    def write(text: str, name: str = "mine.yaml") -> Path:
        path = tmp_path / "studies" / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_that_extends_another_has_what_differs(extending) -> None:
    path = extending(
        """\
extends: ../base.yaml
experiment: mine
seeds: [3]
corpora:
  third: {title: Three, source: {kind: embedded, name: third}, target_language: de}
  first: {title: Uno, source: {name: other}, override: null}
training: {updates: 200}
pruning: {encoder: [], retrain_updates: null}
"""
    )
    further = extending("extends: mine.yaml\nexperiment: further\npruning: null\n", "further.yaml")
    values = read(path)
    mine = config.load(values)
    assert "extends" not in values and mine.seeds == [3]
    assert (mine.training.updates, mine.training.warmup) == (200, 10)
    assert (mine.pruning.encoder, mine.pruning.all, mine.pruning.retrain_updates) == (
        [],
        [0.1],
        None,
    )
    # Only the corpora that it names, in its order; one that the other file has too starts from
    # there.
    assert list(mine.corpora) == ["third", "first"]
    first = mine.corpora["first"]
    assert (first.title, first.source.name, first.target_language, first.override) == (
        "Uno",
        "other",
        "fr",
        {},
    )
    assert read(further)["corpora"] == values["corpora"] and "pruning" not in read(further)


def test_a_source_of_another_kind_has_nothing_of_the_first(extending) -> None:
    path = extending(
        "extends: ../base.yaml\nexperiment: mine\ncorpora: {second: {source: {kind: local, path: "
        "x.tsv}}}\n"
        "parser: {engine: stanza}\n"
    )
    assert read(path)["corpora"]["second"]["source"] == {"kind": "local", "path": "x.tsv"}
    assert config.load(read(path)).corpora["second"].title == "Two"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "extends: ../none.yaml\nexperiment: mine\n",
            r"mine\.yaml: line 1: extends: there is no file .*none\.yaml; ",
        ),
        (
            "experiment: mine\nextends: mine.yaml\n",
            r"mine\.yaml: line 2: extends: .*mine\.yaml extends this file; ",
        ),
        (
            "extends: [../base.yaml]\nexperiment: mine\n",
            r"mine\.yaml: line 1: extends: .* is not a file; ",
        ),
        (
            "extends: ../base.yaml\nexperiment: mine\ncorpora: {first: , second: {}}\n",
            r"mine\.yaml: corpora\.first: empty; write `first: \{\}` to take it over",
        ),
        (
            "extends: ../base.yaml\n",
            r"mine\.yaml: experiment: required key is missing; \.\./base\.yaml has its own",
        ),
        (
            "extends: other.yaml\nexperiment: mine\n",
            r"other\.yaml: line 2: duplicate key experiment",
        ),
        ("experiment: !!bool mine\n", r"mine\.yaml: not YAML \('mine'\); correct it"),
        ("experiment: !!timestamp mine\n", r"mine\.yaml: not YAML \(.*\); correct it"),
    ],
)
def test_what_a_file_cannot_extend_is_told_with_its_line(extending, text: str, said: str) -> None:
    extending("experiment: a\nexperiment: b\n", "other.yaml")
    with pytest.raises(UserError, match=said) as caught:
        read(extending(text))
    assert "\n" not in str(caught.value)


def test_two_files_that_extend_each_other_are_told(extending) -> None:
    extending("experiment: other\nextends: mine.yaml\n", "other.yaml")
    with pytest.raises(
        UserError, match=r"other\.yaml: line 2: extends: .*mine\.yaml extends this file"
    ):
        read(extending("extends: other.yaml\nexperiment: mine\n"))


def test_a_wrong_key_is_told_with_its_file_and_line(extending, tmp_path: Path) -> None:
    path = extending("extends: ../base.yaml\nexperiment: mine\npruning:\n  updats: 1\n")
    (tmp_path / "base.yaml").write_text(BASE + "heads: {rare: 1}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        config.load(read(path), origin="mine.yaml", places=places(path))
    own = "mine.yaml: line 4: pruning.updats: unknown key; nearest known key: updates"
    others = (
        f"{tmp_path / 'base.yaml'}, line 13: heads.rare: unknown key; nearest known key: "
        f"rare_cutoff"
    )
    assert str(caught.value) == f"{own}; {others}"
