"""What was learned is a handful of named arrays; a file of them is data, and must never be a program.

Two formats, chosen by the name's ending: `.safetensors` (https://github.com/huggingface/safetensors, read and written
here, and checked before a byte is believed) and NumPy's `.npz`, without pickle.
"""

from __future__ import annotations

import io
import json
import math
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from micrograd.nn.module import Module

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
          "BOOL": "?"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_LONGEST_HEADER = 100_000_000


def save(model: Module | dict[str, Any], path: str | os.PathLike) -> None:
    """Write a model, or its state_dict, to a .safetensors or .npz file: whole, or not at all.

    The file is written beside its place and moved there when it is complete, so that a crash leaves the old one.
    """
    state = model.state_dict() if isinstance(model, Module) else model
    arrays = {name: np.asarray(data) for name, data in state.items()}
    write = {".safetensors": _write_safetensors, ".npz": _write_npz}[_ending(path)]
    handle, beside = tempfile.mkstemp(dir=Path(path).parent, prefix=f".{Path(path).name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)                # after an interrupt it may be in its place already
        raise


def load(path: str | os.PathLike, model: Module | None = None, strict: bool = True) -> dict[str, np.ndarray]:
    """Read a file that `save` or others wrote: {name: array}; into `model`, if given, by its `load_state_dict`.

    Raises ValueError for a file that is cut short, foreign, contradicts itself or unpacks to a hundred times its size,
    and RuntimeError if it does not fit the model, which is then as it was.
    """
    read = {".safetensors": _read_safetensors, ".npz": _read_npz}[_ending(path)]
    content = Path(path).read_bytes()
    try:
        state = read(content)
    except Exception as error:                          # whatever a parser makes of bytes that somebody bent
        raise ValueError(f"{os.fspath(path)!r} is no readable {_ending(path)} file: {error}") from None
    if model is not None:
        model.load_state_dict(state, strict)
    return state


def _ending(path: str | os.PathLike) -> str:
    ending = Path(path).suffix
    if ending not in (".safetensors", ".npz"):
        raise ValueError(f"the name of the file ends in .safetensors or .npz, got {os.fspath(path)!r}")
    return ending


def _write_npz(file: Any, arrays: dict[str, np.ndarray]) -> None:
    with zipfile.ZipFile(file, "w") as archive:         # numpy.savez has names of its own that no array may bear
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def _read_npz(content: bytes) -> dict[str, np.ndarray]:
    """Each array after a look at what it says of its size, so that no memory is asked for what is not there."""
    state = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(part.file_size for part in archive.infolist()) > 2 ** 26 + 100 * len(content):
            raise ValueError("it unpacks to more than a hundred times its size")
        for part in archive.infolist():
            with archive.open(part) as file:
                form = "read_array_header_{}_{}".format(*np.lib.format.read_magic(file))
                shape, _, dtype = getattr(np.lib.format, form)(file)
                if math.prod(shape) * dtype.itemsize != part.file_size - file.tell():
                    raise ValueError(f"{part.filename} of shape {shape} contradicts the file")
                file.seek(0)
                state[part.filename.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
    return state


def _write_safetensors(file: Any, arrays: dict[str, np.ndarray]) -> None:
    header, at = {}, 0
    for name, array in arrays.items():
        kind = _NAMES.get(array.dtype.newbyteorder("<"))
        if kind is None:
            raise TypeError(f"safetensors has no place for {name} of dtype {array.dtype}")
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        file.write(array.astype(array.dtype.newbyteorder("<")).tobytes())


def _read_safetensors(content: bytes) -> dict[str, np.ndarray]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, _LONGEST_HEADER):
        raise ValueError(f"a header of {length} bytes in a file of {len(content)}")
    header, data = json.loads(content[8:8 + length], object_pairs_hook=_once), content[8 + length:]
    if not isinstance(header, dict):
        raise ValueError("the header is no table of names")
    header.pop("__metadata__", None)
    state, at = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, (start, end) = np.dtype(_TYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        whole = [start, end, *shape]
        if len(shape) > 64 or not all(type(n) is int and n >= 0 for n in whole) or start != at or end > len(data) or (
                end - start != math.prod(shape) * dtype.itemsize):
            raise ValueError(f"{name} of shape {shape} at {start} to {end} contradicts the file")
        state[name] = np.frombuffer(data[start:end], dtype).reshape(shape).copy()
        at = end
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes more than the header speaks of")
    return state


def _once(pairs: list) -> dict:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name occurs twice in the header")
    return dict(pairs)
