"""Trees from spaCy, converted to Universal Dependencies where the paper's relations require it.

Some spaCy models predict UD trees (Russian, French, Spanish, ...), which are used as they are; the English ones predict ClearNLP
trees, recognised by their labels. Most differences are names (`dobj` is `obj`), but two affect the heads of subjects and adverbs:
in "The page is empty" the subject depends on "is" in ClearNLP, on "empty" in UD; in "just after noon" the adverb depends on
"after" in ClearNLP, on "noon" in UD. So the predicate and the object of a preposition swap places with their head. Relations
without a counterpart become `dep`, UD's unspecified dependency. spaCy is an optional extra of the installation.
"""

from collections.abc import Iterable, Iterator

try:
    import spacy
except ImportError:
    spacy = None

from specialized_heads.languages import without_region
from specialized_heads.parsing.relation_names import STANFORD
from specialized_heads.parsing.spacy_models import DEFAULTS, model_name
from specialized_heads.parsing.words import Word
from specialized_heads.stage import UserError, progress

INSTALL = "pip install -c constraints.txt -e '.[spacy]'"
BATCH = 64  # sentences

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


def load_model(*, language: str, package: str) -> "spacy.Language":
    """Load an installed model by its name or path; `default`: that in `DEFAULTS`.

    Raises:
        UserError: spaCy or the model is not installed, or the model is for another language, has no parser, or has relations of
            neither scheme.
    """
    if spacy is None:
        raise UserError(f"parser.engine: spacy is not installed; run {INSTALL}, or set parser.engine: stanza")
    name = model_name(language=language, package=package)
    if name is None:
        raise UserError(f"parser.package: spaCy has no default model for {language!r}; install one and give its name")
    try:
        model = spacy.load(name, exclude=["ner"])
    except OSError:
        install = INSTALL if name in DEFAULTS.values() else f"python -m spacy download {name}"
        raise UserError(f"parser.package: spaCy finds no model {name!r}; install it ({install})") from None
    except Exception as error:  # a damaged model can raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"parser.package: spaCy cannot load {name!r} ({reason}); install or make it again") from None
    if model.lang != without_region(language):
        raise UserError(f"parser.package: {name} is a model for {model.lang!r}, the text is {language!r}")
    if "parser" not in model.pipe_names:
        raise UserError(f"parser.package: {name} has no dependency parser; choose another model")
    if not {"dobj", "obj"} & set(model.get_pipe("parser").labels):
        raise UserError(
            f"parser.package: the relations of {name} are neither those of Universal Dependencies nor ClearNLP's; "
            "choose another model, or set parser.engine: stanza"
        )
    return model


def parse_sentences(model: "spacy.Language", texts: Iterable[str], *, restructure: bool = True) -> Iterator[list[Word]]:
    """The words of each sentence, without white space.

    Args:
        restructure: whether to move the heads of ClearNLP trees as in UD, or only rename relations.
    """
    clear = "dobj" in model.get_pipe("parser").labels
    documents = (_as_one_sentence(model.make_doc(text)) for text in texts)
    for document in progress(model.pipe(documents, batch_size=BATCH), what="parse", unit="sentence"):
        # White space depends on words, never words on it.
        tokens = [token for token in document if not token.is_space]
        number = {token.i: position for position, token in enumerate(tokens, start=1)}
        heads = [0 if token.head.i == token.i else number[token.head.i] for token in tokens]
        relations = [token.dep_ for token in tokens]
        if clear and restructure:
            _raise_objects_of_prepositions(heads, relations, [token.pos_ for token in tokens])
            _raise_predicates(heads, relations, [token.lemma_ for token in tokens])
        names = NAMES if clear else {"ROOT": "root"}
        yield [
            Word(token.text, token.idx, token.idx + len(token), head, names.get(relation, relation), token.pos_)
            for token, head, relation in zip(tokens, heads, relations)
        ]


def _as_one_sentence(document: "spacy.tokens.Doc") -> "spacy.tokens.Doc":
    """Prevent the parser from splitting: relations are counted within one sentence of the corpus."""
    for token in document:
        token.is_sent_start = token.i == 0
    return document


def describe(model: "spacy.Language") -> dict[str, str]:
    """The origin of the trees: engine, version, model, command."""
    name = f"{model.meta['lang']}_{model.meta['name']}"
    converted = ", ClearNLP trees restructured to UD" if "dobj" in model.get_pipe("parser").labels else ""
    return {
        "engine": "spacy",
        "version": spacy.__version__,
        "model": f"{name} {model.meta['version']}{converted}",
        "command": f'spacy.load("{name}", exclude=["ner"]), one sentence per text',
    }


def _raise_objects_of_prepositions(heads: list[int], relations: list[str], tags: list[str]) -> None:
    """`X -prep-> in -pobj-> Y` becomes `X -obl-> Y -case-> in` (nmod under a noun), innermost first."""
    for position in reversed(range(len(heads))):
        if relations[position] in PREPOSITIONS and (objects := _children(heads, relations, position, "pobj")):
            above = heads[position]
            _swap(heads, relations, position, objects[0], "case")
            relations[objects[0]] = "nmod" if above and tags[above - 1] in NOMINAL else "obl"


def _raise_predicates(heads: list[int], relations: list[str], lemmas: list[str]) -> None:
    """`is -attr-> P` becomes `P -cop-> is`; in "there is X", X is the subject and nothing moves."""
    for position, lemma in enumerate(lemmas):
        if lemma != "be":
            continue
        if _children(heads, relations, position, "expl"):
            for child in _children(heads, relations, position, "attr"):
                relations[child] = "nsubj"
            continue
        for name in PREDICATES:
            if children := _children(heads, relations, position, name):
                _swap(heads, relations, position, children[0], "cop")
                break


def _children(heads: list[int], relations: list[str], position: int, relation: str) -> list[int]:
    return [child for child, head in enumerate(heads) if head == position + 1 and relations[child] == relation]


def _swap(heads: list[int], relations: list[str], upper: int, lower: int, relation: str) -> None:
    """Swap `lower` with its head `upper`, which becomes its dependent; `lower` takes over the other children."""
    heads[lower], relations[lower] = heads[upper], relations[upper]
    heads[:] = [lower + 1 if head == upper + 1 else head for head in heads]
    heads[upper], relations[upper] = lower + 1, relation
