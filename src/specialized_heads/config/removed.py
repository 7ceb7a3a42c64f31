"""Keys and values of former configurations, and what to do with each."""

KEYS = {  # by section and key
    "heads.similarity_sentences": "the figure `similarity` was removed; remove the key",
}
VALUES = {
    "debian": "this source was removed; put the pairs into a file and set kind: local",
    "pypi": "this source was removed; put the pairs into a file and set kind: local",
    "spacy": "this engine was removed; set engine: stanza, or write the trees to a CoNLL-U file and set engine: conllu",
}
