"""Stage: export one model as a self-contained folder: weights, description, both vocabularies and a
README.

A pruned model has a smaller weight file. The description records the languages, the preprocessing
and the beam search. Loading a folder executes none of its content and checks everything against the
description before allocating memory, so a folder from an unknown source can be wrong but not
harmful. Given baselines (`exchange.given`) load in the same way.

    from specialized_heads.exchange.export import load_exported
    translator = load_exported("path/to/folder")
    translator("A sentence.")
"""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic
from sentencepiece import SentencePieceProcessor

from specialized_heads import __version__, stage
from specialized_heads.corpus.normalise import normalise
from specialized_heads.corpus.preprocess import Mode, apply, undo
from specialized_heads.corpus.tokens import BOS, EOS, OURS, PAD, UNKNOWN, encode_ids
from specialized_heads.exchange import given
from specialized_heads.experiment.given import DESCRIPTION as GIVEN
from specialized_heads.experiment.given import read_given
from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.checkpoint import architecture_from, load_on, shapes
from specialized_heads.model.decoding import translate_all
from specialized_heads.model.devices import choose_device
from specialized_heads.model.transformer import Transformer

FORMAT = 1
FORMER = {"entities": True, "length_penalty": 1.0}  # keys of earlier descriptions
WEIGHTS, DESCRIPTION, SOURCE, TARGET = (
    "model.safetensors",
    "model.json",
    "source.model",
    "target.model",
)
LONGEST = 256  # subwords of a sentence; position encodings have seen few beyond
WORD_START = "\u2581"  # first character of a subword that starts a word

README = """# {name}

This model translates from {source} to {target}. It was made by specialized-heads {version} and
needs only that package:

```
echo "A sentence." | specialized-heads translate PATH/OF/THIS/FOLDER
```

or in Python:

```python
from specialized_heads.exchange.export import load_exported
translator = load_exported("PATH/OF/THIS/FOLDER")
translator("A sentence.")
```

`specialized-heads describe PATH/OF/THIS/FOLDER` shows the heads left, the size of the model
and its scores; `model.json` has the details. The weights are in `model.safetensors`, the
vocabularies in `source.model` and `target.model` (SentencePiece).
"""


class Settings(stage.Section):
    """The part of the description that does not come from the model's own files."""

    experiment: str
    corpus: str
    model: str
    seed: int
    source_language: str
    target_language: str
    preprocess: Mode
    decoding: Decoding


class Scores(stage.Section):
    """Scores on the test set; see `evaluation.score`."""

    bleu: float
    bleu_low: float
    bleu_high: float
    chrf: float
    p_value: float | None  # None: the baseline itself
    sentences: int
    signature: str


class Card(Settings):
    """The description of an exported model."""

    format: Literal[1]
    version: str  # of the package that exported it
    architecture: Architecture
    parameters: int
    bytes: int  # of the weight file
    scores: Scores | None  # None: a given baseline
    data_hash: str  # of the training and development data
    sha256: dict[str, str]  # of the other files


