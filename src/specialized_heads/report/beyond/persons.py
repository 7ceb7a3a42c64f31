"""The person of subjects: how often a subject is a first-, second- or third-person pronoun, or a noun (footnote 4).

Subjects of dialogue are mostly "I" and "you", those of news are nouns; this changes where subjects are and how well a head can
find them. Trees carry no morphology, so personal pronouns are recognised by their form, which needs a list per language: English
has one here. All other words are classified by their part of speech.
"""

from pathlib import Path

import pandas as pd

from specialized_heads.languages import without_region
from specialized_heads.parsing.relations import arcs
from specialized_heads.parsing.words import Word, read_parses
from specialized_heads.report.data import Tables

FILES = ("parses",)
CAPTION = (
    "Person of subjects: share of the dependents of nsubj (passive ones included) in the analysis sentences that are personal "
    "pronouns of each person (by their form), other pronouns (this, who, everyone), nouns and proper names, or other words "
    "(by their part of speech), in percent."
)
PERSONS = ("first person", "second person", "third person", "other pronoun", "noun", "other")
ENGLISH = {
    "first person": "i me mine myself we us ours ourself ourselves",
    "second person": "you yours yourself yourselves ya y'all yall ye thou thee thine thyself",
    "third person": "he him his himself she her hers herself it its itself they them 'em theirs themself themselves",
}
FORMS = {"en": {form: person for person, forms in ENGLISH.items() for form in forms.split()}}
# Parsers do not tag every "I" as a pronoun, so the form decides before the tag; for these forms a noun's tag wins.
NOUNS_TOO = {"it", "me", "mine", "us"}
NOUNS = ("NOUN", "PROPN")
UNIVERSAL = {
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB",
    "X",
}  # fmt: skip
COLUMNS = ["corpus", "language", "subjects", "untagged", "person", "count", "share"]


def numbers(tables: Tables, parses: dict[str, Path], *, languages: dict[str, str]) -> pd.DataFrame:
    """One row per corpus and person; count and share are missing where the language has no list of pronouns.

    subjects: arcs of nsubj; untagged: those without a universal part of speech; `languages`: by corpus, such as `en` or
    `en-GB`.
    """
    rows = []
    for title, path in parses.items():
        language = languages[title]
        subjects = [words[arc.dependent] for words in read_parses(path).values() for arc in arcs(words, ["nsubj"])]
        untagged = sum(word.upos not in UNIVERSAL for word in subjects)
        forms = FORMS.get(without_region(language))
        persons = [person_of(word, forms) for word in subjects] if forms else []
        for person in PERSONS:
            count = persons.count(person) if forms else None
            share = count / len(subjects) if persons else None
            rows.append([title, language, len(subjects), untagged, person, count, share])
    return pd.DataFrame(rows, columns=COLUMNS).astype({"count": "Int64", "share": float})


def person_of(word: Word, forms: dict[str, str]) -> str:
    """The person of a subject, one of `PERSONS`; `forms`: the person of each personal pronoun, in lower case."""
    form = word.form.lower().replace("’", "'")
    if form in forms and not (form in NOUNS_TOO and word.upos in NOUNS):
        return forms[form]
    return "noun" if word.upos in NOUNS else "other pronoun" if word.upos == "PRON" else "other"


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text, one row per corpus whose language has a list of pronouns."""
    lines = []
    for title, same in rows.dropna(subset="count").groupby("corpus", sort=False):
        first = same.iloc[0]
        line = {"corpus": title, "subjects": f"{first['subjects']:,}"}
        for person, share in zip(same["person"], same["share"], strict=True):
            line[person] = "–" if pd.isna(share) else f"{100 * share:.1f}"
        line["note"] = ""
        if first["untagged"]:
            untagged = f"{first['untagged']:,} subjects without a universal part of speech"
            line["note"] = f"{untagged}, counted as other unless personal pronouns"
        lines.append(line)
    table = pd.DataFrame(lines, columns=["corpus", "subjects", *PERSONS, "note"])
    return table if table["note"].any() else table.drop(columns="note")


def notes(rows: pd.DataFrame) -> list[str]:
    """The corpora that the table leaves out."""
    unknown = rows[rows["count"].isna()].drop_duplicates("corpus")
    named = [f"{row.corpus} ({row.language})" for row in unknown.itertuples()]
    return [f"Without a list of pronouns for their language, and left out: {', '.join(named)}."] if named else []
