"""The same graph, the same rules, on whole arrays: a node holds a batch instead of a number.

Elementwise operations are those of `ops.py`, unchanged. What is new is what arrays can do besides:
multiply as matrices, add up along an axis, change their form, pick entries. Each such operation is a
line or a few below: its value, and for each input what it receives of a gradient `g`. The rules are written
in operations of this file, so they work on arrays and, for derivatives of derivatives, on Tensors.

Broadcasting is an operation of its own (`broadcast_to`, whose gradient is a sum), put in where it is
needed, so that no rule has to know of it. NumPy's warnings about overflow are silenced where an operation
can make inf or nan of ordinary numbers (exp, log, /, ...); + - * and relu leave them as they are, since
silencing would cost as much as the operation.
"""

from micrograd.tensor.arrays import *  # noqa: F403
from micrograd.tensor.arrays import __all__ as _of_arrays
from micrograd.tensor.kernels import cross_entropy, layer_norm
from micrograd.tensor.node import ARRAY, Tensor, broadcast_to, reshape

__all__ = ["ARRAY", "Tensor", "broadcast_to", "cross_entropy", "layer_norm", "reshape", *_of_arrays]
