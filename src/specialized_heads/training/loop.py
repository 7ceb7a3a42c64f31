"""The training loop, and what it is given; resumable: saves its state every minute.

The state (weights, optimisers, position in the data, log so far) lives in a directory of its own,
since Snakemake deletes the declared outputs of a failed job. A fingerprint of everything that
affects the result prevents resuming from a state of other settings or data. On the same CPU, a
resumed run ends with the same bytes as an uninterrupted one.

On a CPU, the micro-batches of an update run in parallel, one thread each: with small matrices most
of the time goes to work that threads within an operation do not speed up. Every micro-batch has its
own dropout seed and gradients are summed in a fixed order, so the result does not depend on the
number of threads. With n processes (`state`), each takes every n-th micro-batch. A background
thread prepares the batches of the next update.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.experiment.sections import Training
from specialized_heads.model.checkpoint import weights_of
from specialized_heads.model.devices import matmul_precision
from specialized_heads.model.functional import dropout_seed, prepare_cpu
from specialized_heads.model.gates import HardConcrete, draw, expected_open, probability_open
from specialized_heads.model.transformer import Network
from specialized_heads.training import state as run_state
from specialized_heads.training.batching import Batch, epoch_updates, joined
from specialized_heads.training.objective import Penalty, evaluate, objective_of
from specialized_heads.training.optimizers import learning_rate, make_optimizers
from specialized_heads.training.state import DistributedContext

SAVE_SECONDS = 60.0  # between two states, or more:
SAVE_SHARE = 0.02  # of the time goes into writing them at most


class Plan(Training):
    """Settings of one training."""

    seed: int  # order of the text, dropout
    gate_learning_rate: float = 0.0  # peak, for log α; follows the same schedule
    gate_seed: int | None = None  # noise of the gates; None: as `seed`
    checkpoints: tuple[int, ...] = ()  # updates whose weights are kept, see `state`


@dataclass(frozen=True)
class Data:
    """Token stores and a hash of their content."""

    train: TokenStore
    dev: TokenStore
    hash: str


def load_data(train: Path, dev: Path) -> Data:
    hashes = f"{stage.file_hash(train)} {stage.file_hash(dev)}"
    return Data(load_tokens(train), load_tokens(dev), hashes)


def train(
    model: Network,
    plan: Plan,
    data: Data,
    *,
    state: Path,
    records: Path,
    penalty: Penalty | None = None,
    context: DistributedContext | None = None,
) -> str:
    """Train the parameters of `model` that require gradients, in place.

    The loss is the cross-entropy per unit of the objective, such as a target token, plus λ·L_C with
    a penalty on the gates (section 6.1).

    Args:
        model: on its device, with its gates attached. Its initial weights are part of the
        fingerprint.
        state: directory of the resumable state.
        records: JSONL log: training and development loss, learning rate, P(open) of the gates.
        penalty: in its initial state; None: λ is 0.

    Returns:
        the precision of matrix products, fp32 or bf16.
    """
    context = context or DistributedContext()
    prepare_cpu()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    workers = threads if model.device.type == "cpu" else 1
    run = _Run(model, plan, data, state, penalty, workers=workers, context=context)
    run.resume()
    started = saved = time.monotonic()
    tokens_before, interval = run.tokens, SAVE_SECONDS
    model.train()
    run.working.train()
    log_file = records if context.is_main else Path(os.devnull)
    with stage.disk_errors(log_file), open(log_file, "w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(record) + "\n" for record in run.records)
        left = plan.updates - run.update
        for update in stage.progress(run.updates(), what="training", total=left, unit="update"):
            run.step(update)
            if run.update in plan.checkpoints or run.at_interval(plan.log_every):
                speed = (run.tokens - tokens_before) / (time.monotonic() - started)
                record = run.record()
                if context.is_main:
                    run_state.check(state)
                    stream.write(json.dumps(record) + "\n")
                    stream.flush()
                    line = _line(record, plan)
                    stage.log.info("%s, %.0f %s/s", line, speed, run.objective.unit)
                started, tokens_before = time.monotonic(), run.tokens
            before = time.monotonic()
            if context.is_main and before - saved > interval and run.update < plan.updates:
                run.save()
                saved = time.monotonic()
                interval = max(SAVE_SECONDS, (saved - before) / SAVE_SHARE)
        if context.is_main:
            os.fsync(stream.fileno())
            run.save()
    run.pool.shutdown()
    torch.set_num_threads(threads)
    model.eval()
    return run.matmul_precision


class _Parameter(NamedTuple):
    """A trained parameter: float32, which the optimiser updates, and what the loss is
    differentiated by."""

    name: str
    weight: Tensor
    narrow: Tensor  # the copy that matrix products use, or the weight itself


class _Update(NamedTuple):
    """One process's share of an update: place, units of all shares, numbered micro-batches."""

    epoch: int
    position: int
    units: int
    batches: list[tuple[int, Batch]]


