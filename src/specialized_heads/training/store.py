"""A copy of the resumable state in a bucket, for jobs that share no disk.

The workflow sets `SPECIALIZED_HEADS_STORE` if Snakemake has a default storage provider. The provider's plugin moves the files,
with the settings and credentials that it uses for inputs and outputs. Without the variable, these functions do nothing.
"""

import logging
import os
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from specialized_heads.stage import Section, UserError, atomic

VARIABLE = "SPECIALIZED_HEADS_STORE"


class Store(Section):
    """The value of the variable, as JSON."""

    provider: str  # name of the plugin, such as s3
    settings: dict[str, Any]  # of the plugin; those that are secret are in variables of their own
    local: str  # the folder of all inputs and outputs of a job
    remote: str  # what it is a copy of, such as s3://bucket/prefix


def fetch(path: Path) -> None:
    """Replace a file by its copy in the bucket, or remove it if there is none."""
    if not _store():
        return
    stored = _stored(path)
    if not stored.exists():
        path.unlink(missing_ok=True)
        return
    with atomic(path) as temporary:
        stored.set_local_path(temporary)
        stored.retrieve_object()


def push(path: Path) -> None:
    """Copy a file to the bucket. An object of a bucket is replaced as a whole or not at all."""
    if _store():
        stored = _stored(path)
        stored.set_local_path(path)
        stored.store_object()


def remove(folder: Path) -> None:
    """Remove a folder from the bucket."""
    if _store() and (stored := _stored(folder)).exists():
        stored.remove()


@cache
def _store() -> Store | None:
    value = os.environ.get(VARIABLE)
    return Store.model_validate_json(value) if value else None


@cache
def _provider() -> Any:
    store = _store()
    assert store
    try:
        from snakemake_interface_storage_plugins.registry import StoragePluginRegistry  # searches for plugins

        plugin = StoragePluginRegistry().get_plugin(store.provider)
    except Exception:  # of several types
        raise UserError(
            f"{store.remote}: training saves its state here, but snakemake-storage-plugin-{store.provider} is not installed "
            "where the job runs; install it there"
        ) from None
    names = [field.name for field in fields(plugin.settings_cls)] if plugin.settings_cls else []
    secret = {name: os.environ[plugin.get_envvar(name)] for name in names if plugin.get_envvar(name) in os.environ}
    settings = plugin.settings_cls(**store.settings | secret) if plugin.settings_cls else None
    return plugin.storage_provider(
        local_prefix=Path(store.local), logger=logging.getLogger(__name__), settings=settings, is_default=True
    )


def _stored(path: Path) -> Any:
    store = _store()
    assert store
    return _provider().object(f"{store.remote}/{Path(os.path.relpath(path, store.local)).as_posix()}")
