# The whole study, from parallel text to every figure and table. `config.yaml` is the default experiment.

from snakemake.utils import min_version

min_version("9.19")


include: "workflow/rules/configuration.smk"


# An experiment given with --configfile replaces the default one instead of being merged into it.
if not workflow.configfiles:

    configfile: DEFAULT


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/download.smk"
include: "workflow/rules/packages.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/prune.smk"
include: "workflow/rules/retrain.smk"
include: "workflow/rules/ablate.smk"
include: "workflow/rules/classification.smk"
include: "workflow/rules/compare.smk"
include: "workflow/rules/score.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/parse.smk"
include: "workflow/rules/heads.smk"
include: "workflow/rules/view.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        everything(experiment),
