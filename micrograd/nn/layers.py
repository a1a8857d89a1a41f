"""Layers for batches: what a neuron does, done for all neurons and all examples in one product of matrices.

Arguments, names and shapes of parameters, and the spread of initial weights are PyTorch's
(https://pytorch.org/docs/stable/nn.html), so a state_dict goes from here to there and back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from micrograd import ops, tensor
from micrograd.nn import init
from micrograd.nn.module import Module, Sequential
from micrograd.tensor import Tensor


def _new(shape: Any, dtype: Any) -> Tensor:
    return Tensor(np.zeros(shape, dtype or np.float64))


class Linear(Module):
    """x Wᵀ + b:  (..., in_features) -> (..., out_features), W and b uniform within ± 1 / sqrt(in_features).

    >>> layer = Linear(2, 1)
    >>> init.ones_(layer.weight), init.zeros_(layer.bias)   # doctest: +ELLIPSIS
    (...)
    >>> y = layer(Tensor([[2.0, 3.0]])); y.backward()
    >>> y.item(), layer.weight.grad
    (5.0, array([[2., 3.]]))
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        self.weight = init.uniform_(_new((out_features, in_features), dtype), -bound, bound)
        self.bias = init.uniform_(_new(out_features, dtype), -bound, bound) if bias else None

    def forward(self, x: Any) -> Any:
        if x.shape[-1:] != (self.in_features,):
            raise ValueError(f"this layer takes (..., {self.in_features}), got an input of shape {x.shape}")
        y = tensor.matmul(x, self.weight.T)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}" + ("" if self.bias is not None else ", bias=False")


class Embedding(Module):
    """A row of the table for each index:  (...) integers -> (..., embedding_dim), rows from normal(0, 1).

    The row `padding_idx` starts at zero and gets no gradient.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 dtype: Any = None) -> None:
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = init.normal_(_new((num_embeddings, embedding_dim), dtype))
        if padding_idx is not None:
            self.padding_idx = range(num_embeddings)[padding_idx]
            self.weight.data[padding_idx] = 0.0

    def forward(self, index: Any) -> Any:
        index = np.asarray(index.data if isinstance(index, Tensor) else index)
        if index.dtype.kind not in "iu":
            raise TypeError(f"an embedding is looked up by integers, got dtype {index.dtype}")
        if index.size and not (0 <= index.min() and index.max() < self.num_embeddings):
            raise IndexError(f"indices are 0 to {self.num_embeddings - 1}, got {index.min()} to {index.max()}")
        rows = self.weight[index]
        if self.padding_idx is None:
            return rows
        return ops.where(index[..., None] == self.padding_idx, self.weight.data[self.padding_idx], rows)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias, over the last axes (Ba and others, 2016)."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, dtype: Any = None) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = init.ones_(_new(self.normalized_shape, dtype)) if elementwise_affine else None
        self.bias = _new(self.normalized_shape, dtype) if elementwise_affine and bias else None

    def forward(self, x: Any) -> Any:
        n = len(self.normalized_shape)
        if x.shape[-n:] != self.normalized_shape:
            raise ValueError(f"this layer normalises {self.normalized_shape}, got an input of shape {x.shape}")
        flat = [None if p is None else tensor.reshape(p, -1) for p in (self.weight, self.bias)]
        return tensor.layer_norm(x.reshape(*x.shape[:-n], -1), flat[0], flat[1], self.eps).reshape(*x.shape)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(LayerNorm):
    """x / sqrt(mean(x²) + eps) * weight, over the last axes (Zhang and Sennrich, 2019)."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
                 dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, False, dtype)  # type: ignore[arg-type]

    def forward(self, x: Any) -> Any:
        eps = float(np.finfo(x.dtype).eps) if self.eps is None else self.eps
        axes = tuple(range(-len(self.normalized_shape), 0))
        y = x / ((x * x).mean(axes, keepdim=True) + eps).sqrt()
        return y if self.weight is None else y * self.weight


