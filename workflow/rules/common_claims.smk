# Helpers of the claims: which tables they are judged by.


def claimed_heads():
    """The models whose heads claims are about, as (corpus, model, seed): baselines, and what gates pruned."""
    kinds = ("baseline", "pruned")
    return [(name, model, seed) for name in corpora() for model in models(name, *kinds) for seed in experiment.seeds]


def paper_corpus(name):
    """The corpus of the paper that this one is, by source and languages; "" for any other."""
    corpus = experiment.corpora[name]
    same = (corpus.source_language, corpus.target_language) == ("en", "ru")
    return corpus.source.kind if same and corpus.source.kind in ("wmt", "opensubtitles") else ""


def claims_settings(wildcards):
    """What each file is of, and the thresholds that the configuration gives functions."""
    described_corpora = [
        {"title": title(name), "stands_for": paper_corpus(name), "pruned": experiment.corpora[name].prune}
        | experiment.for_corpus(name).heads.model_dump(include={"least_arcs"})
        for name in corpora()
    ]
    keys = ("kind", "scope", "lam", "asked", "seed")
    rows = [(name, describe_model(model, seed)) for name, model, seed in claimed_heads()]
    return json.dumps(
        {
            "corpora": described_corpora,
            "heads": [{"corpus": title(name)} | {key: row[key] for key in keys} for name, row in rows],
            "single": described(SINGLE_LAYERS),
            "second": described(SINGLE_LAYERS),
            "systematic": described(MOMENTS),
        },
        ensure_ascii=False,
    )
