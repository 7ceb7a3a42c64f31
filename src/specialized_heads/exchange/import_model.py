"""Stage: read a model of another project, or one exported by this one, with its tokenisers.

Accepted are folders in the format of Hugging Face transformers (M2M100, NLLB, MarianMT), those that `export` writes, and given
baselines.
"""

import os
from dataclasses import asdict
from pathlib import Path

from specialized_heads import stage
from specialized_heads.exchange import huggingface
from specialized_heads.exchange.given import VOCABULARIES, load_given
from specialized_heads.exchange.reading import CONFIG
from specialized_heads.exchange.tokenisers import Tokenisers, read_tokenisers
from specialized_heads.experiment.given import DESCRIPTION as GIVEN
from specialized_heads.export import DESCRIPTION, SOURCE, TARGET, WEIGHTS, check_files
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer


class Settings(stage.Section):
    folder: str
    source_tag: str | None = None
    target_tag: str | None = None


def read_model(
    folder: Path, *, source_tag: str | None = None, target_tag: str | None = None
) -> tuple[Transformer, Tokenisers]:
    """Read a model with its tokenisers; a `UserError` if a file is missing, damaged or does not fit the others."""
    if os.path.lexists(folder / CONFIG):
        theirs = huggingface.read_folder(folder)
        tokenisers = read_tokenisers(folder, theirs.config, source_tag=source_tag, target_tag=target_tag)
        return huggingface.convert_model(theirs, tokenisers.tokens), tokenisers
    if source_tag or target_tag:
        raise stage.UserError(f"{folder}: only a model in the format of transformers has language tags; leave them out")
    if (folder / DESCRIPTION).is_file():
        card = check_files(folder)
        model = load(folder / WEIGHTS)
        source, target = ((folder / name).read_bytes() for name in (SOURCE, TARGET))
        return model, Tokenisers(source, target, model.architecture.tokens, card.preprocess)
    if (folder / GIVEN).is_file():
        given, model = load_given(folder)
        source, target = ((folder / name).read_bytes() for name in VOCABULARIES)
        return model, Tokenisers(source, target, model.architecture.tokens, given.settings["vocabulary"]["preprocess"])
    said = f"{CONFIG} with weights and tokeniser as transformers saves them, or be a folder that this project exported"
    raise stage.UserError(f"{folder}: no model; it must hold {said}")


@stage.command("output", "source-model", "target-model", "special", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    folder = Path(settings.folder)
    model, tokenisers = read_model(folder, source_tag=settings.source_tag, target_tag=settings.target_tag)
    if tokenisers.preprocess != "none":
        raise stage.UserError(
            f"{folder}: the model reads lower-case Moses tokens, but experiments give imported models raw text; analyse it with "
            "`specialized-heads analyse`, or train it in the experiment (vocabulary.preprocess: paper)"
        )
    stage.write_file(files.source_model, tokenisers.source)
    stage.write_file(files.target_model, tokenisers.target)
    stage.write_json(files.special, asdict(tokenisers.tokens))
    save(model, files.output, training={"imported": folder.name})
    a = model.architecture
    numbers = (len(a.encoder), len(a.decoder), sum(map(len, a.encoder)), a.head_width)
    stage.log.info("%s: %d + %d layers, %d encoder heads of width %d", folder, *numbers)
