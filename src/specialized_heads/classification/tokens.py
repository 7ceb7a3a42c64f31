"""Stage: one set of a task as token ids, with the labels as target side."""

from specialized_heads import stage
from specialized_heads.classification.examples import SCHEMA
from specialized_heads.corpus.wordpiece import read_vocabulary, write_inputs
from specialized_heads.tables import read_table


class Settings(stage.Section):
    longest: int  # subwords of an input


@stage.command("text", "vocabulary", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    table = read_table(files.text, schema=SCHEMA)
    columns = [table.column(name).to_pylist() for name in ("first", "second", "label")]
    write_inputs(files.output, read_vocabulary(files.vocabulary), *columns, longest=settings.longest)
    stage.log.info("%d examples", len(table))
