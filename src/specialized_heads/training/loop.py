"""The training loop, made to be killed: what it needs to go on is written down every minute.

The state (weights, optimiser, position in the data, log so far) lives in a directory of its own (`state`), since Snakemake
deletes the declared outputs of a job that failed. It is stamped with a fingerprint of everything that affects the result, so
that a state of other settings or other data is never taken up. After a kill the run goes on at the last state and, on the same
machine, ends with the same bytes as an undisturbed one.

On a CPU the micro-batches of an update run side by side, one thread each: small matrices leave most of a core's time to
everything but the product, and that does not speed up with threads inside of an operation. Every micro-batch has its own
seed for dropout, and gradients are added up in order, so the number of threads does not show in the result. With several
processes (`parallel`) each takes every so many-th micro-batch. The batches of the next update are made during this one.
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
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.model.devices import products
from specialized_heads.model.functional import dropout_seed, prepare_cpu
from specialized_heads.model.gates import HardConcrete, probability_open
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError, code_hash, disk_errors, file_hash, log, progress
from specialized_heads.training import state as kept
from specialized_heads.training.batching import Batch, epoch_updates, make_batch
from specialized_heads.training.objective import cross_entropy_sum, evaluate
from specialized_heads.training.parallel import Team
from specialized_heads.training.schedule import learning_rate

SAVE_SECONDS = 60.0


@dataclass(frozen=True)
class Plan:
    """How a model is trained; see `sections.Training` and `sections.Pruning` for the fields' meaning."""

    seed: int
    updates: int
    batch_tokens: int
    micro_batch_tokens: int
    schedule: str
    learning_rate: float
    warmup: int
    label_smoothing: float
    precision: str
    log_every: int
    evaluate_every: int
    average: int = 1
    average_every: int = 1000
    compile: bool = False
    gate_learning_rate: float = 0.0  # peak, for log α; same shape over time as the model's
    moments: tuple[int, ...] = ()  # updates after which the weights are kept, see `state`


class Penalty(Protocol):
    """What presses on the gates; its attributes are plain numbers, which are saved with the state of the run."""

    weight: float  # λ at the next update

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        """Set the weight of the next update, after update number `update`; may also fix the gates."""


@dataclass(frozen=True)
class Data:
    """Token stores, and a hash that changes when their content does."""

    train: TokenStore
    dev: TokenStore
    hash: str


def load_data(train: Path, dev: Path) -> Data:
    """Map the token files of a training and a development set."""
    return Data(load_tokens(train), load_tokens(dev), f"{file_hash(train)} {file_hash(dev)}")


