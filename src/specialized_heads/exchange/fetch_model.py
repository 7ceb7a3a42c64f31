"""Stage: fetch a model from the Hugging Face hub, once for all corpora that import it.

Weights are fetched as safetensors; a pickle is fetched only if there is nothing else, for `convert` to read. The card says which
commit was fetched, the licence, and the hash of each file. `HF_ENDPOINT` names another server; `HF_TOKEN` gives access to private
models.
"""

import os
from pathlib import Path

from specialized_heads import stage
from specialized_heads.exchange import reading

WANTED = ("README.md", "*.json", "*.spm", "*.model", "vocab.txt")


class Settings(stage.Section):
    name: str
    revision: str | None


@stage.command("output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    try:
        with stage.optional("models"):
            from huggingface_hub import HfApi, snapshot_download
    except stage.UserError as error:
        raise stage.UserError(f"{settings.name}: there is no such folder; to fetch it from the hub: {error}") from None
    folder: Path = files.output.parent
    server = os.environ.get("HF_ENDPOINT")
    try:
        info = HfApi(endpoint=server).model_info(settings.name, revision=settings.revision)
        names = [file.rfilename for file in info.siblings or ()]
        weights = {reading.WEIGHTS, reading.INDEX} & set(names)
        pickles = {reading.PICKLE, reading.PICKLE_INDEX} & set(names)
        if not weights and not pickles:
            raise stage.UserError(f"{settings.name}: has weights neither as safetensors nor as pickles of PyTorch")
        if not weights:  # what was converted from pickles, perhaps of another commit
            for path in folder.glob("model*.safetensors*"):
                path.unlink()
        patterns = [*WANTED, *(weights or pickles), "model-*.safetensors" if weights else "pytorch_model-*.bin"]
        stage.log.info("fetching %s at %s", settings.name, info.sha)
        snapshot_download(settings.name, revision=info.sha, local_dir=folder, allow_patterns=patterns, endpoint=server)
    except stage.UserError:
        raise
    except Exception as error:  # of its HTTP library too, which differs between versions
        reason = stage.one_line(str(error).strip().split("\n")[0])
        said = f"there is no such folder, and it cannot be fetched from {server or 'the hub'} ({reason})"
        remedy = "run again to resume, or fetch it elsewhere and name its folder in the configuration"
        raise stage.UserError(f"{settings.name}: {said}; {remedy}") from None
    fetched = [path for path in sorted(folder.iterdir()) if path.is_file() and path != files.output]
    card = {
        "name": settings.name,
        "commit": info.sha,
        "license": getattr(info.card_data, "license", None),
        "sha256": {path.name: stage.file_hash(path) for path in fetched},
    }
    stage.write_json(files.output, card)
