# Where the project is, and its experiment: config.yaml in the working directory, else the project's
# own. Files are read strictly here, with the files that they extend; the default one before
# Snakemake reads it, so that even invalid YAML is an error with a line number.

import os
import sys
import tarfile
import tempfile
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.sourcecache import HostingProviderFile
from snakemake.utils import update_config

# Text on the command lines of jobs could not be encoded.
if (encoding := sys.getfilesystemencoding()) != "utf-8":
    raise WorkflowError(
        f"the locale's encoding is {encoding}, not UTF-8; run `export PYTHONUTF8=1` and the same command again"
    )


def project_folder(here):
    """The project's folder, from that of this file. `workflow.basedir` is the importer's where the
    workflow is a module.

    Snakemake reads a workflow on a git host file by file; the stages need all of it, so a copy is
    made in .snakemake.
    """
    if not isinstance(here, HostingProviderFile):
        return os.path.abspath(os.path.join(here.get_path_or_uri(secret_free=True), "..", ".."))
    repository = here.hosted_repo.repo
    commit = repository.commit(here.ref).hexsha
    copy = Path(".snakemake", "specialized-heads", commit).absolute()
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=copy.parent) as temporary:
            archive, files = Path(temporary, "archive.tar"), Path(temporary, commit)
            repository.git.archive(commit, format="tar", output=str(archive))
            with tarfile.open(archive) as packed:
                packed.extractall(files, filter="data")
            try:
                files.rename(copy)
            except OSError:  # another job of this run was faster
                if not copy.exists():
                    raise
    return str(copy)


ROOT = project_folder(workflow.current_basedir)
SOURCE = f"{ROOT}/src"
sys.path.insert(0, SOURCE)

from specialized_heads.experiment.file import places, read, whole
from specialized_heads.stage import UserError, one_line

IMPORTED = not workflow.modifier.is_main_snakefile()
DEFAULT = "config.yaml" if Path("config.yaml").is_file() and not IMPORTED else f"{ROOT}/config.yaml"
# The importer's configuration files are its own.
GIVEN_CONFIG = config if IMPORTED else workflow.configfiles
FILES = [os.path.relpath(file) for file in workflow.configfiles or [DEFAULT]]
CONFIGURED = ["the module's config"] if IMPORTED else FILES
VALUES, PLACES = {}, {}
try:
    if IMPORTED:
        VALUES = whole(config, Path(CONFIGURED[0])) if config else read(Path(DEFAULT))
    else:
        for file in FILES:
            update_config(VALUES, read(Path(file)))
            PLACES |= places(Path(file))
except UserError as error:
    raise WorkflowError(one_line(error)) from None
if not IMPORTED and workflow.config_settings.config:
    CONFIGURED.append(f"with --config {' '.join(workflow.config_settings.config)}")
    update_config(VALUES, workflow.config_settings.config)
if len(CONFIGURED) > 1:
    PLACES = {}  # a line could be that of another file, or of a value that is replaced
