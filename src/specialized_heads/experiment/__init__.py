"""The experiment: every key of its configuration, and all that follows from it: names of models,
inputs and settings of stages, tables and figures.

The rules in `workflow/rules/` ask these modules; nothing here knows Snakemake. Functions that rules
call take the experiment and the wildcards of a job by name, and ignore wildcards that they do not
need.
"""
