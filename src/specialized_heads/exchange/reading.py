"""Read the folder of a published model with transformers: safetensors only, nothing in the folder
is executed.

transformers knows the formats: defaults of configurations, old names of tensors, tied and sharded
weights, added tokens. It does not say which file is damaged, fills missing tensors with random
numbers and allocates whatever a configuration states. So the files are checked before it reads
them: each can be parsed, and the tensors have the shapes that the configuration states.
"""

import json
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from sentencepiece import SentencePieceProcessor

from specialized_heads.stage import UserError, one_line, optional

CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
# M2M100 and NLLB have one for both sides
MARIAN, SHARED = ("source.spm", "target.spm"), "sentencepiece.bpe.model"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
JSON = (
    CONFIG,
    "generation_config.json",
    VOCABULARY,
    TARGET_VOCABULARY,
    TOKENIZER,
    TOKENIZER_CONFIG,
)
JSON += ("special_tokens_map.json", "added_tokens.json")
POINTER = b"version https://git-lfs"
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
    parse: Callable[[Path], Any],
    kind: str,
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
                raise UserError(
                    f"{path}: only a pointer of Git LFS; run `git lfs pull` in its folder"
                )
        return parse(path)
    except PermissionError:
        raise
    except FileNotFoundError:
        link = "a link to a file that does not exist; fetch the model again"
        raise UserError(
            f"{path}: {link if path.is_symlink() else f'no such file; {missing}'}"
        ) from None
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror or error}); fetch it again"
        ) from None
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RuntimeError,
        SafetensorError,
    ) as error:
        raise UserError(f"{path}: not {kind} ({error}); fetch it again") from None


def read_object(path: Path) -> dict[str, Any]:
    stored = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(stored, dict):
        raise ValueError("its content is no object")
    return stored


CHECKED = {
    **dict.fromkeys(JSON, (read_object, "JSON of a model")),
    **dict.fromkeys(
        (*MARIAN, SHARED), (lambda path: SentencePieceProcessor(str(path)), "a SentencePiece model")
    ),
    "vocab.txt": (lambda path: path.read_text(encoding="utf-8"), "text in UTF-8"),
}


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
    for name, (parse, kind) in CHECKED.items():
        if (folder / name).is_symlink() or (folder / name).exists():
            read(folder / name, parse, kind)
    values = read(folder / CONFIG, read_object, "the configuration of a model")
    if (kind := values.get("model_type")) not in kinds:
        raise UserError(
            f"{folder / CONFIG}: model_type {kind!r} is not supported, only "
            f"{' or '.join(map(repr, kinds))}"
        )
    if values.get("quantization_config"):
        raise UserError(
            f"{folder / CONFIG}: its weights are quantised; use a model with weights in floating "
            f"point"
        )
    with explained(folder, CONFIG):
        return library().AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )


def read_tokenizer(folder: Path, **options: Any) -> Any:
    with explained(folder, "tokeniser"):
        return library().AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, **options
        )


def read_headers(folder: Path) -> dict[str, tuple[Path, tuple[int, ...]]]:
    """The file and the shape of each tensor; a `UserError` if the weights are pickled, quantised or
    damaged."""
    present = {path.name for path in folder.iterdir()}
    files = {WEIGHTS}
    if WEIGHTS not in present and INDEX in present:
        files = set(
            read(
                folder / INDEX,
                lambda path: read_object(path)["weight_map"].values(),
                "an index of weights",
            )
        )
        if any(Path(str(name)).name != name for name in files):
            raise UserError(
                f"{folder / INDEX}: names a file outside its folder; fetch the model again"
            )
    elif WEIGHTS not in present and (pickles := sorted({PICKLE, PICKLE_INDEX} & present)):
        remedy = f"convert them with `specialized-heads convert {folder}` and run again"
        raise UserError(
            f"{folder / pickles[0]}: pickled weights are not loaded, since that can execute code; "
            f"{remedy}"
        )
    shapes: dict[str, tuple[Path, tuple[int, ...]]] = {}
    for path in (folder / name for name in sorted(files)):
        for name, (dtype, shape) in read(path, _header, "complete weights as safetensors").items():
            if dtype not in FLOATS and name.endswith(("weight", "bias")):
                said = f"{name} is quantised ({dtype}); use a model with weights in floating point"
                raise UserError(f"{path}: {said}")
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
            # weights of the encoder alone have no prefix
            names = (name, name.removeprefix(prefix), prefix + name)
            path, shape = next(
                (stored[each] for each in names if each in stored), (folder, tuple(tensor.shape))
            )
            if shape != tuple(tensor.shape):
                said = f"{name} has the shape {list(shape)}, but {list(tensor.shape)} by {CONFIG}"
                raise UserError(f"{path}: {said}; {fit}")
        options = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
        model, loaded = cls.from_pretrained(
            folder, config=config, dtype=torch.float32, output_loading_info=True, **options
        )
    if missing := sorted(name for name in loaded["missing_keys"] if not re.search(optional, name)):
        raise UserError(f"{folder}: its weights have no tensor {missing[0]}; {fit}")
    for name, tensor in model.state_dict().items():
        if not torch.isfinite(tensor).all():
            path = stored[name][0] if name in stored else folder
            raise UserError(
                f"{path}: {name} contains NaN or infinity; fetch it again, or use another model"
            )
    model.drawn = loaded["missing_keys"]
    return model.eval()


def convert(folder: Path) -> Path:
    """Write safetensors beside pickled weights, one file or several with an index, and return their
    path.

    PyTorch's restricted unpickler, which transformers uses, accepts tensors and plain containers
    and executes nothing.
    """
    names = [name for name in (PICKLE, PICKLE_INDEX) if (folder / name).exists()] or [PICKLE]
    path = folder / names[0]
    read(
        path, lambda path: path, "weights that PyTorch saved", missing="there is nothing to convert"
    )
    config = read_config(folder, ("marian", "m2m_100", "bert"))
    cls = getattr(library(), (config.architectures or ["AutoModel"])[0])
    options = {
        "local_files_only": True,
        "use_safetensors": False,
        "trust_remote_code": False,
        "dtype": "auto",
    }
    try:
        model, loaded = cls.from_pretrained(
            folder, config=config, output_loading_info=True, **options
        )
    except Exception:  # of many kinds; some advise to read it without the restrictions
        raise UserError(
            f"{path}: not the weights of this model as PyTorch saves them; fetch it again"
        ) from None
    if loaded["missing_keys"]:
        raise UserError(
            f"{path}: has no tensor {min(loaded['missing_keys'])}; fetch it and {CONFIG} together"
        )
    with tempfile.TemporaryDirectory(dir=folder) as name:
        model.save_pretrained(name)
        for written in sorted(Path(name).glob("*.safetensors*")):  # the index last
            written.replace(folder / written.name)
    return folder / (INDEX if written.name == INDEX else WEIGHTS)
