# The whole study: from parallel text to every figure and table. `config.yaml` says on what, `workflow/rules/` how.

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.19")
sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from specialized_heads.config_file import read
from specialized_heads.stage import UserError, one_line

# An experiment given with --configfile replaces the default one instead of being merged into it.
CONFIGURED = [os.path.relpath(path) for path in workflow.overwrite_configfiles] or ["config.yaml"]
try:
    for path in CONFIGURED:
        read(Path(path))
except UserError as error:
    raise WorkflowError(one_line(error)) from None

if not workflow.overwrite_configfiles:

    configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/common_figures.smk"
include: "workflow/rules/common_pruning.smk"
include: "workflow/rules/common_ablation.smk"
include: "workflow/rules/common_heads.smk"
include: "workflow/rules/common_summary.smk"
include: "workflow/rules/common_claims.smk"
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
include: "workflow/rules/summary.smk"
include: "workflow/rules/claims.smk"


rule all:
    default_target: True
    input:
        everything(),


onstart:
    # With its default limit, 100 jobs a second, Snakemake looks at all waiting jobs again a second after each look, and each job
    # that ends begins another such series: after some hundred jobs that keeps most of a core busy. A limit of your own stays.
    limiter = getattr(workflow.scheduler, "job_rate_limiter", None)  # not documented, so it may go
    if limiter and (limiter.max_jobs, limiter.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None
