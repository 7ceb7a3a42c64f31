"""Stage: read a BERT of another project with its vocabulary, to fine-tune it."""

from pathlib import Path

from specialized_heads import stage
from specialized_heads.corpus import wordpiece
from specialized_heads.exchange.bert import load_bert, read_vocabulary
from specialized_heads.model.checkpoint import save


class Settings(stage.Section):
    folder: str
    longest: int  # subwords of an input


@stage.command("output", "vocabulary", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    folder = Path(settings.folder)
    wordpiece.write_vocabulary(files.vocabulary, *read_vocabulary(folder))
    model = load_bert(folder, vocabulary=wordpiece.read_vocabulary(files.vocabulary))
    a = model.architecture
    if settings.longest > a.positions:
        raise stage.UserError(
            f"classification.max_length: {settings.longest} subwords, but {folder} has {a.positions} positions; set fewer"
        )
    save(model, files.output, training={"imported": folder.name})
    stage.log.info("%s: %d layers, %d heads", folder, len(a.encoder), sum(map(len, a.encoder)))
