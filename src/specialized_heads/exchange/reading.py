"""Read the folder of a published model with transformers: safetensors only, nothing in the folder
is executed.

transformers knows the formats: defaults of configurations, old names of tensors, tied and sharded
weights, added tokens. It does not say which file is damaged, fills missing tensors with random
numbers and allocates whatever a configuration states. So the files are checked before it reads
them: each can be parsed, and the tensors have the shapes that the configuration states.
"""

import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from sentencepiece import SentencePieceProcessor

from specialized_heads.stage import UserError, one_line, optional

CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
# M2M100 and NLLB have one for both sides
MARIAN, SHARED = ("source.spm", "target.spm"), "sentencepiece.bpe.model"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
WORDPIECE = "vocab.txt"  # of BERT
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
JSON = (CONFIG, VOCABULARY, TARGET_VOCABULARY, TOKENIZER, TOKENIZER_CONFIG)
JSON += ("generation_config.json", "special_tokens_map.json", "added_tokens.json")
LOCAL = {"local_files_only": True, "trust_remote_code": False}
POINTER = b"version https://git-lfs"
FLOATING = "use a model with weights in floating point"
FLOATS = ("F64", "F32", "F16", "BF16")  # types of tensors that are weights as they are


def library() -> Any:
    """transformers, without its messages and progress bars."""
    with optional("models"):
        import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def read(
    path: Path,
    kind: str,
    parse: Callable[[Path], Any] = Path,
    *,
    missing: str = "fetch it from the same place",
) -> Any:
    """What `parse` makes of a file; whatever goes wrong is a `UserError`, and `missing` says what
    to do without the file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"{path}: not a file; replace it by {kind}")
        with open(path, "rb") as stream:
            if stream.read(len(POINTER)) == POINTER:
                remedy = "run `git lfs pull` in its folder"
                raise UserError(f"{path}: only a pointer of Git LFS; {remedy}")
        return parse(path)
    except (UserError, PermissionError):
        raise
    except FileNotFoundError:
        said = f"no such file; {missing}"
        if path.is_symlink():
            said = "a link to a file that does not exist; fetch the model again"
        raise UserError(f"{path}: {said}") from None
    except OSError as error:
        said = f"cannot be read ({error.strerror or error}); fetch it again"
        raise UserError(f"{path}: {said}") from None
    except Exception as error:  # of many kinds: parsers meet whatever bytes there are
        raise UserError(f"{path}: not {kind} ({error}); fetch it again") from None


def read_object(path: Path) -> dict[str, Any]:
    stored = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(stored, dict):
        raise ValueError("its content is no object")
    return stored


def read_index(path: Path) -> set[Any]:
    return set(read_object(path)["weight_map"].values())


def read_pieces(path: Path) -> SentencePieceProcessor:
    return SentencePieceProcessor(str(path))


CHECKED = dict.fromkeys(JSON, ("JSON of a model", read_object))
CHECKED |= dict.fromkeys((*MARIAN, SHARED), ("a SentencePiece model", read_pieces))
CHECKED |= {WORDPIECE: ("text in UTF-8", partial(Path.read_text, encoding="utf-8"))}


def translated(name: str, *, patterns: Sequence[tuple[str, str]]) -> str:
    """The name that another project gives to a parameter, such as
    `encoder.0.attention.query_bias`."""
    for pattern, theirs in patterns:
        name = re.sub(pattern, theirs, name)
    return name


@contextmanager
def explained(folder: Path, what: str) -> Iterator[None]:
    """Turn whatever transformers raises within this block into one line."""
    try:
        yield
    except (UserError, PermissionError):
        raise
    except Exception as error:  # of many kinds, some with lines of advice
        said = one_line(" ".join(str(error).split("\n\n")[0].split())) or type(error).__name__
        raise UserError(
            f"{folder}: transformers cannot read its {what} ({said}); fetch the model again"
        ) from None


def read_config(folder: Path, kinds: Collection[str]) -> Any:
    """The configuration of a model of one of these kinds; a `UserError` if it or another file is
    damaged."""
    for name, how in CHECKED.items():
        if os.path.lexists(folder / name):
            read(folder / name, *how)
    path = folder / CONFIG
    values = read(path, "the configuration of a model", read_object)
    if (kind := values.get("model_type")) not in kinds:
        only = " or ".join(map(repr, kinds))
        raise UserError(f"{path}: model_type {kind!r} is not supported, only {only}")
    if values.get("quantization_config"):
        raise UserError(f"{path}: its weights are quantised; {FLOATING}")
    with explained(folder, CONFIG):
        return library().AutoConfig.from_pretrained(folder, **LOCAL)


def read_tokenizer(folder: Path, **options: Any) -> Any:
    with explained(folder, "tokeniser"):
        return library().AutoTokenizer.from_pretrained(folder, **LOCAL, **options)


def read_headers(folder: Path) -> dict[str, tuple[Path, tuple[int, ...]]]:
    """The file and the shape of each tensor; a `UserError` if the weights are pickled, quantised or
    damaged."""
    present = {path.name for path in folder.iterdir()}
    files = {WEIGHTS}
    if WEIGHTS not in present and INDEX in present:
        files = read(folder / INDEX, "an index of weights", read_index)
        if any(Path(str(name)).name != name for name in files):
            said = "names a file outside its folder; fetch the model again"
            raise UserError(f"{folder / INDEX}: {said}")
    elif WEIGHTS not in present and (pickles := sorted({PICKLE, PICKLE_INDEX} & present)):
        said = "pickled weights are not loaded, since that can execute code"
        remedy = f"convert them with `specialized-heads convert {folder}` and run again"
        raise UserError(f"{folder / pickles[0]}: {said}; {remedy}")
    shapes: dict[str, tuple[Path, tuple[int, ...]]] = {}
    for path in (folder / name for name in sorted(files)):
        for name, (dtype, shape) in read(path, "complete weights as safetensors", _header).items():
            if dtype not in FLOATS and name.endswith(("weight", "bias")):
                raise UserError(f"{path}: {name} is quantised ({dtype}); {FLOATING}")
            shapes[name] = (path, shape)
    return shapes


def _header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    with safe_open(path, framework="pt") as file:
        parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}


def read_model(
    folder: Path, config: Any, auto: str, *, layers: dict[str, int], optional: str = "(?!)"
) -> Any:
    """A model in float32 with all its weights, by an automatic class of transformers such as
    `AutoModel`.

    `layers`: what the names of layers begin with and their number by the configuration, such as
    {"encoder.layers.": 6}. Tensors whose names match `optional` may be missing; `drawn` of the
    model has the names of those that are, which transformers fills with random numbers. A
    `UserError` if the weights do not fit the configuration.
    """
    stored, fit = read_headers(folder), f"fetch them and {CONFIG} from the same place"
    for prefix, number in layers.items():
        numbers = {
            int(found[1])
            for name in stored
            if (found := re.search(rf"\b{re.escape(prefix)}(\d+)\.", name))
        }
        if len(numbers) != number:
            said = f"its weights have {len(numbers)} layers {prefix}*, but {number} by {CONFIG}"
            raise UserError(f"{folder}: {said}; {fit}")
    cls = getattr(library(), auto)
    with explained(folder, "weights"):
        with torch.device("meta"):
            shell = cls.from_config(config, trust_remote_code=False)
        prefix = f"{shell.base_model_prefix}."
        for name, tensor in shell.state_dict().items():
            # Files with the encoder alone have no prefix.
            names = (name, name.removeprefix(prefix), prefix + name)
            path, shape = next(
                (stored[each] for each in names if each in stored), (folder, tuple(tensor.shape))
            )
            if shape != tuple(tensor.shape):
                said = f"{name} has the shape {list(shape)}, but {list(tensor.shape)} by {CONFIG}"
                raise UserError(f"{path}: {said}; {fit}")
        options = LOCAL | {"use_safetensors": True, "dtype": torch.float32}
        model, loaded = cls.from_pretrained(
            folder, config=config, output_loading_info=True, **options
        )
    if missing := sorted(name for name in loaded["missing_keys"] if not re.search(optional, name)):
        raise UserError(f"{folder}: its weights have no tensor {missing[0]}; {fit}")
    for name, tensor in model.state_dict().items():
        if not torch.isfinite(tensor).all():
            path, _ = stored.get(name, (folder, ()))
            said = f"{name} contains NaN or infinity; fetch it again, or use another model"
            raise UserError(f"{path}: {said}")
    model.drawn = loaded["missing_keys"]
    return model.eval()


def convert(folder: Path) -> Path:
    """Write safetensors beside pickled weights, one file or several with an index, and return their
    path; those that are there are never replaced.

    PyTorch's restricted unpickler, which transformers uses, accepts tensors and plain containers
    and executes nothing.
    """
    whole = (folder / PICKLE).exists() or not (folder / PICKLE_INDEX).exists()
    path = folder / (PICKLE if whole else PICKLE_INDEX)
    read(path, "weights that PyTorch saved", missing="there is nothing to convert")
    if there := next((each for each in (WEIGHTS, INDEX) if (folder / each).exists()), None):
        said = f"is there already, and may differ from {path.name}; move it away to convert again"
        raise UserError(f"{folder / there}: {said}")
    config = read_config(folder, ("marian", "m2m_100", "bert"))
    name = (config.architectures or ["AutoModel"])[0]
    if (cls := getattr(library(), name, None)) is None:
        said = f"transformers has no class {name}; set architectures to one that it has"
        raise UserError(f"{folder / CONFIG}: {said}")
    options = LOCAL | {"use_safetensors": False, "dtype": "auto", "output_loading_info": True}
    try:
        model, loaded = cls.from_pretrained(folder, config=config, **options)
    except Exception:  # of many kinds; some advise to read it without the restrictions
        said = "not the weights of this model as PyTorch saves them; fetch it again"
        raise UserError(f"{path}: {said}") from None
    if missing := loaded["missing_keys"]:
        raise UserError(f"{path}: has no tensor {min(missing)}; fetch it and {CONFIG} together")
    with tempfile.TemporaryDirectory(dir=folder) as name:
        model.save_pretrained(name)
        for written in sorted(Path(name).glob("*.safetensors*")):  # the index last
            written.replace(folder / written.name)
    return folder / (INDEX if written.name == INDEX else WEIGHTS)