class _Run:
    """A training run in progress: everything that must survive an interruption."""

    def __init__(
        self,
        model: Network,
        plan: Plan,
        data: Data,
        folder: Path,
        penalty: Penalty | None,
        *,
        workers: int,
        context: DistributedContext,
    ) -> None:
        self.model, self.plan, self.data = model, plan, data
        self.folder, self.context = folder, context
        self.pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        self.device, self.objective = model.device, objective_of(model)
        self.gates = [m.gate for m in model.attentions() if isinstance(m.gate, HardConcrete)]
        self.penalty = penalty if self.gates else None
        noise_seed = plan.seed if plan.gate_seed is None else plan.gate_seed
        self.gate_noise = torch.Generator().manual_seed(noise_seed)
        # Products use a narrow copy of the matrices, refreshed once per update; the weights stay in
        # float32.
        self.matmul_precision = matmul_precision(plan.precision, self.device)
        if self.matmul_precision != plan.precision:
            stage.log.info("this device has no bf16 instructions; matrix products run in float32")
        dtype = torch.bfloat16 if self.matmul_precision == "bf16" else torch.float32
        self.working = model if dtype == torch.float32 else model.in_precision(dtype)
        pairs = zip(model.named_parameters(), self.working.parameters(), strict=True)
        parameters = [_Parameter(name, weight, narrow) for (name, weight), narrow in pairs]
        self.trained = [p for p in parameters if p.weight.requires_grad and p.weight.numel()]
        # One block of memory holds all gradients and the loss, so one operation clears it or sums
        # it over processes.
        sizes = [p.weight.numel() for p in self.trained]
        self.gradient = torch.zeros(sum(sizes) + 1, device=self.device)
        *pieces, self.update_loss = self.gradient.split([*sizes, 1])
        for parameter, piece in zip(self.trained, pieces, strict=True):
            parameter.weight.grad = piece.view_as(parameter.weight)
        self.optimizers = make_optimizers(
            {p.name: p.weight for p in self.trained},
            plan,
            gate_learning_rate=plan.gate_learning_rate,
            peak=self.rate(min(plan.warmup, plan.updates)),
            precision=dtype,
            map=self.pool.map,
        )
        self.update = self.epoch = self.position = self.tokens = 0
        # Loss and tokens of all processes since the last record.
        self.loss, self.loss_tokens = torch.zeros(1, device=self.device), 0
        self.records: list[dict[str, Any]] = []
        self.fingerprint = self.initial_hash()

    def initial_hash(self) -> str:
        """Hash of all that affects the result; the number of processes divides the epochs."""
        described = [asdict(self.model.architecture), self.plan.model_dump(), repr(self.penalty)]
        described += [self.data.hash, self.model.dropout, self.context.size, self.matmul_precision]
        described += [self.device.type, torch.__version__, np.__version__]
        described.append(stage.code_hash("corpus", "model", "training"))
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        for name, parameter in self.model.named_parameters():
            digest.update(f"{name} {tuple(parameter.shape)} {parameter.requires_grad}".encode())
            digest.update(parameter.detach().cpu().numpy().tobytes())
        return digest.hexdigest()

    def rate(self, update: int) -> float:
        return learning_rate(update, self.plan, width=self.model.architecture.width)

    def updates(self) -> Iterator[_Update]:
        """This process's share of each update, from the current position to the end of the run."""
        with ThreadPoolExecutor(1) as ahead:
            upcoming = (ahead.submit(self.make, *place) for place in self.places())
            waiting = next(upcoming, None)
            while waiting is not None:
                update, waiting = waiting.result(), next(upcoming, None)
                yield update

    def places(self) -> Iterator[tuple[TokenStore, int, int, list[np.ndarray]]]:
        """Epoch data, epoch, position in the epoch and micro-batches of each remaining update."""
        plan, left = self.plan, self.plan.updates - self.update
        sizes = plan.model_dump(include={"batch_tokens", "micro_batch_tokens"})
        epoch, position = self.epoch, self.position
        while left:
            store, seeds = self.data.train, {"seed": plan.seed, "epoch": epoch}
            if plan.join > 1:
                store = joined(store, most=plan.join, **seeds)
            updates = epoch_updates(store, multiple=self.context.size, **seeds, **sizes)
            for number, sentences in list(enumerate(updates))[position:][:left]:
                yield store, epoch, number, sentences
                left -= 1
            epoch, position = epoch + 1, 0

    def make(
        self, store: TokenStore, epoch: int, position: int, sentences: list[np.ndarray]
    ) -> _Update:
        """Pad this process's micro-batches of an update."""
        units = sum(self.objective.units(store, chunk) for chunk in sentences)
        batches = []
        for index in range(self.context.rank, len(sentences), self.context.size):
            seed = _seed(self.plan.seed, epoch, position, index)
            batch = self.objective.batch(store, sentences[index], seed=seed)
            batches.append((index, batch.to(self.device)))
        return _Update(epoch, position, units, batches)

    def step(self, update: _Update) -> None:
        """Make one update from its micro-batches, normalised by their total number of units."""
        if self.gates:
            draw(self.gates, self.gate_noise)
        self.gradient.zero_()
        losses = self.pool.map(lambda pair: self.gradients(*pair, update.units), update.batches)
        for loss, gradients in losses:  # in a fixed order, whichever finishes first
            self.update_loss += loss
            for parameter, gradient in zip(self.trained, gradients, strict=True):
                parameter.weight.grad.add_(gradient)
            del gradients, gradient  # or two sets stay in memory
        self.context.all_reduce(self.gradient)
        self.loss += self.update_loss
        if self.penalty is not None:
            (self.penalty.lam * expected_open(self.gates)).backward()  # λ·L_C, section 6.1
        self.update, self.epoch, self.position = self.update + 1, update.epoch, update.position + 1
        rate = self.rate(self.update)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["relative"]
            optimizer.step()
        if self.penalty is not None:
            self.penalty.advance(self.update, self.gates)
        if self.context.is_main and self.update in self.plan.checkpoints:
            run_state.write_checkpoint(self.folder, self.update, weights_of(self.model))
        self.working.refresh(self.model)
        self.tokens += update.units
        self.loss_tokens += update.units

    def gradients(self, index: int, batch: Batch, units: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Summed cross-entropy of a micro-batch, and the gradients of its contribution to the mean
        over `units`."""
        with dropout_seed(_seed(self.plan.seed, self.update, index), self.device):
            smoothing = self.plan.label_smoothing
            loss = self.objective.loss(self.working, batch, label_smoothing=smoothing)
        inputs = [parameter.narrow for parameter in self.trained]
        return loss.detach(), torch.autograd.grad(loss / units, inputs, materialize_grads=True)

    def at_interval(self, *intervals: int) -> bool:
        """Whether an evaluation or the end is due, or one of these intervals."""
        every = (*intervals, self.plan.evaluate_every, self.plan.updates)
        return any(self.update % number == 0 for number in every)

    def record(self) -> dict[str, Any]:
        """Log entry: mean loss since the last one, gates, and the development loss where due."""
        record: dict[str, Any] = {
            "update": self.update,
            "epoch": self.epoch,
            "tokens": self.tokens,
            "learning_rate": self.rate(self.update),
            "loss": float(self.loss) / self.loss_tokens,
        }
        self.loss.zero_()
        self.loss_tokens = 0
        if self.at_interval() or self.update in self.plan.checkpoints:
            record["dev_loss"] = evaluate(self.model, self.data.dev)
        for loss in (record["loss"], record.get("dev_loss", 0.0)):
            if not math.isfinite(loss):
                raise stage.UserError(
                    f"update {self.update}: the loss is {loss}: training diverged; lower the "
                    f"learning rate and run again"
                )
        for attention in self.model.attentions():
            if isinstance(attention.gate, HardConcrete):
                name = f"{attention.kind}.{attention.layer + 1}"
                open_ = attention.gate.open_probability().detach()
                record.setdefault("open", {})[name] = [round(p, 4) for p in open_.tolist()]
        self.records.append(record)
        return record

    def needed(self) -> list[torch.optim.Optimizer]:
        """The optimisers, as long as an update is left that needs their moments."""
        return self.optimizers if self.update < self.plan.updates else []

    def save(self) -> None:
        state = {
            "fingerprint": self.fingerprint,
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.needed()],
            "gate_noise": self.gate_noise.get_state(),
            "update": self.update,
            "counters": [self.epoch, self.position, self.tokens, self.loss_tokens],
            "loss": self.loss,
            "penalty": {} if self.penalty is None else vars(self.penalty),
            "records": json.dumps(self.records),
        }
        run_state.write_state(self.folder, state)

    def resume(self) -> None:
        """Resume from the saved state if it belongs to this run; else empty the folder."""
        if self.context.is_main:
            run_state.claim(self.folder)
        state = run_state.read_state(
            self.folder, fingerprint=self.fingerprint, checkpoints=self.plan.checkpoints
        )
        which = "" if state is None else f"{state['update']} {float(state['loss'])}"
        if not self.context.agree(which):
            raise stage.UserError(
                f"{self.folder}: the processes of this training read different states; run again"
            )
        if state is None:
            if self.context.is_main:  # also remove checkpoints of another run
                run_state.remove(self.folder)
                run_state.claim(self.folder)
            return
        self.model.load_state_dict(state["model"])
        self.working.refresh(self.model)
        self.update = state["update"]
        for optimizer, saved in zip(self.needed(), state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.gate_noise.set_state(state["gate_noise"])
        self.epoch, self.position, self.tokens, self.loss_tokens = state["counters"]
        self.loss = state["loss"].to(self.device)
        if self.penalty is not None:
            vars(self.penalty).update(state["penalty"])
        self.records = json.loads(state["records"])
        stage.log.info("resuming at update %d", self.update)


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def _line(record: dict[str, Any], plan: Plan) -> str:
    text = f"update {record['update']}/{plan.updates}, loss {record['loss']:.3f}"
    if "dev_loss" in record:
        text += f", dev loss {record['dev_loss']:.3f}"
    if "open" in record:
        decided = float(probability_open(torch.zeros(())))  # where log α is 0
        number = sum(p > decided for layer in record["open"].values() for p in layer)
        text += f", {stage.heads_text(number)} open"
    return text + f", rate {record['learning_rate']:.2e}"
