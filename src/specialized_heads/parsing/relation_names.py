"""Relations of Stanford Dependencies that differ from Universal Dependencies in name only."""

# Stanford Dependencies (de Marneffe and Manning 2008; CoreNLP, ClearNLP) -> Universal Dependencies, version 2
STANFORD = {
    "dobj": "obj",
    "nsubjpass": "nsubj:pass",
    "csubjpass": "csubj:pass",
    "auxpass": "aux:pass",
    "rcmod": "acl:relcl",
    "relcl": "acl:relcl",
    "poss": "nmod:poss",
    "prt": "compound:prt",
    "nn": "compound",
    "num": "nummod",
}


def canonical(relation: str) -> str:
    """The name of a relation in Universal Dependencies."""
    return STANFORD.get(relation, relation)