@dataclass(frozen=True)
class Translator:
    """Translates text: preprocessing, vocabularies, model and postprocessing."""

    card: Card
    model: Transformer
    source: SentencePieceProcessor
    target: SentencePieceProcessor
    decoding: Decoding

    def __call__(self, text: str | list[str]) -> str | list[str]:
        """Translate a text or a list of texts.

        Texts are normalised as in training; an empty one stays empty. A text of more than `LONGEST`
        subwords is translated in parts, split between words if possible, and a warning is logged.
        """
        if isinstance(text, str):
            return self([text])[0]
        clean = self._clean(text)
        tags = self.model.architecture.tokens.source_tags
        parts = [[[*tags, *part] for part in self._parts(ids)] for ids in self._encode(clean)]
        for pieces, line in zip(parts, clean, strict=True):
            if len(pieces) > 1:
                number = sum(map(len, pieces))
                stage.log.warning(
                    "%d subwords are translated in %d parts: %.40s...", number, len(pieces), line
                )
        sources = [ids for pieces in parts for ids in pieces]
        outputs = iter(translate_all(self.model, sources, **self.decoding.model_dump()))
        raw = [
            " ".join(self.target.decode(next(outputs)).replace("\n", " ") for _ in pieces)
            for pieces in parts
        ]
        return undo(raw, language=self.card.target_language, mode=self.card.preprocess)

    def encode(self, texts: list[str]) -> list[list[int]]:
        """The ids that the model reads for each text, tags included, without EOS."""
        return [
            [*self.model.architecture.tokens.source_tags, *ids]
            for ids in self._encode(self._clean(texts))
        ]

    def _clean(self, texts: list[str]) -> list[str]:
        return [normalise(text)[0] for text in texts]

    def _encode(self, texts: list[str]) -> list[list[int]]:
        prepared = apply(texts, language=self.card.source_language, mode=self.card.preprocess)
        known = partial(self.model.architecture.tokens.known, side="source")
        return [
            known(np.array(ids, np.int64)).tolist() for ids in encode_ids(prepared, self.source)
        ]

    def _parts(self, ids: list[int]) -> list[list[int]]:
        """Split ids into pieces of at most `LONGEST`, before the start of a word if possible; no
        ids give no pieces."""
        parts = []
        while len(ids) > LONGEST:
            starts = (
                i
                for i in range(LONGEST, 0, -1)
                if self.source.id_to_piece(ids[i]).startswith(WORD_START)
            )
            end = next(starts, LONGEST)
            parts.append(ids[:end])
            ids = ids[end:]
        return [*parts, ids] if ids else parts


def load_exported(
    folder: Path | str, *, device: str = "auto", beam: int | None = None
) -> Translator:
    """Read an exported model or a given baseline; a `UserError` if a file is missing, damaged, or
    not as described.

    `device`: auto, cpu or cuda. `beam`: hypotheses per sentence; None: as in the experiment.
    """
    folder = Path(folder)
    if _is_given(folder):
        card, vocabularies = read_card(folder), given.VOCABULARIES
        model = given.load_given(folder)[1].to(choose_device(device))
    else:
        card, vocabularies = check_files(folder), (SOURCE, TARGET)
        model = load_on(folder / WEIGHTS, device)
    return Translator(
        card=card,
        model=model,
        source=_vocabulary(folder / vocabularies[0], card.architecture, "source"),
        target=_vocabulary(folder / vocabularies[1], card.architecture, "target"),
        decoding=card.decoding if beam is None else card.decoding.model_copy(update={"beam": beam}),
    )


def check_files(folder: Path) -> Card:
    """The description of an exported model; a `UserError` if a file is missing or not the one that
    it describes."""
    card = read_card(folder)
    for name in (WEIGHTS, SOURCE, TARGET):
        path = folder / name
        if not path.is_file():
            raise stage.UserError(f"{path}: no such file; copy or export the model again")
        if stage.file_hash(path) != card.sha256.get(name):
            raise stage.UserError(
                f"{path}: not the file that {DESCRIPTION} describes; copy or export the model again"
            )
    return card


def read_card(folder: Path) -> Card:
    """Read and validate the description of an exported model or a given baseline; anything else is
    a `UserError`."""
    path = folder / DESCRIPTION
    if not folder.is_dir():
        raise stage.UserError(f"{folder}: no such folder")
    if _is_given(folder):
        return _given_card(folder)
    if not path.exists():
        said = (
            "no such file; name the folder of a model that the rule `export` made, or of one "
            "given baseline"
        )
        raise stage.UserError(
            f"{path}: {said} (`specialized-heads analyse` reads published models)"
        )
    if path.is_file() and path.stat().st_size > 1_000_000:
        raise stage.UserError(f"{path}: too large for the description of a model")
    try:
        return Card.model_validate(_without_former(stage.read_json(path)))
    except pydantic.ValidationError as error:
        problem = (
            f"not the description of an exported model ({stage.first_line(error)}); the rule "
            f"`export` makes one"
        )
        raise stage.UserError(f"{path}: {problem}") from None


