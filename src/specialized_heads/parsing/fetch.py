"""Stage fetch: download the Stanza models that an experiment needs, in one job before any corpus is parsed.

Parse jobs run concurrently, possibly on cluster nodes without a network; they only load models from disk. Models already on disk
are not downloaded again. The manifest lists each file of each model with its hash.
"""

from pydantic import Field

from specialized_heads.parsing import stanza_engine
from specialized_heads.stage import Files, Section, command, log, write_json


class Models(Section):
    """One pipeline: keys of `parser`, and the language of a corpus."""

    language: str
    directory: str | None
    package: str
    download: bool


class Settings(Section):
    models: list[Models] = Field(min_length=1)


@command("output", settings=Settings)
def main(args: Files, settings: Settings) -> None:
    """Write `--output`, a JSON list with one entry per pipeline."""
    manifest = []
    for wanted in settings.models:
        pipeline = stanza_engine.fetch(**wanted.model_dump())
        about = stanza_engine.describe(pipeline, package=wanted.package)
        manifest.append(about | {"sha256": stanza_engine.hashes(pipeline)})
        log.info("Stanza models for %r: %s", wanted.language, about["model"])
    write_json(args.output, manifest)
