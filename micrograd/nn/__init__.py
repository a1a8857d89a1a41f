"""Networks: neurons made of Values as in micrograd, layers made of Tensors as in PyTorch."""

from micrograd.nn.module import Module
from micrograd.nn.scalar import MLP, Layer, Neuron

__all__ = ["MLP", "Layer", "Module", "Neuron"]
