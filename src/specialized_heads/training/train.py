"""Stage: train a model from random initialisation: the baseline, or a pruned configuration from
scratch.

With `--like`, the model has the heads of another model, layer by layer, and learns them from
scratch (table 2). With `evenly`, it has the same number of heads per attention type, spread evenly
over the layers. Data and training are the same for all models; each draws its own initial weights,
order of the text and dropout.

With `--checkpoints`, the weights after the updates `moments` (`ablation.moments`,
`heads.checkpoints`) are also written, to one file, as `update{n}/{parameter}`; `checkpoint` makes
one of them a model of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specialized_heads import stage
from specialized_heads.experiment.sections import Model, Training, Vocabulary
from specialized_heads.model.architecture import KINDS, Architecture
from specialized_heads.model.checkpoint import (
    architecture_of,
    assemble,
    read_tensors,
    save,
    write_tensors,
)
from specialized_heads.model.transformer import Network, Transformer, initialise
from specialized_heads.training.loop import Plan, load_data, train
from specialized_heads.training.state import check, distributed, read_checkpoint


def spread_evenly(architecture: Architecture) -> Architecture:
    """Spread the heads of each attention type over its layers so that layers differ by one head at
    most.

    Lower layers get the extra heads if the number does not divide evenly. Heads are renumbered from
    0.
    """
    spread = {}
    for kind in KINDS:
        layers = getattr(architecture, kind)
        share, extra = divmod(sum(map(len, layers)), len(layers))
        spread[kind] = tuple(tuple(range(share + (layer < extra))) for layer in range(len(layers)))
    return replace(architecture, **spread)


def train_and_save(
    model: Network,
    training: Training,
    files: stage.Files,
    *,
    seed: int,
    device: str,
    moments: Sequence[int] = (),
    **described: Any,
) -> None:
    """Train the parameters that require gradients; write the model to `output`, and its weights at
    `moments` to `checkpoints`.

    Args:
        model: with its initial weights.
        training: settings of the loop.
        files: of the stage, with its settings: train, dev (read), output, records, checkpoints
            (written), state.
        seed, device, moments: of the stage.
        described: more for the model's description than the settings of the stage.
    """
    plan = Plan(seed=seed, checkpoints=tuple(moments), **training.model_dump())
    data = load_data(files.train, files.dev)
    with distributed(device, state=files.state) as (context, device_):
        run = {"state": files.state, "records": files.records, "context": context}
        used = train(model.to(device_), plan, data, **run)
        if context.is_main:
            described = files.settings | {"matmul_precision": used} | described
            described |= {"data_hash": data.hash}
            check(files.state)
            save(model, files.output, training=described)
            if getattr(files, "checkpoints", None):
                tensors = {
                    f"update{n}/{name}": weight
                    for n in moments
                    for name, weight in read_checkpoint(files.state, n).items()
                }
                write_tensors(files.checkpoints, tensors)


class CheckpointSettings(stage.Section):
    update: int


@stage.command("baseline", "checkpoints", "output", settings=CheckpointSettings)
def checkpoint(files: stage.Files, settings: CheckpointSettings) -> None:
    prefix, stored = f"update{settings.update}/", read_tensors(files.checkpoints)
    names = [name for name in stored if name.startswith(prefix)]
    weights = {name.removeprefix(prefix): stored[name] for name in names}
    described = {"weights": files.checkpoints, "like": files.baseline}
    model = assemble(architecture_of(files.baseline), weights, **described)
    training = stage.read_json(files.baseline.with_suffix(".json"))["training"]
    save(model, files.output, training={**training, "moment": settings.update})


class Settings(stage.Section):
    seed: int
    vocabulary: Vocabulary
    model: Model
    training: Training
    device: str
    evenly: bool = False  # only with `--like`
    moments: list[int] = []  # updates, ascending; only with `--checkpoints`


FILES = ("train", "dev", "output", "records", "state")


@stage.command(*FILES, optional=("like", "checkpoints"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    if files.like:
        architecture = architecture_of(files.like)
    else:
        sizes = settings.model.model_dump(exclude={"dropout"})
        source, target = settings.vocabulary.source, settings.vocabulary.target
        sizes |= {"source_vocabulary": source, "target_vocabulary": target}
        architecture = Architecture.full(**sizes)
    if settings.evenly:
        architecture = spread_evenly(architecture)
    model = Transformer(architecture, dropout=settings.model.dropout)
    initialise(model, seed=settings.seed)
    job = settings.model_dump(include={"seed", "device", "moments"})
    train_and_save(model, settings.training, files, **job)
