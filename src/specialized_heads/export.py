"""Stage: one model as a folder that needs nothing else: weights, description, both vocabularies, and a word on how to use it.

The weights are those of the model as it is, so a pruned one is a smaller file. The description says how text gets in and
out: languages, preprocessing, beam search. Reading a folder executes nothing that is in it, and checks everything against
the description before memory is taken, so a folder from elsewhere can be wrong but not harmful.

    from specialized_heads.export import load_exported
    translator = load_exported("path/of/the/folder")
    translator("A sentence.")
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pydantic
import torch
from safetensors import SafetensorError, safe_open
from sentencepiece import SentencePieceProcessor

from specialized_heads import __version__, stage
from specialized_heads.corpus.normalise import normalise
from specialized_heads.corpus.preprocess import Mode, apply, undo
from specialized_heads.corpus.vocabulary import BOS, EOS, PAD, UNKNOWN
from specialized_heads.evaluation.translate import TOKENS
from specialized_heads.model.checkpoint import Sizes, load
from specialized_heads.model.decoding import translate
from specialized_heads.model.devices import choose_device
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import Architecture, Transformer
from specialized_heads.sections import Decoding
from specialized_heads.stage import Section, UserError
from specialized_heads.training.batching import cut

FORMAT = 1
WEIGHTS, DESCRIPTION, SOURCE, TARGET = "model.safetensors", "model.json", "source.model", "target.model"
LONGEST = 256  # subwords; a longer text is far beyond what a model was trained on
BEGIN = "\u2581"  # with which a subword begins that begins a word

README = """# {name}

A model that translates from {source} to {target}, made by specialized-heads {version}. It needs that package and nothing else:

```
echo "A sentence." | specialized-heads translate PATH/OF/THIS/FOLDER
```

or in Python:

```python
from specialized_heads.export import load_exported
translator = load_exported("PATH/OF/THIS/FOLDER")
translator("A sentence.")
```

`specialized-heads describe PATH/OF/THIS/FOLDER` says which heads are left, how large the model is and how well it translates;
`{description}` has the same and more. The weights are in `{weights}` (safetensors), the vocabularies in `{source_model}` and
`{target_model}` (SentencePiece).
"""


class Settings(Section):
    """What the description says besides what the model's own files do."""

    experiment: str
    corpus: str
    model: str
    seed: int
    source_language: str
    target_language: str
    entities: bool = False  # whether HTML entities are decoded; older descriptions do not say
    preprocess: Mode
    decoding: Decoding


class Scores(Section):
    """How well the model translates the test set; see `evaluation.score`."""

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
    version: str  # of the package that wrote it
    architecture: Sizes
    parameters: int
    bytes: int  # of the weights' file
    scores: Scores
    data_hash: str  # of the text it was trained and evaluated on
    sha256: dict[str, str]  # of the other files


@dataclass(frozen=True)
class Translator:
    """A model with everything around it, from text to text."""

    card: Card
    model: Transformer
    source: SentencePieceProcessor
    target: SentencePieceProcessor
    decoding: Decoding

    def __call__(self, text: str | list[str]) -> str | list[str]:
        """Translate a text, or texts.

        Texts are normalised as those of training, and one of white space alone stays empty. One of more than `LONGEST`
        subwords is translated in parts, cut between words where it has any, and a warning says so.
        """
        if isinstance(text, str):
            return self([text])[0]
        normal, _ = normalise(pa.array(text, pa.string()), entities=self.card.entities)
        clean = normal.to_pylist()
        prepared = apply(clean, language=self.card.source_language, mode=self.card.preprocess)
        parts = [self._parts(ids) for ids in self.source.encode(prepared, out_type=int)]
        for ids, one in zip(parts, clean, strict=True):
            if len(ids) > 1:
                number = sum(map(len, ids))
                stage.log.warning("%d subwords are translated in %d parts: %.40s...", number, len(ids), one)
        translated = iter(self._translate([part for ids in parts for part in ids]))
        raw = [" ".join(next(translated) for _ in ids) for ids in parts]
        return undo(raw, language=self.card.target_language, mode=self.card.preprocess)

    def _parts(self, ids: list[int]) -> list[list[int]]:
        """Ids in pieces of at most `LONGEST`, each but the first beginning with a word if it can; none for no ids."""
        parts = []
        while len(ids) > LONGEST:
            begins = [place for place in range(1, LONGEST + 1) if self.source.id_to_piece(ids[place]).startswith(BEGIN)]
            end = begins[-1] if begins else LONGEST
            parts.append(ids[:end])
            ids = ids[end:]
        return [*parts, ids] if ids else parts

    def _translate(self, sources: list[list[int]]) -> list[str]:
        """Translate subwords, in batches as the pipeline makes them."""
        lengths = np.array([len(ids) + 1 for ids in sources], dtype=int)
        order = np.argsort(lengths, kind="stable")
        translations = [""] * len(sources)
        for batch in cut(lengths[order], order, TOKENS):
            outputs = translate(self.model, [sources[i] for i in batch], **self.decoding.model_dump())
            for sentence, ids in zip(batch, outputs, strict=True):
                translations[sentence] = self.target.decode(ids).replace("\n", " ")
        return translations


