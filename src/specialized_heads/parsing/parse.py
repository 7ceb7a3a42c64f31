"""Stage parse: a dependency tree for each analysis sentence (section 5.2).

Three engines: `stanza` parses any text (`stanza_engine`); `conllu` reads trees from a file, a
treebank or the output of another parser; `embedded` reads those that are kept in the repository
with an embedded corpus, and fails if one is missing. The report names the parser and its models,
and counts the sentences with a tree. Nothing is downloaded here.

A tree of a file belongs to the analysis sentence with the same text. White space is ignored, since
many parsers do not record where spaces were; a tree whose text also has the same spaces is
preferred. Its words are located by counting characters without white space, so nothing is searched
for or guessed. Sentences without a tree, or whose tree spells other words, have no parse and are
counted.

Empty nodes and enhanced dependencies are ignored. Relations keep their names. Several roots are
allowed, because not every parser gives a text a single root, and arcs are counted individually; a
file with a cycle of heads is refused.
"""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from specialized_heads.corpus.normalise import decode_entities, normalise
from specialized_heads.corpus.readers.archives import lines
from specialized_heads.experiment.sections import Parser
from specialized_heads.parsing.words import Word, letters, word_spans, write_parses
from specialized_heads.stage import Files, UserError, command, file_hash, log, read_json, write_json
from specialized_heads.tables import read_columns

COLUMNS = 10
MANY_MISSING = 0.1  # share of the sentences that may have no tree before it is warned of
LEAST = 0.1  # share that must have one in a file, which otherwise is of another text
NUMBER = re.compile(r"(\d{1,9})(?:(-|\.)(\d{1,9}))?")
HEAD = re.compile(r"\d{1,9}")
TEXT = re.compile(r"#\s*text\s*=\s*(.*)")


class Settings(Parser):
    language: str


class Token(NamedTuple):
    """A surface token: its form, the space after it, and its syntactic words as (form, head,
    relation, upos)."""

    form: str
    space: str
    words: list[tuple[str, int, str, str]]


class Tree(NamedTuple):
    """One sentence of the file."""

    text: str
    tokens: list[Token]


def read_trees(path: Path) -> list[Tree]:
    """The sentences of a CoNLL-U file, plain or compressed, in order; any other file is a
    `UserError` with the line.

    `text` is the comment `# text`, or else the forms, separated by spaces except after
    `SpaceAfter=No`.
    """
    trees = [_tree(block, path) for block in _blocks(path)]
    if not trees:
        raise UserError(f"{path}: no sentence in it; name a CoNLL-U file of parsed sentences")
    return trees


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """The numbered lines of each sentence; comments alone are not one."""
    numbered = enumerate(lines(path), start=1)
    for blank, group in groupby(numbered, key=lambda line: not line[1].strip()):
        block = list(group)
        if not blank and not all(line.startswith("#") for _, line in block):
            yield block


def _tree(block: list[tuple[int, str]], path: Path) -> Tree:
    """The tree of a sentence, without HTML entities, as in clean text."""
    text: str | None = None
    tokens: list[Token] = []
    heads: list[tuple[int, int]] = []  # of each word, with the number of its line
    last = 0  # the word that ends the newest multi-word token
    for line_number, line in block:
        where = f"{path}, line {line_number}"
        if line.startswith("#"):
            text = decode_entities(found[1]) if (found := TEXT.fullmatch(line)) else text
            continue
        row = line.split("\t")
        if len(row) != COLUMNS:
            raise UserError(f"{where}: {len(row)} columns between tabs where CoNLL-U has {COLUMNS}")
        number, form, _, upos, _, _, head, relation, _, other = row
        if not (parts := NUMBER.fullmatch(number)):
            raise UserError(
                f"{where}: {number!r} is not the number of a word; it must be like 4, 4-5 or 4.1"
            )
        first, kind, end = parts.groups()
        if kind == ".":  # an empty node
            continue
        form, word, said = decode_entities(form), len(heads) + 1, ""
        if int(first) != word:
            said = f"word {number} instead of word {word}; number words from 1 in each sentence, "
            said += "and end sentences with an empty line"
        elif kind and (word <= last or int(end) < word):
            said = f"{number} is not a range of words after the preceding ones"
        elif not kind and (not HEAD.fullmatch(head) or relation == "_"):
            said = f"word {number} has no head and relation; the file must hold parsed sentences"
        if said:
            raise UserError(f"{where}: {said}")
        if word > last:
            tokens.append(Token(form, "" if "SpaceAfter=No" in other.split("|") else " ", []))
        if kind:
            last = int(end)
        else:
            tokens[-1].words.append((form, int(head), relation, upos))
            heads.append((line_number, int(head)))
    if last > len(heads):
        raise UserError(f"{path}, line {block[-1][0]}: the sentence ends inside a multi-word token")
    for line_number, head in heads:
        if head > len(heads):
            said = f"head {head} in a sentence of {len(heads)} words"
            raise UserError(f"{path}, line {line_number}: {said}")
    try:
        TopologicalSorter({word: [head] for word, (_, head) in enumerate(heads, start=1)}).prepare()
    except CycleError as error:
        word, *others = error.args[1][:0:-1]  # each word's head follows it
        raise UserError(
            f"{path}, line {heads[word - 1][0]}: word {word} is in a cycle (heads in turn: "
            f"{', '.join(map(str, [*others, word]))}); each word must lead to a root, a word with "
            f"head 0"
        ) from None
    return Tree(text or "".join(token.form + token.space for token in tokens).strip(), tokens)


