"""Stage debian_index: the package indices of the system's sources, shared by all experiments, as apt's state in a folder."""

from specialized_heads.corpus.debian.apt import Apt
from specialized_heads.stage import arguments, log, run


def main() -> None:
    """Write `--index` (a folder)."""
    files = arguments(__doc__, files=["index"])
    Apt(files.index).update(languages=[])
    log.info("debian_index: %s", files.index)


if __name__ == "__main__":
    run(main)
