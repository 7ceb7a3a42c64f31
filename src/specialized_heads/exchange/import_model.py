"""Stages: read a model of another project, or one exported by this one, with its tokenisers; before
that, `fetch` it from a hub.

Accepted are folders in the format of Hugging Face transformers (M2M100, NLLB, MarianMT), exported
models, and given baselines.
"""

import os
from dataclasses import asdict
from pathlib import Path

from specialized_heads import stage
from specialized_heads.exchange import huggingface, reading
from specialized_heads.exchange.folder import DESCRIPTION, SOURCE, TARGET, WEIGHTS, check_files
from specialized_heads.exchange.reading import CONFIG
from specialized_heads.exchange.tokenisers import Tokenisers, read_tokenisers
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer

WANTED = ("README.md", "*.json", "*.spm", "*.model", "vocab.txt")


class Fetched(stage.Section):
    folder: str  # in the folder of downloads, which a module's prefix does not move
    model: str
    revision: str | None


@stage.command("output", settings=Fetched, shared=True)
def fetch(files: stage.Files, settings: Fetched) -> None:
    """Fetch a model from the Hugging Face hub, once for all corpora that import it.

    Weights are fetched as safetensors; a pickle is fetched only if there is nothing else, for
    `convert` to read. The card says which commit was fetched, the licence, and the hash of each
    file. `HF_ENDPOINT` names another server; `HF_TOKEN` gives access to private models.
    """
    folder, server = Path(settings.folder), os.environ.get("HF_ENDPOINT")
    absent = f"{settings.model}: there is no such folder"
    try:
        with stage.optional("models"):
            from huggingface_hub import HfApi, snapshot_download
    except stage.UserError as error:
        raise stage.UserError(f"{absent}; to fetch it from the hub: {error}") from None
    try:
        info = HfApi(endpoint=server).model_info(settings.model, revision=settings.revision)
        names = [file.rfilename for file in info.siblings or ()]
        weights = {reading.WEIGHTS, reading.INDEX} & set(names)
        pickles = {reading.PICKLE, reading.PICKLE_INDEX} & set(names)
        if not weights and not pickles:
            said = "has weights neither as safetensors nor as pickles of PyTorch"
            raise stage.UserError(f"{settings.model}: {said}")
        if not weights:  # what was converted from pickles, perhaps of another commit
            for path in folder.glob("model*.safetensors*"):
                path.unlink()
        parts = "model-*.safetensors" if weights else "pytorch_model-*.bin"
        wanted = [*WANTED, *(weights or pickles), parts]
        stage.log.info("fetching %s at %s", settings.model, info.sha)
        options = {"local_dir": folder, "allow_patterns": wanted, "endpoint": server}
        snapshot_download(settings.model, revision=info.sha, **options)
    except stage.UserError:
        raise
    except Exception as error:  # of its HTTP library too, which differs between versions
        reason = stage.one_line(str(error).strip().split("\n")[0])
        said = f"and it cannot be fetched from {server or 'the hub'} ({reason})"
        remedy = "run again to resume, or fetch it elsewhere and configure its folder"
        raise stage.UserError(f"{absent}, {said}; {remedy}") from None
    fetched = [path for path in sorted(folder.iterdir()) if path.is_file() and path != files.output]
    card = {
        "name": settings.model,
        "commit": info.sha,
        "license": getattr(info.card_data, "license", None),
        "sha256": {path.name: stage.file_hash(path) for path in fetched},
    }
    stage.write_json(files.output, card)


class Settings(stage.Section):
    folder: str
    source_tag: str | None = None
    target_tag: str | None = None


def read_model(
    folder: Path, *, source_tag: str | None = None, target_tag: str | None = None
) -> tuple[Transformer, Tokenisers]:
    """Read a model with its tokenisers; a `UserError` if a file is missing, damaged or does not fit
    the others."""
    if os.path.lexists(folder / CONFIG):
        theirs = huggingface.read_folder(folder)
        tokenisers = read_tokenisers(
            folder, theirs.config, source_tag=source_tag, target_tag=target_tag
        )
        return huggingface.convert_model(theirs, tokenisers.tokens), tokenisers
    if source_tag or target_tag:
        said = "only a model in the format of transformers has language tags; leave them out"
        raise stage.UserError(f"{folder}: {said}")
    if (folder / DESCRIPTION).is_file():
        card = check_files(folder)
        model = load(folder / WEIGHTS)
        source, target = ((folder / name).read_bytes() for name in (SOURCE, TARGET))
        return model, Tokenisers(source, target, model.architecture.tokens, card.preprocess)
    said = f"{CONFIG} with weights and tokeniser as transformers saves them"
    said += ", or be a folder that this project exported"
    raise stage.UserError(f"{folder}: no model; it must hold {said}")


@stage.command("output", "source-model", "target-model", "special", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    folder = Path(settings.folder)
    model, tokenisers = read_model(
        folder, source_tag=settings.source_tag, target_tag=settings.target_tag
    )
    if tokenisers.preprocess != "none":
        said = "reads lower-case Moses tokens, but experiments give imported models raw text"
        remedy = "analyse it with `specialized-heads analyse`, or train it in the experiment"
        raise stage.UserError(f"{folder}: {said}; {remedy} (vocabulary.preprocess: paper)")
    stage.write_file(files.source_model, tokenisers.source)
    stage.write_file(files.target_model, tokenisers.target)
    stage.write_json(files.special, asdict(tokenisers.tokens))
    save(model, files.output, training={"imported": folder.name})
    a = model.architecture
    numbers = (len(a.encoder), len(a.decoder), sum(map(len, a.encoder)), a.head_width)
    stage.log.info("%s: %d + %d layers, %d encoder heads of width %d", folder, *numbers)
