"""Persons of subjects: corpora whose language has no list of pronouns are left out, and the table says so once."""

from pathlib import Path

from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.report.beyond import persons


def test_a_language_without_a_list_is_left_out_with_a_note(tmp_path: Path) -> None:
    for name, form in (("English", "I"), ("German", "ich")):
        words = [Word(form, 0, len(form), 2, "nsubj", "PRON"), Word("run", 9, 12, 0, "root", "VERB")]
        write_parses(tmp_path / name, [words])
    paths = {name: tmp_path / name for name in ("English", "German")}
    rows = persons.numbers(None, paths, languages={"English": "en", "German": "de"})
    assert persons.shown(rows)["corpus"].tolist() == ["English"]
    assert ["left out: German (de)." in note for note in persons.notes(rows)] == [True]
    german = rows[rows["corpus"] == "German"]
    assert persons.shown(german).empty
    assert persons.notes(rows[rows["corpus"] == "English"]) == []