def load_exported(folder: Path | str, *, device: str = "auto", beam: int | None = None) -> Translator:
    """Read an exported model.

    Args:
        folder: as `export` wrote it.
        device: auto, cpu or cuda.
        beam: hypotheses per sentence; None: as in the experiment.

    Raises:
        UserError: a file is missing, damaged, or not what the description says.
    """
    folder = Path(folder)
    card = read_card(folder)
    for name in (WEIGHTS, SOURCE, TARGET):
        path = folder / name
        if not path.is_file():
            raise UserError(f"{path}: no such file; copy or export the model again")
        if stage.file_hash(path) != card.sha256.get(name):
            raise UserError(f"{path}: not the file that {DESCRIPTION} describes; copy or export the model again")
    _check_shapes(folder / WEIGHTS, card.architecture)
    prepare_cpu()
    return Translator(
        card=card,
        model=load(folder / WEIGHTS, device=choose_device(device)),
        source=_vocabulary(folder / SOURCE, card.architecture.source_vocabulary),
        target=_vocabulary(folder / TARGET, card.architecture.target_vocabulary),
        decoding=card.decoding if beam is None else card.decoding.model_copy(update={"beam": beam}),
    )


def read_card(folder: Path) -> Card:
    """Read and check the description of an exported model; `UserError` where it is none."""
    path = folder / DESCRIPTION
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    if path.is_file() and path.stat().st_size > 1_000_000:
        raise UserError(f"{path}: too large for the description of a model")
    values = stage.read_json(path)
    if not isinstance(values, dict) or "format" not in values:
        raise UserError(f"{path}: not the description of an exported model; the rule `export` makes one")
    if values["format"] != FORMAT:
        raise UserError(f"{path}: format {values['format']!r} is not {FORMAT}, which this version of the package reads")
    try:
        return Card.model_validate(values)
    except pydantic.ValidationError as error:
        raise UserError(f"{path}: {stage.first_line(error)}") from None


def _check_shapes(path: Path, sizes: Sizes) -> None:
    """Compare the shapes in the file's header with those of the architecture, before either takes memory."""
    try:
        with torch.device("meta"):
            model = Transformer(Architecture.from_json(sizes.model_dump()), dropout=0.0)
        expected = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
        with safe_open(path, "pt") as tensors:
            found = {name: tensors.get_slice(name).get_shape() for name in tensors.keys()}  # noqa: SIM118
    except (RuntimeError, IndexError, OSError, SafetensorError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"{path}: cannot read the weights ({reason}); copy or export the model again") from None
    if found != expected:
        raise UserError(
            f"{path}: the weights are not those of the architecture in {DESCRIPTION}; export the model again"
        )


def _vocabulary(path: Path, size: int) -> SentencePieceProcessor:
    try:
        bpe = SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        raise UserError(f"{path}: not a SentencePiece model; copy or export the model again") from None
    special = bpe.pad_id(), bpe.unk_id(), bpe.bos_id(), bpe.eos_id()
    if bpe.get_piece_size() != size or special != (PAD, UNKNOWN, BOS, EOS):
        raise UserError(f"{path}: not the vocabulary of this model; copy or export the model again")
    return bpe


def main() -> None:
    files = stage.arguments(__doc__, files=("model", "source-model", "target-model", "score", "output"))
    settings = Settings.model_validate(files.settings)
    folder = files.output.parent
    folder.mkdir(parents=True, exist_ok=True)
    for origin, name in ((files.model, WEIGHTS), (files.source_model, SOURCE), (files.target_model, TARGET)):
        with stage.atomic(folder / name) as temporary:
            shutil.copyfile(origin, temporary)
    description, score = stage.read_json(files.model.with_suffix(".json")), stage.read_json(files.score)
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
        description=DESCRIPTION,
        weights=WEIGHTS,
        source_model=SOURCE,
        target_model=TARGET,
    )
    with stage.atomic(folder / "README.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    load_exported(folder, device="cpu")  # what cannot be read again should not be handed on
    stage.log.info("%d parameters, %.1f MB", card.parameters, card.bytes / 1e6)


if __name__ == "__main__":
    stage.run(main)