class BatchNorm1d(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias of each feature, in a batch (n, features) or (n, features, length).

    Training uses the batch's own mean and variance and lets the running ones follow by `momentum` (None: their plain
    mean); `eval()` uses the running ones (Ioffe and Szegedy, 2015).
    """

    buffers = ("running_mean", "running_var", "num_batches_tracked")

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, dtype: Any = None) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = init.ones_(_new(num_features, dtype)) if affine else None
        self.bias = _new(num_features, dtype) if affine else None
        self.running_mean: Any = np.zeros(num_features, dtype or np.float64) if track_running_stats else None
        self.running_var: Any = np.ones(num_features, dtype or np.float64) if track_running_stats else None
        self.num_batches_tracked: Any = np.zeros((), np.int64) if track_running_stats else None

    def forward(self, x: Any) -> Any:
        if x.ndim not in (2, 3) or x.shape[1] != self.num_features:
            raise ValueError(f"this layer takes (n, {self.num_features}) or (n, {self.num_features}, length), "
                             f"got {x.shape}")
        wide = (1, -1) + (1,) * (x.ndim - 2)
        if self.training or self.running_mean is None:
            n = x.size // self.num_features
            if n < 2 and self.training:
                raise ValueError(f"one value a feature has no variance; got an input of shape {x.shape} while training")
            axes = (0, 2)[:x.ndim - 1]
            mean = x.mean(axes, keepdim=True)
            var = ((x - mean) ** 2).mean(axes, keepdim=True)
            if self.training and self.running_mean is not None:
                self.num_batches_tracked += 1
                share = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
                self.running_mean += share * (mean.data.ravel() - self.running_mean)
                self.running_var += share * (var.data.ravel() * n / (n - 1) - self.running_var)
        else:
            mean, var = self.running_mean.reshape(wide), self.running_var.reshape(wide)
        y = (x - mean) / ops.sqrt(var + self.eps)
        return y if self.weight is None else y * self.weight.reshape(*wide) + self.bias.reshape(*wide)  # type: ignore

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class Dropout(Module):
    """Each entry is 0 with probability p while training, and the others grow by 1 / (1 - p); `eval()` passes x on."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"p is a probability between 0 and 1, got {p}")
        self.p = p

    def forward(self, x: Any) -> Any:
        if not self.training or self.p == 0:
            return x
        kept = tensor.generator().random(x.shape) >= self.p
        return x * (kept / (1 - self.p) if self.p < 1 else kept * 1.0).astype(x.dtype)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class CausalSelfAttention(Module):
    """Every position gathers from itself and those before it:  (n, length, embed_dim) -> the same shape.

        softmax(Q Kᵀ / sqrt(head size), nothing from the future) V,  for each head;  then out_proj

    Parameters are those of torch.nn.MultiheadAttention (Vaswani and others, 2017).
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True, dropout: float = 0.0,
                 dtype: Any = None) -> None:
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim is shared evenly by the heads; {embed_dim} is no multiple of {num_heads}")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.in_proj_weight = init.xavier_uniform_(_new((3 * embed_dim, embed_dim), dtype))
        self.in_proj_bias = _new(3 * embed_dim, dtype) if bias else None
        self.out_proj, self.drop = Linear(embed_dim, embed_dim, bias, dtype), Dropout(dropout)
        if bias:
            init.zeros_(self.out_proj.bias)

    def forward(self, x: Any) -> Any:
        n, length, width = x.shape
        heads = tensor.matmul(x, self.in_proj_weight.T)
        heads = heads if self.in_proj_bias is None else heads + self.in_proj_bias
        q, k, v = heads.reshape(n, length, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)    # (n, heads, length, size)
        scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(width // self.num_heads))
        scores = scores + np.triu(np.full((length, length), -np.inf, x.dtype), 1)
        y = (self.drop(scores.softmax(-1)) @ v).permute(0, 2, 1, 3).reshape(n, length, width)
        return self.out_proj(y)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, num_heads={self.num_heads}"


class Residual(Sequential):
    """x + f(x): the modules in a row, and a path around them that gradients pass unchanged (He and others, 2016)."""

    def forward(self, x: Any) -> Any:
        return x + super().forward(x)


def _activation(name: str, function: Callable, **defaults: Any) -> type[Module]:
    """A function as a module, on Tensors and Values alike; its arguments and their defaults are PyTorch's."""
    def __init__(self: Any, *inputs: Any, **keywords: Any) -> None:
        self.options = {**defaults, **dict(zip(defaults, inputs)), **keywords}
        if len(self.options) > len(defaults) or len(inputs) > len(defaults):
            raise TypeError(f"{name} takes {', '.join(defaults) or 'no arguments'}; got {[*inputs, *keywords]}")

    def forward(self: Any, x: Any) -> Any: return function(x, **self.options)
    def extra_repr(self: Any) -> str: return ", ".join(f"{k}={v!r}" for k, v in self.options.items())
    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "is_bend": True,
                                  "__module__": __name__, "__doc__": f"{name} as a module."})


ReLU, Tanh, Sigmoid, SiLU, Softplus, LogSigmoid = (
    _activation(name, ops.TABLE[name.lower()]) for name in "ReLU Tanh Sigmoid SiLU Softplus LogSigmoid".split())
LeakyReLU = _activation("LeakyReLU", ops.leaky_relu, negative_slope=0.01)
GELU = _activation("GELU", ops.gelu, approximate="none")
ELU, Identity = _activation("ELU", ops.elu, alpha=1.0), _activation("Identity", lambda x: x)
Softmax = _activation("Softmax", tensor.softmax, dim=-1)
LogSoftmax = _activation("LogSoftmax", tensor.log_softmax, dim=-1)
Flatten = _activation("Flatten", tensor.flatten, start_dim=1, end_dim=-1)


class Bend(Module):
    """An activation by the name that neurons know it by."""

    is_bend = True

    def __init__(self, activation: str) -> None:
        self.activation = activation

    def forward(self, x: Any) -> Any:
        return x if self.activation == "linear" else ops.TABLE[self.activation](x)

    def extra_repr(self) -> str:
        return self.activation


class BatchMLP(Module):
    """The network of an MLP of Values, its numbers too, for batches: (n, nin) -> (n, nout), or (n,) if nout is 1."""

    def __init__(self, model: Any) -> None:
        self.layers, self.bends = [], []            # type: tuple[list[Linear], list[Any]]
        for layer in model.layers:
            linear = Linear(len(layer.neurons[0].w), len(layer.neurons))
            linear.weight.data[...] = [[w.data for w in neuron.w] for neuron in layer.neurons]
            linear.bias.data[...] = [neuron.b.data for neuron in layer.neurons]     # type: ignore[union-attr]
            self.layers.append(linear)
            self.bends.append(Bend(layer.neurons[0].activation))

    def forward(self, x: Any) -> Any:
        x = x if isinstance(x, Tensor) else Tensor(x, requires_grad=False)
        for layer, bend in zip(self.layers, self.bends):
            x = bend(layer(x))
        return x.squeeze(-1) if x.shape[-1] == 1 else x
