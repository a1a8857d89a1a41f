"""A module is a thing with parameters, and perhaps with parts that are modules.

It finds both by looking at its own attributes, into lists, tuples and dicts too: what is stored is trained.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from micrograd.engine import Handle, Value
from micrograd.ops import number


def Parameter(data: Any, requires_grad: bool = True) -> Any:
    """A leaf to be trained: a Value of a number, a Tensor of anything else.

    >>> Parameter(3.0)
    Value(data=3.0, grad=0.0)
    """
    if hasattr(data, "__float__") and not getattr(data, "ndim", 0):
        return Value(data, requires_grad=requires_grad)
    from micrograd.tensor import Tensor
    return Tensor(data, requires_grad=requires_grad)


class Module:
    """Anything that computes with parameters: store them as attributes, say how in `forward`.

    Every leaf node that is stored is a parameter, frozen or not, and keep constants as plain arrays. A subclass
    need not call `super().__init__()`. As in micrograd it may define `__call__` and `parameters()` itself.

    >>> class Line(Module):
    ...     def __init__(self): self.slope, self.shift = Value(2.0), Value(1.0)
    ...     def forward(self, x): return self.slope * x + self.shift
    >>> line = Line()
    >>> line(3.0).backward(); line.slope.grad, len(line.parameters())
    (3.0, 2)
    """

    training = True
    is_bend = False                         # whether a unit that gives 0 is off
    buffers: tuple[str, ...] = ()           # attributes that are saved though they are not trained
    _hooks: dict = {}

    def forward(self, *inputs: Any) -> Any:
        """The computation; a subclass says which."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it computes; define forward(self, x)")

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        output = self.forward(*inputs, **keywords)
        for hook in list(self._hooks.values()):
            replaced = hook(self, inputs, output)
            output = output if replaced is None else replaced
        return output

    def register_forward_hook(self, hook: Callable) -> Handle:
        """Call `hook(module, inputs, output)` after each forward; what it returns replaces the output."""
        if not self._hooks:
            self._hooks = {}                                # of this module alone
        return Handle(self._hooks, hook)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (list, tuple)):
            modules = [part for part in value if isinstance(part, Module)]
            if len(set(map(id, modules))) < len(modules):
                warnings.warn(f"{type(self).__name__}.{name} holds the same module more than once, so these layers "
                              "share their weights; write [Linear(8, 8) for _ in range(4)] for four of their own",
                              stacklevel=2)
        super().__setattr__(name, value)

    # ----------------------------------------------------------------------------- the parts
    def parts(self) -> dict[str, Any]:
        """What is stored, by name."""
        return {name: part for name, part in vars(self).items() if not name.startswith("_")}

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, with their names, each once."""
        seen: set[int] = set()
        for name, part in _flat(self.parts()):
            if isinstance(part, Module) and id(part) not in seen:
                seen.add(id(part))
                yield name, part

    def children(self) -> list[Module]:
        """The modules directly below."""
        return [child for _, child in self.named_children()]

    def named_modules(self, prefix: str = "", seen: set | None = None) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names, each once."""
        seen = set() if seen is None else seen
        if id(self) not in seen:
            seen.add(id(self))
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}".lstrip("."), seen)

    def modules(self) -> list[Module]:
        """This module and all below it."""
        return [module for _, module in self.named_modules()]

    def named_parameters(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """(dotted name, node), a module's own before its parts'; a shared one once unless told otherwise."""
        seen: set[int] = set()
        for name, node in self._named(prefix, lambda module, part: isinstance(part, Value) and part.is_leaf):
            if not (remove_duplicate and id(node) in seen):
                seen.add(id(node))
                yield name, node

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """(dotted name, array) of what is saved but not trained."""
        return self._named(prefix, lambda module, part: any(part is getattr(module, b) for b in module.buffers))

    def _named(self, prefix: str, wanted: Callable, above: tuple = ()) -> Iterator[tuple[str, Any]]:
        parts = [(f"{prefix}.{name}".lstrip("."), part) for name, part in _flat(self.parts())]
        yield from ((name, part) for name, part in parts if part is not None and wanted(self, part))
        for name, part in parts:
            if isinstance(part, Module) and part not in (*above, self):
                yield from part._named(name, wanted, (*above, self))

    def parameters(self) -> list[Any]:
        """The nodes that training changes, each once."""
        return [node for _, node in self.named_parameters()]

    # --------------------------------------------------------------------- what is done to all
    def zero_grad(self, **how: bool) -> None:
        """Forget the gradient of every parameter; `set_to_none=` as in the node's `zero_grad`."""
        for parameter in self.parameters():
            parameter.zero_grad(**how)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Freeze (False) or thaw every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def train(self, mode: bool = True) -> Module:
        """Switch dropout and batch statistics on (True) or off."""
        return self.apply(lambda module: setattr(module, "training", mode))

    def eval(self) -> Module:
        """The opposite of `train()`."""
        return self.train(False)

    def apply(self, function: Callable[[Module], Any]) -> Module:
        """Call `function(module)` on every part and on this module."""
        for module in reversed(self.modules()):
            function(module)
        return self

    # ------------------------------------------------------------------------- saved and loaded
    def state_dict(self) -> dict[str, Any]:
        """{dotted name: number or array} of parameters and buffers: copies, which further training leaves alone."""
        state = {name: node.data for name, node in self.named_parameters(remove_duplicate=False)}
        state.update(self.named_buffers())
        return {name: data.copy() if hasattr(data, "copy") else data for name, data in state.items()}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Take the numbers of `state`: copies, in this model's dtypes. On any error nothing was changed.

        Args:
            state: numbers, arrays, nested lists (from JSON) or torch tensors, by dotted name.
            strict: False ignores names that are missing or not known; shapes must agree all the same.
        """
        nodes = dict(self.named_parameters(remove_duplicate=False))
        mine: dict[str, Any] = {**{name: node.data for name, node in nodes.items()}, **dict(self.named_buffers())}
        faults = [f"missing: {name}" for name in mine if name not in state] if strict else []
        faults += [f"not known here: {name}" for name in state if name not in mine] if strict else []
        loaded: dict[str, Any] = {}
        for name in mine.keys() & state.keys():
            try:
                loaded[name] = _like(mine[name], state[name])
            except (TypeError, ValueError) as error:
                faults.append(f"{name}: {error}")
        if faults:
            raise RuntimeError(f"this state does not fit {type(self).__name__}; nothing was loaded.\n  "
                               + "\n  ".join(sorted(faults)))
        for name, data in loaded.items():
            if name in nodes:
                nodes[name].data = data
            else:
                mine[name][...] = data

    # --------------------------------------------------------------------------------- in words
    def extra_repr(self) -> str:
        """The arguments to show in the repr."""
        return ""

    def __repr__(self) -> str:
        lines = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in self.named_children()]
        name = f"{type(self).__name__}({self.extra_repr()}"
        count = sum(getattr(node.data, "size", 1) for node in self.parameters())
        return "\n".join([name, *lines, ")"]) + f"  # {count:,} parameters" if lines else name + ")"


def _flat(parts: dict) -> Iterator[tuple[str, Any]]:
    """The stored things, with lists, tuples and dicts opened up: layers.0, layers.1, ..."""
    for name, part in parts.items():
        if isinstance(part, (list, tuple)):
            yield from _flat({f"{name}.{i}": one for i, one in enumerate(part)})
        elif isinstance(part, dict):
            yield from _flat({f"{name}.{key}": one for key, one in part.items()})
        else:
            yield str(name), part


def _like(old: Any, new: Any) -> Any:
    """`new` as the number or array that `old` is."""
    if not hasattr(old, "shape"):
        return number(new.item() if hasattr(new, "item") and getattr(new, "ndim", 1) == 0 else new, "a parameter")
    import numpy
    new = numpy.array(new.cpu().numpy() if hasattr(new, "cpu") else new)     # a tensor of torch
    if new.shape != old.shape:
        raise ValueError(f"shape {new.shape} came, {old.shape} is needed")
    if not (numpy.issubdtype(new.dtype, numpy.number) and numpy.can_cast(new.dtype, old.dtype, "same_kind")):
        raise ValueError(f"dtype {new.dtype} came, {old.dtype} is needed")
    return new.astype(old.dtype)


class ModuleList(Module):
    """Modules in a list; a plain list does as well.

    >>> from micrograd.nn import Neuron
    >>> len(ModuleList([Neuron(2), Neuron(2)]).parameters())
    6
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules = list(modules)

    def parts(self) -> dict[str, Any]:
        return {str(i): module for i, module in enumerate(self._modules)}

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self._modules = [*self._modules, module]
        return self

    def __iter__(self) -> Iterator[Module]: return iter(self._modules)
    def __len__(self) -> int: return len(self._modules)
    def __getitem__(self, i: Any) -> Any:
        return type(self)(self._modules[i]) if isinstance(i, slice) else self._modules[i]


class Sequential(ModuleList):
    """Modules in a row: each gets what the one before gave."""

    def __init__(self, *modules: Any) -> None:
        super().__init__(modules[0] if len(modules) == 1 and isinstance(modules[0], (list, tuple)) else modules)

    def forward(self, x: Any) -> Any:
        for module in self._modules:
            x = module(x)
        return x
