"""What a run was made on: processor, threads, versions, load and the command itself; and its
progress."""

import os
import platform
import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "ctranslate2")


def describe(threads: int, *, command: list[str]) -> dict[str, str]:
    """Facts about machine and run, in the order in which the report shows them."""
    facts = {
        "command": " ".join([command[0], *map(shlex.quote, command[1:])]),
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "instructions": ", ".join(instructions()) or platform.machine(),
    }
    facts["threads"] = str(threads)
    facts["load before the run"] = (
        f"{os.getloadavg()[0]:.2f} (average number of running processes in the last minute)"
    )
    facts["versions"] = ", ".join(
        [f"Python {platform.python_version()}", *filter(None, map(package, PACKAGES))]
    )
    return facts


def cpu_info(field: str) -> str:
    """A field of /proc/cpuinfo; empty if missing."""
    path = Path("/proc/cpuinfo")
    match = (
        re.search(rf"^{field}\s*:\s*(.*)$", path.read_text(), re.MULTILINE)
        if path.exists()
        else None
    )
    return match[1] if match else ""


def processor() -> str:
    return cpu_info("model name") or platform.processor() or platform.machine()


def instructions() -> list[str]:
    """Instruction sets that decide how fast matrix products are."""
    flags = set(cpu_info("flags").split())
    return [
        name
        for name in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16")
        if name in flags
    ]


def package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)
