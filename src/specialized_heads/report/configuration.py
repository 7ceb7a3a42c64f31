"""Stage: write the validated configuration of an experiment, with all defaults.

Given to Snakemake as `--configfile`, it reproduces the same results.
"""

import yaml

from specialized_heads.experiment.configuration import load
from specialized_heads.stage import Files, command, write_file

HEAD = "# The configuration of this experiment with all defaults. To repeat it: `snakemake --configfile`.\n"


@command("output")
def main(files: Files) -> None:
    values = load(files.settings, origin="settings").model_dump(mode="json")
    text = HEAD + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)
    write_file(files.output, text)
