# Helpers of pruning: settings of the controls, what criteria rank, and which figures and tables are made.


def moments(corpus):
    """The updates of the baseline's training whose weights are kept: none where nothing is pruned."""
    return experiment.for_corpus(corpus).ablation.moments if experiment.corpora[corpus].prune else []


def regularised_settings(wildcards):
    """The gates and penalty of pruning, with the baseline's training for as many updates as `pruning` says."""
    training = json.loads(retraining_settings(wildcards))["training"]
    # The weights at the end belong to the gates at the end: no average over earlier ones.
    training |= {"average": 1, "log_every": gate_log_every(training["updates"], training["log_every"])}
    gates = json.loads(pruning_settings(wildcards))
    # λ takes the same share of the updates to grow.
    of_pruning = experiment.for_corpus(wildcards.corpus).pruning.updates
    gates["penalty_warmup"] = round(gates["penalty_warmup"] * training["updates"] / of_pruning)
    return json.dumps(gates | {"training": training})


def gated_corpora():
    """The corpora that gates prune: a corpus may be pruned, and have no λ and no number of heads to prune to."""
    return [corpus for corpus in corpora(pruned=True) if models(corpus, "pruned")]


def pruning_targets():
    """Figures and tables of pruning with gates, for the corpora that are pruned."""
    gated = gated_corpora()
    if not gated:
        return []
    results = f"results/{experiment.experiment}"
    files = [f"{results}/{corpus}/dead_heads.json" for corpus in gated]
    files += [f"{results}/figures/gates.pdf", f"{results}/tables/dead_heads.md"]
    if any(models(corpus, "soft", "count", "regularised") for corpus in gated):
        files.append(f"{results}/tables/controls.md")
    return files


def pruned_models(corpus):
    """The models that gates pruned, each with its seed, in the order of `scored_models`."""
    return [(name, seed) for seed in experiment.seeds for name in models(corpus, "pruned")]


# The figure of gates shows one corpus; where no corpus has any gates, it says so.
GATED = (gated_corpora() or PRIMARY)[0]


def gates_settings(wildcards):
    """The title of the corpus whose gates the figure shows, and what each of its models was pruned to."""
    described = [describe_model(name, SEED) for name in models(GATED, "pruned")]
    rows = [{key: row[key] for key in ("scope", "lam", "asked")} for row in described]
    return json.dumps({"title": title(GATED), "rows": rows}, ensure_ascii=False)


def compared():
    """The corpora on which criteria are compared."""
    return [corpus for corpus in corpora(pruned=True) if models(corpus, "cut")]


def comparison_targets():
    """Figures and tables of the comparison, where criteria are given."""
    results = f"results/{experiment.experiment}"
    names = [f"{results}/figures/{name}.pdf" for name in ("criteria", "agreement")]
    names += [f"{results}/tables/{name}.md" for name in ("criteria", "agreement")]
    return names if compared() else []


def ranking(wildcards):
    """The table whose heads a criterion ranks; none for gates and random choice."""
    folder = {"importance": "importance", "relevance": "heads", "confidence": "heads"}.get(wildcards.criterion)
    path = "results/{experiment}/{corpus}/{folder}/baseline/seed{seed}.parquet"
    return path.format(folder=folder, **wildcards) if folder else []


def ranking_column(corpus, criterion):
    """The column of that table."""
    if criterion in ("gates", "random"):
        return None
    normalised = criterion == "importance" and experiment.for_corpus(corpus).ablation.normalise
    return "importance_normalised" if normalised else criterion


def gates_model(wildcards):
    """The pruned model whose heads criterion `gates` keeps."""
    path = "results/{experiment}/{corpus}/models/pruned/{scope}_heads{heads}/seed{seed}/model.json"
    return path.format(**wildcards) if wildcards.criterion == "gates" else []


def cut_models(corpus):
    """The cut models of a corpus, as their names say what they are."""
    rows = [describe_model(name, None) for name in models(corpus, "cut")]
    return [{"criterion": row["criterion"], "scope": row["scope"], "heads": row["asked"]} for row in rows]


def ranked_gates(corpus):
    """By scope, the lower middle one of the head counts: its gates are the ones to rank."""
    counts = {scope: sorted(head_counts(corpus, scope)) for scope in ("encoder", "all")}
    ranked = "gates" in experiment.for_corpus(corpus).comparison.criteria
    return {scope: found[(len(found) - 1) // 2] for scope, found in counts.items() if found and ranked}


def of_criteria(path, *criteria):
    """Input function: a table of the baseline, where one of these criteria is compared."""
    return lambda w: path if set(criteria) & set(experiment.for_corpus(w.corpus).comparison.criteria) else []
