"""Optimisers turn gradients into steps; schedules change how long the steps are; clipping bounds them.

They touch `p.data` and `p.grad` and nothing else of a node, so floats and arrays are trained alike.
"""

from micrograd.optim.optimisers import (
    SGD,
    Adagrad,
    Adam,
    AdamW,
    Optimizer,
    RMSprop,
    clip_grad_norm_,
    clip_grad_value_,
)
from micrograd.optim.schedules import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    OneCycleLR,
    ReduceLROnPlateau,
    StepLR,
    lr_find,
)

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "LinearLR",
           "OneCycleLR", "Optimizer", "RMSprop", "ReduceLROnPlateau", "StepLR",
           "clip_grad_norm_", "clip_grad_value_", "lr_find"]
