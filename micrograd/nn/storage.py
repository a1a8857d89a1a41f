"""What was learned is a handful of named arrays; a file of them is data, and must never be a program.

Two formats, chosen by the name's ending: `.safetensors` (of the package of that name) and NumPy's `.npz`, without pickle.
"""

from __future__ import annotations

import io
import math
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from micrograd.nn.module import Module


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
    except ImportError:
        raise
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
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            raise TypeError(f"safetensors has no place for {name} of dtype {array.dtype}")
    file.write(_safetensors().save({name: np.asarray(array, order="C") for name, array in arrays.items()}))


def _read_safetensors(content: bytes) -> dict[str, np.ndarray]:
    return dict(_safetensors().load(content))


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError("files that end in .safetensors take the package of that name: pip install safetensors; "
                          "those that end in .npz need nothing more") from None
    return safetensors.numpy
