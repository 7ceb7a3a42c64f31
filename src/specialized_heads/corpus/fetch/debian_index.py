"""Stage debian_index: the package indices of the system's sources, as apt's state in a folder, from which packages are fetched.

All experiments share it, whatever their languages; descriptions have a stage of their own (`debian_descriptions`).
"""

from specialized_heads.corpus.fetch.apt import Apt
from specialized_heads.stage import arguments, log, run


def main() -> None:
    """Write `--index` (a folder)."""
    files = arguments(__doc__, files=["index"])
    Apt(files.index).update(languages=[])
    log.info("debian_index: %s", files.index)


if __name__ == "__main__":
    run(main)
