"""The person of subjects: how often a subject is a first-, second- or third-person pronoun, or a noun (footnote 4).

Subjects of dialogue are mostly "I" and "you", those of news are nouns, which changes where subjects stand and how well a head can
find them. Counted are the dependents of nsubj, passive ones included. Trees carry no morphology, so personal pronouns are told by
their form, which needs a list of the language: for English it is here, for other languages the table says that there is none.
The other words are told by their part of speech; the table says how many have none.
"""

from pathlib import Path

import pandas as pd

from specialized_heads.languages import without_region
from specialized_heads.parsing.relations import arcs
from specialized_heads.parsing.words import Word, read_parses
from specialized_heads.report.inputs import by_title
from specialized_heads.report.output import save_table
from specialized_heads.stage import Section, UserError, arguments, run

CAPTION = (
    "Person of subjects: share of the dependents of nsubj (passive ones included) in the analysis sentences that are personal "
    "pronouns of each person (told by their form), other pronouns (this, who, everyone), nouns and proper names, or other words "
    "(told by their part of speech), in percent."
)
PERSONS = ("first person", "second person", "third person", "other pronoun", "noun", "other")
ENGLISH = {
    "first person": "i me mine myself we us ours ourself ourselves",
    "second person": "you yours yourself yourselves ya y'all yall ye thou thee thine thyself",
    "third person": "he him his himself she her hers herself it its itself they them 'em theirs themself themselves",
}
FORMS = {"en": {form: person for person, forms in ENGLISH.items() for form in forms.split()}}
# Parsers do not tag every "I" as a pronoun, so the form goes before the tag; only these are pronouns by their tag alone.
NOUNS_TOO = {"it", "me", "mine", "us"}
NOUNS = ("NOUN", "PROPN")
COLUMNS = ["corpus", "language", "subjects", "untagged", "person", "count", "share"]


class Settings(Section):
    """What the files are: the title of each corpus, and the language of its parsed side."""

    titles: list[str]
    languages: list[str]


def numbers(parses: dict[str, list[list[Word]]], languages: dict[str, str]) -> pd.DataFrame:
    """Count the subjects of each corpus.

    Args:
        parses: trees by title of the corpus.
        languages: of the same; a code as `en` or `en-GB`.

    Returns:
        one row per corpus and person: corpus, language, subjects (arcs of nsubj), untagged (those without a part of speech),
        person, count, share (missing where the language has no list of pronouns, or there are no subjects).
    """
    rows = []
    for title, trees in parses.items():
        subjects = [words[arc.dependent] for words in trees for arc in arcs(words, ["nsubj"])]
        untagged = sum(word.upos in (None, "", "_") for word in subjects)
        forms = FORMS.get(without_region(languages[title]))
        persons = [person_of(word, forms) for word in subjects] if forms else []
        for person in PERSONS:
            row = {"corpus": title, "language": languages[title], "subjects": len(subjects), "untagged": untagged}
            row["person"] = person
            row["count"] = persons.count(person) if forms else None
            row["share"] = row["count"] / len(subjects) if persons else None
            rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS).astype({"count": "Int64", "share": float})


def person_of(word: Word, forms: dict[str, str]) -> str:
    """The person of a subject, one of `PERSONS`; `forms`: the person of each personal pronoun, in lower case."""
    form = word.form.lower().replace("’", "'")
    if form in forms and not (form in NOUNS_TOO and word.upos in NOUNS):
        return forms[form]
    return "noun" if word.upos in NOUNS else "other pronoun" if word.upos == "PRON" else "other"


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text, one row per corpus."""
    lines = []
    for title, own in rows.groupby("corpus", sort=False):
        line = {"corpus": title, "subjects": f"{own['subjects'].iloc[0]:,}"}
        if own["count"].isna().all():
            line |= dict.fromkeys(PERSONS, "–")
            line["note"] = f"no list of pronouns for language {own['language'].iloc[0]}"
        else:
            shares = zip(own["person"], own["share"], strict=True)
            line |= {person: "–" if pd.isna(share) else f"{100 * share:.1f}" for person, share in shares}
            untagged = own["untagged"].iloc[0]
            note = f"{untagged:,} subjects without part of speech, under other unless personal pronouns"
            line["note"] = note if untagged else ""
        lines.append(line)
    table = pd.DataFrame(lines)
    return table if table["note"].any() else table.drop(columns="note")


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["parses"])
    settings = Settings.model_validate(args.settings)
    files = by_title(args.parses, settings.titles)
    if len(settings.languages) != len(files):
        raise UserError(f"settings: languages: {len(settings.languages)} for {len(files)} files; give one per file")
    rows = numbers(
        {title: list(read_parses(Path(path)).values()) for title, path in files.items()},
        dict(zip(settings.titles, settings.languages, strict=True)),
    )
    save_table(args.output, rows, shown(rows), caption=CAPTION)


if __name__ == "__main__":
    run(main)
