"""What an experiment makes: its models, the settings and inputs of every stage, and the figures and tables of the report.

The rules in `workflow/rules/` ask these modules; nothing here knows Snakemake. Functions take the experiment and the wildcards
of a job by name, and ignore wildcards that they do not need.
"""
