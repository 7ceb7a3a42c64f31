"""The state of training in a bucket: another machine takes it over, and nothing is left at the end."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from specialized_heads.stage import UserError
from specialized_heads.training import state, store

STATE = {"fingerprint": "of this run", "update": 7, "weights": torch.arange(4.0)}


class Object:
    """A file or folder of a bucket, which is a folder here; the methods are those of Snakemake's plugins."""

    def __init__(self, bucket: Path, query: str) -> None:
        self.path = bucket / query.removeprefix("s3://bucket/")

    def set_local_path(self, path: Path) -> None:
        self.local = path

    def exists(self) -> bool:
        return self.path.exists()

    def retrieve_object(self) -> None:
        shutil.copyfile(self.path, self.local)

    def store_object(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.local, self.path)

    def remove(self) -> None:
        shutil.rmtree(self.path)


class Machine:
    """A machine with a folder of its own; in its `with` block, this process is its training job."""

    def __init__(self, folder: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self.bucket, self.monkeypatch = folder.name, bucket, monkeypatch
        self.root = folder / "storage"
        self.state = self.root / "models" / "seed1.state"

    def __enter__(self) -> Path:
        value = store.Store(provider="s3", settings={}, local=str(self.root), remote="s3://bucket/project")
        self.monkeypatch.setenv(store.VARIABLE, value.model_dump_json())
        provider = SimpleNamespace(object=lambda query: Object(self.bucket, query))
        self.monkeypatch.setattr(store, "_provider", lambda: provider)
        self.monkeypatch.setattr(state, "_this_process", lambda: self.name)
        store._store.cache_clear()
        return self.state

    def __exit__(self, *_: object) -> None:
        store._store.cache_clear()


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, Machine]:
    return tuple(Machine(tmp_path / name, tmp_path / "bucket", monkeypatch) for name in ("first", "second"))


def read(folder: Path) -> dict | None:
    return state.read_state(folder, fingerprint="of this run", checkpoints=[5], device=torch.device("cpu"))


def test_another_machine_resumes_and_the_first_stops(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    with first as folder:
        assert read(folder) is None
        state.clear(folder)
        state.write_checkpoint(folder, 5, {"w": torch.ones(2)})
        state.write_state(folder, STATE)
    with second as folder:
        state.claim(folder)
        resumed = read(folder)
        assert resumed["update"] == 7 and torch.equal(resumed["weights"], STATE["weights"])
        assert torch.equal(state.read_checkpoint(folder, 5)["w"], torch.ones(2))
    with first as folder, pytest.raises(UserError, match="another process has taken over"):
        state.write_state(folder, STATE | {"update": 8})
    with second as folder:
        assert read(folder)["update"] == 7
        state.finish(folder)
        assert read(folder) is None
    with first as folder, pytest.raises(UserError, match="or has finished"):
        state.check(folder)
    assert list(first.bucket.rglob("*.pt")) == []


def test_a_missing_plugin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = store.Store(provider="nosuch", settings={}, local=str(tmp_path), remote="s3://bucket")
    monkeypatch.setenv(store.VARIABLE, value.model_dump_json())
    store._store.cache_clear()
    try:
        with pytest.raises(UserError, match="snakemake-storage-plugin-nosuch is not installed where the job runs"):
            store.push(tmp_path / "file")
    finally:
        store._store.cache_clear()
        store._provider.cache_clear()
