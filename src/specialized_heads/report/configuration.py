"""Stage: the configuration of an experiment as it was validated, every default written out.

Snakemake can run the file again (`--configfile`), with the same results.
"""

import yaml

from specialized_heads.config import load
from specialized_heads.stage import arguments, atomic, run

HEAD = "# The configuration of this experiment, every default written out: give it to `snakemake --configfile`.\n"


def main() -> None:
    files = arguments(__doc__, files=("output",))
    values = load(files.settings, origin="settings").model_dump(mode="json")
    text = HEAD + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)
    with atomic(files.output) as temporary:
        temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(main)
