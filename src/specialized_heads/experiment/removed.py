"""Keys and values of former configurations, and what holds now."""

KEYS = {  # by section and key
    "model.norm_epsilon": "ε of LayerNorm is 1e-6; imported models bring their own",
    "training.average": "the final weights are used",
    "training.average_every": "the final weights are used",
    "training.compile": "layers are not compiled",
    "pruning.gate_init": "log α starts at 2",
    "pruning.penalty_warmup": "λ is constant",
    "pruning.penalise": "λ multiplies the open heads",
    "pruning.soft": "the development loss with soft gates is in the table `models` (gates_loss_soft)",
    "ablation.second": "the second set is the development set",
    "ablation.step": "a tenth of the heads is removed in each step",
    "ablation.normalise": "importance is divided by its norm in the layer",
    "heads.positional_share": "0.9 of the argmaxes at one position make a head positional",
    "heads.least_arcs": "relations with fewer than 30 arcs are not certain",
    "heads.rare_share": "0.5 of the argmaxes on the least frequent token make a rare-words head",
    "heads.relevance_alpha": "alpha_beta has α = 0.5",
    "heads.relevance_epsilon": "epsilon has ε = 0.1",
    "downloads.attempts": "six attempts without a new byte end a download",
    "downloads.timeout": "an attempt ends after 60 seconds without a byte",
    "heads.similarity_sentences": "the figure `similarity` was removed",
    "heads.relevance_absorbed": "the stabiliser's share is always returned",
    "heads.relevance_bias": "biases take no share of relevance",
}
VALUES = {
    "debian": "this source was removed; put the pairs into a file and set kind: local",
    "pypi": "this source was removed; put the pairs into a file and set kind: local",
    "spacy": "this engine was removed; set engine: stanza, or write the trees to a CoNLL-U file and set engine: conllu",
}