def train(
    model: Transformer,
    plan: Plan,
    data: Data,
    *,
    state: Path,
    records: Path,
    penalty: Penalty | None = None,
    team: Team | None = None,
) -> str:
    """Train the parameters of `model` that require gradients, in place.

    The loss is the cross-entropy per target token plus, with a penalty on the model's gates, λ·L_C (section 6.1).

    Args:
        model: on its device, with its gates, if any, attached. Its initial weights are part of the fingerprint.
        plan: how.
        data: on what.
        state: directory for the resumable state; removed by `state.finish` once the results are safe.
        records: JSONL log: training loss, development loss, learning rate, P(open) of the gates.
        penalty: on the model's gates, in its first state; None: λ is 0.
        team: the processes that train together; None: this one alone. Only the first one writes.

    Returns:
        the precision that matrix products had, fp32 or bf16.
    """
    team = team or Team()
    prepare_cpu()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    workers = threads if model.source_embedding.device.type == "cpu" else 1
    run = _Run(model, plan, data, state, penalty, workers=workers, team=team)
    fingerprint = _fingerprint(model, plan, data, penalty, team, products=run.products)
    run.resume(fingerprint)
    started, saved, tokens_before = time.monotonic(), time.monotonic(), run.tokens
    model.train()
    run.working.train()
    written = records if team.writes else Path(os.devnull)
    with disk_errors(written), open(written, "w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(record) + "\n" for record in run.records)
        for batches in progress(run.updates(), what="training", total=plan.updates - run.update, unit="update"):
            run.step(batches)
            if any(run.update % every == 0 for every in (plan.log_every, plan.evaluate_every, plan.updates)):
                run.check()
                record = run.record()
                stream.write(json.dumps(record) + "\n")
                stream.flush()
                speed = (run.tokens - tokens_before) / (time.monotonic() - started)
                log.info("%s, %.0f target tokens/s", _line(record, plan), speed)
            if team.writes and time.monotonic() - saved > SAVE_SECONDS and run.update < plan.updates:
                run.save(fingerprint)
                saved = time.monotonic()
    run.pool.shutdown()
    torch.set_num_threads(threads)
    model.eval()
    return run.products


@dataclass(frozen=True)
class _Update:
    """One process' share of an update: where it stands, target tokens of all shares, numbered micro-batches."""

    epoch: int
    position: int
    tokens: int
    batches: list[tuple[int, Batch]]


class _Run:
    """A training run in progress: everything that a kill must not lose."""

    def __init__(
        self,
        model: Transformer,
        plan: Plan,
        data: Data,
        folder: Path,
        penalty: Penalty | None,
        *,
        workers: int,
        team: Team,
    ) -> None:
        self.model, self.plan, self.data, self.folder, self.team = model, plan, data, folder, team
        self.pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        self.device = model.source_embedding.device
        self.gates = [m.gate for m in model.attentions() if isinstance(m.gate, HardConcrete)]
        self.penalty = penalty if self.gates else None
        self.gate_noise = torch.Generator().manual_seed(plan.seed)
        # Products run on a narrow copy of the matrices, made once per update; the weights themselves stay in float32.
        self.products = products(plan.precision, self.device)
        if self.products != plan.precision:
            log.info("no instructions for bf16 on this device: matrix products are in float32")
        self.working = model.in_precision(torch.bfloat16) if self.products == "bf16" else model
        if plan.compile:
            for layer in (*self.working.encoder, *self.working.decoder):
                layer.compile(dynamic=True)
        log_alphas = {id(gate.log_alpha) for gate in self.gates}
        pairs = zip(model.parameters(), self.working.parameters(), strict=True)
        trained = [(p, w) for p, w in pairs if p.requires_grad and p.numel() and id(p) not in log_alphas]
        weights = [weight for weight, _ in trained]
        self.trained = weights + [gate.log_alpha for gate in self.gates]
        self.differentiated = [narrow for _, narrow in trained] + [gate.log_alpha for gate in self.gates]
        groups = [{"params": weights, "peak": 1.0}]
        if self.gates:
            relative = plan.gate_learning_rate / self.rate(min(plan.warmup, plan.updates))
            groups.append({"params": [gate.log_alpha for gate in self.gates], "peak": relative})
        # All gradients, and the loss, in one block of memory: cleared, and summed over processes, by one operation.
        self.gradient = torch.zeros(sum(p.numel() for p in self.trained) + 1, device=self.device)
        *pieces, self.update_loss = self.gradient.split([*(p.numel() for p in self.trained), 1])
        for parameter, piece in zip(self.trained, pieces, strict=True):
            parameter.grad = piece.view_as(parameter)
        self.optimizer = torch.optim.Adam(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.update = self.epoch = self.position = self.tokens = 0
        self.loss = torch.zeros(1, device=self.device)  # of all processes, summed since the last record
        self.loss_tokens = 0
        self.mean = [torch.zeros_like(p) for p in weights] if plan.average > 1 else []  # sum of the weights to average
        self.records: list[dict[str, Any]] = []

    def rate(self, update: int) -> float:
        plan = self.plan
        return learning_rate(
            update,
            schedule=plan.schedule,
            factor=plan.learning_rate,
            warmup=plan.warmup,
            updates=plan.updates,
            width=self.model.architecture.width,
        )

    def updates(self) -> Iterator["_Update"]:
        """This process' share of each update, from the current position to the end of the run."""
        with ThreadPoolExecutor(1) as ahead:
            upcoming = (ahead.submit(self.make, *place) for place in self.places())
            waiting = next(upcoming, None)
            while waiting is not None:
                update, waiting = waiting.result(), next(upcoming, None)
                yield update

    def places(self) -> Iterator[tuple[int, int, list[np.ndarray]]]:
        """Epoch, position and micro-batches of each update that is left."""
        left, epoch, position = self.plan.updates - self.update, self.epoch, self.position
        while left:
            updates = epoch_updates(
                self.data.train,
                seed=self.plan.seed,
                epoch=epoch,
                batch_tokens=self.plan.batch_tokens,
                micro_batch_tokens=self.plan.micro_batch_tokens,
                multiple=self.team.size,
            )
            for number, sentences in list(enumerate(updates))[position:][:left]:
                yield epoch, number, sentences
                left -= 1
            epoch, position = epoch + 1, 0

    def make(self, epoch: int, position: int, sentences: list[np.ndarray]) -> "_Update":
        """Pad this process' micro-batches of an update."""
        lengths = self.data.train.target_lengths
        tokens = int(sum((lengths[chunk] + 1).sum() for chunk in sentences))
        own = range(self.team.rank, len(sentences), self.team.size)
        batches = [(index, make_batch(self.data.train, sentences[index]).to(self.device)) for index in own]
        return _Update(epoch, position, tokens, batches)

    def step(self, update: "_Update") -> None:
        """One update from its micro-batches, normalised by the target tokens of all of them."""
        for gate in self.gates:
            gate.draw(self.gate_noise)
        self.gradient.zero_()
        losses = self.pool.map(lambda pair: self.gradients(*pair, update.tokens), update.batches)
        for loss, gradients in losses:  # in order, whichever is ready first
            self.update_loss += loss
            for parameter, gradient in zip(self.trained, gradients, strict=True):
                parameter.grad.add_(gradient)
        self.team.add_up(self.gradient)
        self.loss += self.update_loss
        if self.penalty is not None:
            (self.penalty.weight * self.expected_heads()).backward()  # λ·L_C, section 6.1
        self.update, self.epoch, self.position = self.update + 1, update.epoch, update.position + 1
        rate = self.rate(self.update)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["peak"]
        self.optimizer.step()
        if self.penalty is not None:
            self.penalty.advance(self.update, self.gates)
        if self.team.writes and self.update in self.plan.moments:
            kept.write_moment(self.folder, self.update, self.model.state_dict())
        if self.mean:
            self.average()
        self.working.refresh(self.model)
        self.tokens += update.tokens
        self.loss_tokens += update.tokens

    def average(self) -> None:
        """At the last `average` multiples of `average_every`, counted from the end, add up the weights; then divide."""
        plan, weights = self.plan, self.optimizer.param_groups[0]["params"]
        back = plan.updates - self.update
        if back % plan.average_every == 0 and back < plan.average * plan.average_every:
            torch._foreach_add_(self.mean, [weight.detach() for weight in weights])
        if back == 0:
            for weight, total in zip(weights, self.mean, strict=True):
                weight.data.copy_(total / plan.average)

    def gradients(self, index: int, batch: Batch, tokens: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Summed cross-entropy of a micro-batch, and the gradients of its share of the mean over `tokens`."""
        seed = int(np.random.SeedSequence([self.plan.seed, self.update, index]).generate_state(1, np.uint64)[0] >> 1)
        with dropout_seed(seed, self.device):
            loss = cross_entropy_sum(self.working, batch, label_smoothing=self.plan.label_smoothing)
        gradients = torch.autograd.grad(loss / tokens, self.differentiated, materialize_grads=True)
        return loss.detach(), gradients

    def expected_heads(self) -> Tensor:
        """L_C: the expected number of open gates."""
        return torch.stack([gate.open_probability().sum() for gate in self.gates]).sum()

    def record(self) -> dict[str, Any]:
        """Write down the losses since the last record; the development loss at its own interval."""
        record: dict[str, Any] = {
            "update": self.update,
            "epoch": self.epoch,
            "tokens": self.tokens,
            "learning_rate": self.rate(self.update),
            "loss": float(self.loss) / self.loss_tokens,
        }
        if not math.isfinite(record["loss"]):
            raise UserError(
                f"update {self.update}: the loss is {record['loss']}; training diverged, lower the learning rate and run again"
            )
        self.loss.zero_()
        self.loss_tokens = 0
        if self.update % self.plan.evaluate_every == 0 or self.update == self.plan.updates:
            record["dev_loss"] = evaluate(self.model, self.data.dev)
        for attention in self.model.attentions():
            if isinstance(attention.gate, HardConcrete):
                name = f"{attention.kind}.{attention.layer + 1}"
                open_ = attention.gate.open_probability().detach()
                record.setdefault("open", {})[name] = [round(p, 4) for p in open_.tolist()]
        self.records.append(record)
        return record

    def save(self, fingerprint: str) -> None:
        state = {
            "fingerprint": fingerprint,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "gate_noise": self.gate_noise.get_state(),
            "update": self.update,
            "counters": [self.epoch, self.position, self.tokens, self.loss_tokens],
            "loss": self.loss,
            "mean": self.mean,
            "penalty": {} if self.penalty is None else vars(self.penalty),
            "records": json.dumps(self.records),
        }
        kept.write_state(self.folder, state)

    def check(self) -> None:
        """Stop where another process has taken over: two would finish at different times, the first under the second's feet."""
        if self.team.writes:
            kept.check(self.folder)

    def resume(self, fingerprint: str) -> None:
        """Take up the saved state if there is one and it belongs to this very run; else start with an empty folder."""
        if self.team.writes:
            kept.claim(self.folder)
        state = kept.read_state(self.folder, fingerprint=fingerprint, moments=self.plan.moments, device=self.device)
        if state is None:
            if self.team.writes:  # moments of another run, too, must not be taken for this one's
                kept.clear(self.folder)
            return
        self.model.load_state_dict(state["model"])
        self.working.refresh(self.model)
        self.optimizer.load_state_dict(state["optimizer"])
        self.gate_noise.set_state(state["gate_noise"].cpu())
        self.update = state["update"]
        self.epoch, self.position, self.tokens, self.loss_tokens = state["counters"]
        self.mean = state["mean"]
        self.loss = state["loss"]
        if self.penalty is not None:
            vars(self.penalty).update(state["penalty"])
        self.records = json.loads(state["records"])
        log.info("going on at update %d", self.update)


def _fingerprint(
    model: Transformer, plan: Plan, data: Data, penalty: Penalty | None, team: Team, *, products: str
) -> str:
    """Hash of all that the result follows from: plan, penalty as it starts, data, weights as they start (and which of them
    are trained), number of processes (which divides the epochs), kind of device, precision of its products, torch, and the
    code of this package."""
    described = [asdict(plan), repr(penalty), data.hash, model.dropout, team.size, products]
    described += [model.source_embedding.device.type, torch.__version__, code_hash("model", "pruning", "training")]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name, parameter in model.named_parameters():
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.requires_grad}".encode())
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def _line(record: dict[str, Any], plan: Plan) -> str:
    text = f"update {record['update']}/{plan.updates}, loss {record['loss']:.3f}"
    if "dev_loss" in record:
        text += f", dev loss {record['dev_loss']:.3f}"
    if "open" in record:
        decided = float(probability_open(torch.zeros(())))  # where log α is 0
        text += f", {sum(p > decided for layer in record['open'].values() for p in layer)} heads open"
    return text + f", rate {record['learning_rate']:.2e}"