def _without_former(values: Any) -> Any:
    """Leave out the keys in `FORMER` that say what holds now."""
    if not isinstance(values, dict):
        return values
    return {
        key: _without_former(value)
        for key, value in values.items()
        if key not in FORMER or FORMER[key] != value
    }


def _is_given(folder: Path) -> bool:
    return not (folder / DESCRIPTION).exists() and (folder / GIVEN).is_file()


def _given_card(folder: Path) -> Card:
    """The description of a given baseline, which has no scores."""
    about = read_given(folder)
    try:
        architecture = architecture_from(about.architecture)
        return Card(
            format=FORMAT,
            version=about.version,
            experiment="",
            corpus=folder.resolve().parent.name,
            model="baseline",
            seed=about.settings["seed"],
            source_language=about.corpus["source_language"],
            target_language=about.corpus["target_language"],
            preprocess=about.settings["vocabulary"]["preprocess"],
            decoding=Decoding(),
            architecture=architecture,
            parameters=sum(shape.numel() for shape in shapes(architecture).values()),
            bytes=(folder / given.WEIGHTS).stat().st_size,
            scores=None,
            data_hash=about.data_hash,
            sha256=about.sha256,
        )
    except (KeyError, TypeError, ValueError, OSError) as error:
        problem = f"{folder / GIVEN}: not the description of this folder ({stage.one_line(error)})"
        raise stage.UserError(f"{problem}; restore the folder from the repository") from None


def _vocabulary(
    path: Path, sizes: Architecture, side: Literal["source", "target"]
) -> SentencePieceProcessor:
    try:
        bpe = SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        raise stage.UserError(
            f"{path}: not a SentencePiece model; copy or export the model again"
        ) from None
    size, tokens = getattr(sizes, f"{side}_vocabulary"), sizes.tokens
    fits = (
        bpe.get_piece_size() >= size
        if getattr(tokens, f"{side}_size")
        else bpe.get_piece_size() == size
    )
    if tokens == OURS:  # a vocabulary made here
        fits &= (bpe.pad_id(), bpe.unk_id(), bpe.bos_id(), bpe.eos_id()) == (PAD, UNKNOWN, BOS, EOS)
    if not fits or bpe.unk_id() != tokens.unknown:
        raise stage.UserError(
            f"{path}: not the vocabulary of this model; copy or export the model again"
        )
    return bpe


@stage.command("model", "source-model", "target-model", "score", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    folder = files.output.parent
    folder.mkdir(parents=True, exist_ok=True)
    for origin, name in (
        (files.model, WEIGHTS),
        (files.source_model, SOURCE),
        (files.target_model, TARGET),
    ):
        with stage.atomic(folder / name) as temporary:
            shutil.copyfile(origin, temporary)
    description, score = (
        stage.read_json(files.model.with_suffix(".json")),
        stage.read_json(files.score),
    )
    card = Card(
        format=FORMAT,
        version=__version__,
        **settings.model_dump(),
        architecture=description["architecture"],
        parameters=description["parameters"],
        bytes=(folder / WEIGHTS).stat().st_size,
        scores=Scores.model_validate({name: score[name] for name in Scores.model_fields}),
        data_hash=description["training"]["data_hash"],
        sha256={name: stage.file_hash(folder / name) for name in (WEIGHTS, SOURCE, TARGET)},
    )
    stage.write_json(folder / DESCRIPTION, card.model_dump())
    text = README.format(
        name=f"{settings.model} of {settings.corpus}",
        source=settings.source_language,
        target=settings.target_language,
        version=__version__,
    )
    stage.write_file(folder / "README.md", text)
    load_exported(folder, device="cpu")  # fail here rather than at the user who gets the folder
    stage.log.info("%d parameters, %.1f MB", card.parameters, card.bytes / 1e6)
