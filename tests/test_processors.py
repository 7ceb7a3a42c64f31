"""Processors that control groups allow."""

import os

import pytest

from specialized_heads import processors

# /proc/self/cgroup, the files below /sys/fs/cgroup, and how many of 64 processors are left
GROUPS = {
    "none": ("0::/", {}, 64),
    "no limit": ("0::/", {"cpu.max": "max 100000"}, 64),
    "a container": ("0::/", {"cpu.max": "150000 100000"}, 2),
    "a container that sees its host's path": ("0::/host/path", {"cpu.max": "200000 100000"}, 2),
    "a limit of the parent": ("0::/a/b", {"a/cpu.max": "3 1", "a/b/cpu.max": "max 100000"}, 3),
    "version 1": (
        "4:memory:/m\n3:cpu,cpuacct:/a",
        {
            "cpu/a/cpu.cfs_quota_us": "5",
            "cpu/a/cpu.cfs_period_us": "10",
            "cpu/cpu.cfs_quota_us": "-1",
        },
        1,
    ),
    "more than there are": ("0::/", {"cpu.max": "9900000 100000"}, 64),
}


@pytest.mark.parametrize("name", GROUPS)
def test_processors_are_those_that_the_control_groups_allow(name, tmp_path, monkeypatch) -> None:
    groups, limits, expected = GROUPS[name]
    for path, content in {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{k}": v for k, v in limits.items()},
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{content}\n", encoding="ascii")
    monkeypatch.setattr(processors, "SYSTEM", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    assert processors.processors() == expected
