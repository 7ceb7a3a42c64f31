"""Stage fetch: the models of Stanza that the corpora of an experiment need, fetched in one job before any of them is parsed.

Parse jobs run at the same time, on a cluster where there may be no network; they load what this stage has left on disk and
never look further. What is there already is not fetched again. The manifest names each file of each model with its hash.
"""

from pydantic import Field

from specialized_heads.parsing import stanza_engine
from specialized_heads.stage import Section, arguments, log, run, write_json


class Models(Section):
    """One pipeline: keys of `parser`, and the language of a corpus."""

    language: str
    directory: str | None
    package: str
    download: bool


class Settings(Section):
    """Every pipeline that some corpus needs, once."""

    models: list[Models] = Field(min_length=1)


def main() -> None:
    """Write `--output`, a JSON list with one entry per pipeline."""
    args = arguments(__doc__, files=("output",))
    settings = Settings.model_validate(args.settings)
    manifest = []
    for wanted in settings.models:
        pipeline = stanza_engine.fetch(**wanted.model_dump())
        about = stanza_engine.describe(pipeline, package=wanted.package)
        manifest.append(about | {"sha256": stanza_engine.hashes(pipeline)})
        log.info("Stanza models for %r: %s", wanted.language, about["model"])
    write_json(args.output, manifest)


if __name__ == "__main__":
    run(main)
