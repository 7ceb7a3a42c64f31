"""Keys and values of former configurations, and what to do with each."""

KEYS = {  # by section and key
    "heads.similarity_sentences": "the figure `similarity` was removed; remove the key",
    "heads.relevance_absorbed": "the stabiliser's share is always returned; remove the key",
    "heads.relevance_bias": "biases take no share of relevance; remove the key",
}
VALUES = {
    "debian": "this source was removed; put the pairs into a file and set kind: local",
    "pypi": "this source was removed; put the pairs into a file and set kind: local",
    "spacy": "this engine was removed; set engine: stanza, or write the trees to a CoNLL-U file and set engine: conllu",
}
