# The whole study: from parallel text to every figure and table. `config.yaml` says on what, `workflow/rules/` how.

import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.19")

# An experiment given with --configfile replaces the default one instead of being merged into it.
if not workflow.overwrite_configfiles:

    configfile: "config.yaml"


sys.path.insert(0, str(Path(workflow.basedir) / "src"))


include: "workflow/rules/common.smk"
include: "workflow/rules/common_figures.smk"
include: "workflow/rules/common_pruning.smk"
include: "workflow/rules/common_ablation.smk"
include: "workflow/rules/common_heads.smk"
include: "workflow/rules/download.smk"
include: "workflow/rules/packages.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/prune.smk"
include: "workflow/rules/retrain.smk"
include: "workflow/rules/ablate.smk"
include: "workflow/rules/compare.smk"
include: "workflow/rules/score.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/parse.smk"
include: "workflow/rules/heads.smk"
include: "workflow/rules/view.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/figures_pruning.smk"
include: "workflow/rules/figures_ablation.smk"
include: "workflow/rules/figures_heads.smk"


rule all:
    default_target: True
    input:
        everything(),
