"""Networks: neurons made of Values as in micrograd, layers made of Tensors as in PyTorch.

Modules and neurons are here at once; what works on arrays opens NumPy when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from micrograd.nn.module import Module, ModuleList, Parameter, Sequential
from micrograd.nn.scalar import MLP, Layer, Neuron

_ROOMS = {
    "layers": "Linear Embedding LayerNorm RMSNorm BatchNorm1d Dropout CausalSelfAttention Residual ReLU Tanh Sigmoid "
              "SiLU Softplus LogSigmoid GELU LeakyReLU ELU Softmax LogSoftmax Flatten Identity",
    "losses": "mse_loss l1_loss huber_loss smooth_l1_loss hinge_loss binary_cross_entropy cross_entropy nll_loss "
              "binary_cross_entropy_with_logits MSELoss L1Loss HuberLoss SmoothL1Loss HingeLoss BCELoss "
              "BCEWithLogitsLoss CrossEntropyLoss NLLLoss",
    "practice": "grad_norms summary Monitor EarlyStopping progress",
    "storage": "save load",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = ["MLP", "Layer", "Module", "ModuleList", "Neuron", "Parameter", "Sequential", "init", "functional", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "functional":                            # PyTorch's name for losses as functions
        return importlib.import_module("micrograd.nn.losses")
    if name in ("init", *_ROOMS):
        return importlib.import_module(f"micrograd.nn.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"micrograd.nn.{_HOME[name]}"), name)
    raise AttributeError(f"module 'micrograd.nn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
