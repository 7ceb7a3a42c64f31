# The default experiment: config.yaml in the working directory, else the project's own. Files are read strictly here, the default one
# before Snakemake reads it, so that even invalid YAML is an error with a line number.

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

SOURCE = f"{workflow.basedir}/src"
sys.path.insert(0, SOURCE)

from specialized_heads.config.file import read
from specialized_heads.stage import UserError, one_line

DEFAULT = "config.yaml" if Path("config.yaml").is_file() else f"{workflow.basedir}/config.yaml"
CONFIGURED = [os.path.relpath(file) for file in workflow.configfiles or [DEFAULT]]
try:
    for file in CONFIGURED:
        read(Path(file))
except UserError as error:
    raise WorkflowError(one_line(error)) from None