def place(tokens: list[Token], text: str) -> list[Word]:
    """The words of a tree in a sentence; none if the forms of the tokens, joined, are not the
    characters of the text."""
    positions = [position for position, letter in enumerate(text) if not letter.isspace()]
    spelled = "".join(letters(token.form) for token in tokens)
    if letters(text) != spelled or len(spelled) != len(positions):
        return []
    words, start = [], 0
    for token in tokens:
        end = start + len(letters(token.form))
        if end == start:  # a form of white space or invisible characters alone
            return []
        forms, place = [form for form, *_ in token.words], positions[start:end]
        spans = word_spans(forms, text=text, start=place[0], end=place[-1] + 1)
        for (form, *rest), span in zip(token.words, spans, strict=True):
            words.append(Word(form, *span, *rest))
        start = end
    return words


def _clean(text: str) -> str:
    """A text as the clean stage writes it."""
    return normalise(text)[0]


def look_up(texts: list[str], trees: list[Tree]) -> tuple[list[Tree | None], list[list[Word]]]:
    """The tree of each sentence, if there is one, and its words there, none if they do not spell
    the sentence."""
    known: dict[str, Tree] = {}
    for form in (_clean, letters):
        for tree in trees:
            known.setdefault(form(tree.text), tree)
    matches = [known.get(text) or known.get(letters(text)) for text in texts]
    found = zip(matches, texts, strict=True)
    return matches, [place(tree.tokens, text) if tree else [] for tree, text in found]


def conllu_parses(texts: list[str], *, path: Path) -> tuple[list[list[Word]], dict[str, str | int]]:
    """The words of each sentence, empty without a parse, from a CoNLL-U file; and the entries of
    the report.

    Of trees with the same text the first is used. A `UserError` if fewer than `LEAST` of the
    sentences have a tree in the file.
    """
    trees = read_trees(path)
    matches, parses = look_up(texts, trees)
    if not any(parses) and any(matches):
        tree, text = next((tree, text) for tree, text in zip(matches, texts, strict=True) if tree)
        words = " ".join(token.form for token in tree.tokens)
        raise UserError(
            f"{path}: {sum(map(bool, matches))} of the {len(texts)} analysis sentences have a "
            f"tree, but its words are not those of the text: {words!r} for {text!r}; they must be "
            f"written as in the text"
        )
    if (parsed := sum(map(bool, parses))) < LEAST * len(texts):
        raise UserError(
            f"{path}: {parsed or 'none'} of the {len(texts)} analysis sentences have a tree among "
            f"the {len(trees)} of this file; it must have those of corpus/analysis.parquet, or be "
            f"the treebank in corpora.*.source.analysis"
        )
    without = sum(tree is None for tree in matches)
    return parses, {
        "engine": "conllu",
        "model": path.name,
        "sha256": file_hash(path),
        "trees": len(trees),
        "trees_of_a_repeated_text": len(trees) - len({_clean(tree.text) for tree in trees}),
        "sentences_without_a_tree": without,
        "sentences_with_other_words": len(texts) - parsed - without,
    }


def embedded_parses(texts: list[str], *, resource: Path) -> tuple[list[list[Word]], dict[str, str]]:
    """The words of each sentence in `parses.conllu.gz` of a corpus, and the parser; a `UserError`
    if one has no tree."""
    _, parses = look_up(texts, read_trees(resource))
    if missing := sum(not words for words in parses):
        raise UserError(
            f"{missing} of {len(texts)} analysis sentences have no embedded parse in {resource}: "
            "there are parses for the first documents under the shipped filters only; set "
            "parser.engine: stanza"
        )
    about = read_json(resource.with_name("parses.json"))
    return parses, {key: about[key] for key in ("engine", "version", "model", "command")}


@command("text", "output", "report", optional=("resource",), settings=Settings)
def main(args: Files, settings: Settings) -> None:
    """`--resource` is the file of trees for `embedded` and `conllu`."""
    [texts] = read_columns(args.text, "source")
    match settings.engine:
        case "embedded":
            parses, about = embedded_parses(texts, resource=args.resource)
        case "conllu":
            parses, about = conllu_parses(texts, path=args.resource)
        case "stanza":
            from specialized_heads.parsing import stanza_engine  # takes seconds to import

            pipeline = stanza_engine.load_pipeline(
                **settings.model_dump(include={"language", "directory", "package"})
            )
            parses = stanza_engine.parse_sentences(pipeline, texts)
            about = stanza_engine.describe(pipeline, package=settings.package)
    write_parses(args.output, parses)
    report = about | {"sentences": len(texts), "sentences_parsed": sum(map(bool, parses))}
    report["words"] = sum(map(len, parses))
    write_json(args.report, report)
    without = [text for text, words in zip(texts, parses, strict=True) if not words]
    if len(without) > MANY_MISSING * len(texts):
        log.warning("%d sentences have no tree, first this one: %s", len(without), without[0])
    said = "%(sentences_parsed)d of %(sentences)d sentences parsed with %(engine)s: %(words)d words"
    log.info(said, report)
