"""Trees kept in the repository beside an embedded corpus: `resources/<name>/parses.conllu.gz`; `parses.json` names the parser."""

from pathlib import Path

from specialized_heads.parsing.conllu import look_up, read_trees
from specialized_heads.parsing.words import Word
from specialized_heads.stage import UserError, read_json


def embedded_parses(texts: list[str], *, resource: Path) -> tuple[list[list[Word]], dict[str, str]]:
    """The words of each sentence in `parses.conllu.gz` of a corpus, and the parser; a `UserError` if one has no tree."""
    _, parses = look_up(texts, read_trees(resource))
    if missing := sum(not words for words in parses):
        raise UserError(
            f"{missing} of {len(texts)} analysis sentences have no embedded parse in {resource}: "
            "there are parses for the first documents under the shipped filters only; set parser.engine: stanza"
        )
    about = read_json(resource.with_name("parses.json"))
    return [words or [] for words in parses], {key: about[key] for key in ("engine", "version", "model", "command")}
