"""Trees kept in the repository beside an embedded corpus, looked up by the exact text of the sentence.

`resources/<name>/parses.parquet` has one row per sentence with a list per column; a word's form is the text that it
spans. `parses.json` beside it names the parser.
"""

from pathlib import Path

import pyarrow as pa

from specialized_heads.parsing.words import Word
from specialized_heads.stage import UserError, read_json
from specialized_heads.tables import read_table

NUMBERS, TEXTS = pa.list_(pa.int32()), pa.list_(pa.string())
SCHEMA = pa.schema(
    {"source": pa.string(), "start": NUMBERS, "end": NUMBERS, "head": NUMBERS, "relation": TEXTS, "upos": TEXTS}
)


def embedded_parses(texts: list[str], *, resource: Path | None) -> tuple[list[list[Word]], dict[str, str]]:
    """Look up the trees of sentences, exactly as the clean stage wrote them.

    Args:
        resource: `parses.parquet` of the corpus; None for a corpus that is not embedded.

    Returns:
        the words of each sentence, in order, and the parser: engine, version, model, command.

    Raises:
        UserError: the corpus has no embedded parses, or not for every sentence.
    """
    if resource is None:
        raise UserError("parser.engine: only embedded corpora have embedded parses; set parser.engine: stanza")
    if not resource.is_file():
        raise UserError(
            f"{resource}: no such file; set parser.engine: stanza, or make it with resources/make_parses.py"
        )
    wanted = set(texts)
    rows = read_table(resource, schema=SCHEMA).to_pylist()
    known = {row["source"]: row for row in rows if row["source"] in wanted}
    if missing := sum(text not in known for text in texts):
        raise UserError(
            f"{missing} of {len(texts)} analysis sentences have no embedded parse in {resource}: "
            "there are parses for the first documents under the shipped filters only; set parser.engine: stanza"
        )
    parses = []
    for text in texts:
        row = known[text]
        columns = zip(row["start"], row["end"], row["head"], row["relation"], row["upos"])
        parses.append([Word(text[start:end], start, end, *tree) for start, end, *tree in columns])
    about = read_json(resource.with_suffix(".json"))
    return parses, {key: about[key] for key in ("engine", "version", "model", "command")}
