"""All the calculus there is: one line an operation, its value and where its gradient goes.

Read a line of the table as a sentence:

    mul = binary("*", operator.mul, lambda g, a, b, y: g * b, lambda g, a, b, y: g * a)

"`y = a * b`; a gradient `g` that arrives at `y` sends `g * b` to `a` and `g * a` to `b`." With
`g = 1` that is the partial derivative, so the same line serves reverse mode (`g` is what comes from
above), forward mode (`g` is a tangent), pictures and words (`g = 1`), and derivatives of derivatives.

Rules are written in operators, and never ask what flows through them: floats, NumPy arrays, graph
nodes and the compiler's names all do. **To add an operation, add a line.** To make it a method too,
add a line to `Operand`.

Conventions at kinks are PyTorch's: relu and abs have derivative 0 at 0, clamp 1 at its bounds,
a tie of maximum or minimum is split in halves, and `0 ** 0` has gradient 0. Numbers follow IEEE 754:
`exp(1000)` is inf, `log(0)` is -inf, `1 / 0` is inf, and nothing raises.
"""

from __future__ import annotations

import math
import operator

TYPE_CHECKING = False               # for readers of types only: `typing` takes longer to load than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

inf, nan = math.inf, math.nan
TABLE: dict[str, Operation] = {}


class Operation:
    """One line of the table: a symbol, a value, and what each input receives of a gradient.

    `forward(*inputs)` is the value; `rules[i](g, *inputs, y)` is what input `i` receives when `g`
    arrives at the result `y`, or None where an input has no derivative (a condition). `limit` is the
    IEEE value where Python's `math` raises; `defaults` stand for trailing inputs that were left out;
    `array` names NumPy's function, or is a function of NumPy and the inputs, where `forward` is for
    floats only. Calling an operation applies it to whatever comes.

    >>> mul(3.0, 4.0), mul.partial(0, 3.0, 4.0), exp(1000.0)
    (12.0, 4.0, inf)
    """

    __slots__ = ("array", "both", "defaults", "first", "forward", "kernel", "limit", "looks", "name", "rules", "second",
                 "symbol")

    def __init__(self, name: str, symbol: str, forward: Callable, rules: tuple, *, limit: Callable | None = None,
                 array: str | Callable | None = None, defaults: dict[str, Any] | None = None) -> None:
        self.name, self.symbol, self.forward, self.rules = name, symbol, forward, rules
        self.limit, self.defaults = limit, defaults or {}
        self.array = array or (name if getattr(forward, "__module__", "") == "math" else None)
        self.kernel: Callable | None = None             # the function on arrays, once it was looked up
        later: Any = None
        self.both = self.first = self.second = later    # which inputs a gradient reaches; the engine's part
        self.looks = later                              # what the rules look at, once it was asked

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Apply the operation to floats, arrays, or operands (which record it in their own way)."""
        given = len(inputs)
        if given < len(self.rules):
            left_out = list(self.defaults)[given - len(self.rules):]
            inputs += tuple(named.pop(name, self.defaults[name]) for name in left_out)
        if named or len(inputs) != len(self.rules):
            raise TypeError(f"{self.name} takes {len(self.rules)} inputs, got {given}{''.join(f' and {x}=' for x in named)}"
                            + f"; by name it knows {', '.join(self.defaults)}" * bool(self.defaults))
        for x in inputs:
            if x.__class__ is not float and x.__class__ is not bool:
                break
        else:
            return self.scalar(*inputs)
        operands = [x for x in inputs if isinstance(x, Operand)]
        if operands:
            return max(operands, key=lambda x: x.rank).apply(self, *inputs)
        if any(hasattr(x, "dtype") for x in inputs):
            return self.on_arrays(*inputs)
        return self.scalar(*(x if isinstance(x, bool) else number(x, self.name) for x in inputs))

    def scalar(self, *inputs: float) -> float:
        """The value on floats; where `math` raises, the IEEE value."""
        try:
            return self.forward(*inputs)
        except (ArithmeticError, ValueError):
            if self.limit is not None:
                return self.limit(*inputs)
        try:
            return float(self.forward(*map(Ieee, inputs)))
        except (ArithmeticError, ValueError):
            return nan

    def on_arrays(self, *inputs: Any) -> Any:
        """The value on NumPy arrays."""
        return (self.kernel or self.array_kernel())(*inputs)

    def array_kernel(self) -> Callable:
        """NumPy's own function where there is one, else the line itself; looked up once.

        Its warnings are silenced (inf and nan are answers), but for the operations that are quicker than that.
        """
        if self.kernel is None:
            import functools

            import numpy  # only a caller with arrays comes here

            kernel = (functools.partial(self.array, numpy) if callable(self.array)
                      else getattr(numpy, self.array) if self.array else self.forward)
            quick = self.name in ("add", "sub", "mul", "neg", "abs", "relu", "maximum", "minimum", "where", "equal")
            self.kernel = kernel if quick else numpy.errstate(all="ignore")(kernel)
        return self.kernel

    def partial(self, i: int, *inputs: Any) -> Any:
        """The derivative of the value by input `i`: its rule, for a gradient of one."""
        y = self(*inputs)
        try:
            return self.rules[i](1.0, *inputs, y)
        except ArithmeticError:
            return float(self.rules[i](1.0, *map(Ieee, inputs), Ieee(y)))

    def __reduce__(self) -> Any:
        return (_named, (self.name,)) if TABLE.get(self.name) is self else super().__reduce_ex__(2)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


class Ieee(float):
    """A float with the arithmetic of IEEE 754, where Python's raises: rules that raised run again on these."""

    def __neg__(self) -> Ieee: return Ieee(-float(self))


def number(x: Any, where: str = "Value") -> float:
    """The Python float in `x`: an int, a bool, a NumPy scalar or an array of one element without axes."""
    if isinstance(x, (str, bytes, complex)) or bool(getattr(x, "ndim", 0)) or not hasattr(x, "__float__"):
        raise TypeError(f"{where} takes a real number, got {type(x).__name__} {x!r:.60}; "
                        "an array goes into a Tensor, text is converted with float(...)")
    return float(x)


def unary(name: str, forward: Callable, rule: Callable | None, **more: Any) -> Operation:
    """A line of the table with one input, `x -> y`."""
    return _enter(Operation(name, name, forward, (rule,), **more))


def binary(symbol: str, forward: Callable, to_a: Callable | None, to_b: Callable | None, name: str | None = None,
           **more: Any) -> Operation:
    """A line of the table with two inputs, `a, b -> y`."""
    return _enter(Operation(name or symbol, symbol, forward, (to_a, to_b), **more))


def _enter(operation: Operation) -> Operation:
    if operation.name in TABLE:
        raise ValueError(f"there is an operation {operation.name!r} already; choose another name")
    TABLE[operation.name] = operation
    return operation


def _power_limit(a: float, b: float) -> float:
    """a ** b where `math.pow` raises: overflow, a zero base, or a root of a negative number."""
    if a < 0 and not float(b).is_integer():
        return nan
    return math.copysign(inf, a) if b % 2 == 1 else inf


def _where_arrays(np: Any, c: Any, a: Any, b: Any) -> Any:
    """numpy.where; a large array against 0 by a product with the mask, several times as fast, unless inf * 0 made a nan."""
    if not getattr(c, "ndim", 0):
        chosen = np.asarray(a if c else b, np.result_type(a, b))
        return chosen if np.shape(a) == np.shape(b) else np.broadcast_to(chosen, np.broadcast(a, b).shape).copy()
    if c.size < 2048:
        return np.where(c, a, b)
    x, mask = (b, ~c) if a.__class__ is float and a == 0.0 else (a, c) if b.__class__ is float and b == 0.0 else (None, c)
    if getattr(x, "shape", 0) == c.shape:
        chosen = x * mask
        length = np.vdot(chosen, chosen)
        if length == length:
            return chosen
    return np.where(c, a, b).astype(np.result_type(a, b), copy=False)


def choose(condition: Any, a: Any, b: Any) -> Any:
    """`where` inside of rules: a plain condition is decided at once, so that the other branch leaves no trace."""
    if condition.__class__ is bool:
        return a if condition else b
    if isinstance(condition, Operand) or isinstance(a, Operand) or isinstance(b, Operand):
        return where(condition, a, b)
    return where.on_arrays(condition, a, b) if getattr(condition, "ndim", 0) else a if condition else b


def _named(name: str) -> Operation:
    return TABLE[name]


# ---------------------------------------------------------------------------------- the table
# y = forward(inputs); g is the gradient that arrives at y; each lambda says what its input receives.

# arithmetic
add = binary("+", operator.add, lambda g, a, b, y: g, lambda g, a, b, y: g, "add")
sub = binary("-", operator.sub, lambda g, a, b, y: g, lambda g, a, b, y: -g, "sub")
mul = binary("*", operator.mul, lambda g, a, b, y: g * b, lambda g, a, b, y: g * a, "mul")
div = binary("/", operator.truediv, lambda g, a, b, y: g / b, lambda g, a, b, y: -g * (a / b / b), "div",
             limit=lambda a, b: nan if a == 0 or a != a else math.copysign(inf, a) * math.copysign(1, b))
pow = binary("**", math.pow, lambda g, a, b, y: choose(equal(b, 0), 0.0, g * (b * pow(a, b - 1))),
             lambda g, a, b, y: choose(equal(a, 0) & (b >= 0), 0.0, g * (y * log(a))), "pow",
             limit=_power_limit, array=lambda np, a, b: a ** b)
neg = unary("neg", operator.neg, lambda g, x, y: -g)

# choices; where a branch is not taken its gradient is 0, whatever comes from above
equal = _enter(Operation("equal", "==", operator.eq, (None, None)))
where = _enter(Operation("where", "where", lambda c, a, b: a if c else b,
                         (None, lambda g, c, a, b, y: choose(c, g, 0.0), lambda g, c, a, b, y: choose(c, 0.0, g)),
                         array=_where_arrays))
maximum = binary("maximum", lambda a, b: a if a > b or a != a else b,
                 lambda g, a, b, y: choose(equal(a, b), g / 2, choose(a < b, 0.0, g)),
                 lambda g, a, b, y: choose(equal(a, b), g / 2, choose(b < a, 0.0, g)), array="maximum")
minimum = binary("minimum", lambda a, b: a if a < b or a != a else b,
                 lambda g, a, b, y: choose(equal(a, b), g / 2, choose(a > b, 0.0, g)),
                 lambda g, a, b, y: choose(equal(a, b), g / 2, choose(b > a, 0.0, g)), array="minimum")
clamp_min = binary("clamp_min", lambda x, low: maximum(x, low), lambda g, x, low, y: choose(x >= low, g, 0.0),
                   lambda g, x, low, y: choose(x < low, g, 0.0))
clamp_max = binary("clamp_max", lambda x, high: minimum(x, high), lambda g, x, high, y: choose(x <= high, g, 0.0),
                   lambda g, x, high, y: choose(x > high, g, 0.0))
abs = unary("abs", abs, lambda g, x, y: g * sign(x))
sign = unary("sign", lambda x: float((x > 0) - (x < 0)), lambda g, x, y: 0.0 * sign(g),
             array=lambda np, x: np.nan_to_num(np.sign(x), nan=0.0))

# exponentials, logarithms, roots
exp = unary("exp", math.exp, lambda g, x, y: g * y, limit=lambda x: inf)
expm1 = unary("expm1", math.expm1, lambda g, x, y: g * (y + 1), limit=lambda x: inf)
log = unary("log", math.log, lambda g, x, y: g / x, limit=lambda x: -inf if x == 0 else nan)
log1p = unary("log1p", math.log1p, lambda g, x, y: g / (1 + x), limit=lambda x: -inf if x == -1 else nan)
sqrt = unary("sqrt", math.sqrt, lambda g, x, y: g / y * 0.5)

# trigonometry and its hyperbolic cousins
sin = unary("sin", math.sin, lambda g, x, y: g * cos(x))
cos = unary("cos", math.cos, lambda g, x, y: -g * sin(x))
tan = unary("tan", math.tan, lambda g, x, y: g * (1 + y * y))
atan = unary("atan", math.atan, lambda g, x, y: g / (1 + x * x), array="arctan")
sinh = unary("sinh", math.sinh, lambda g, x, y: g * cosh(x), limit=lambda x: math.copysign(inf, x))
cosh = unary("cosh", math.cosh, lambda g, x, y: g * sinh(x), limit=lambda x: inf)
tanh = unary("tanh", math.tanh, lambda g, x, y: g * (1 - y * y))

for _name, _op in {"add": add, "sub": sub, "mul": mul, "truediv": div, "pow": pow}.items():
    setattr(Ieee, f"__{_name}__", lambda self, other, op=_op: Ieee(op.scalar(float(self), float(other))))
    setattr(Ieee, f"__r{_name}__", lambda self, other, op=_op: Ieee(op.scalar(float(other), float(self))))

# activations, each in a form that neither overflows nor loses a small value
sigmoid = unary("sigmoid", lambda x: 1 / (1 + exp(-x)), lambda g, x, y: g * (y * (1 - y)))
relu = unary("relu", lambda x: x if x > 0 or x != x else 0.0, lambda g, x, y: choose(y <= 0, 0.0, g),
             array=lambda np, x: np.maximum(x, 0))
leaky_relu = binary("leaky_relu", lambda x, slope: choose(x > 0, x, x * slope),
                    lambda g, x, slope, y: choose(x > 0, g, g * slope), lambda g, x, slope, y: choose(x > 0, 0.0, g * x),
                    defaults={"negative_slope": 0.01})
elu = binary("elu", lambda x, alpha: choose(x >= 0, x, alpha * expm1(minimum(x, 0.0))),
             lambda g, x, alpha, y: choose(x <= 0, g * (alpha * exp(-relu(-x))), g),
             lambda g, x, alpha, y: choose(x > 0, 0.0, g * expm1(minimum(x, 0.0))), defaults={"alpha": 1.0})
softplus = unary("softplus", lambda x: maximum(x, 0.0) + log1p(exp(-abs(x))), lambda g, x, y: g * sigmoid(x))
logsigmoid = unary("logsigmoid", lambda x: minimum(x, 0.0) - log1p(exp(-abs(x))), lambda g, x, y: g * sigmoid(-x))
silu = unary("silu", lambda x: x * sigmoid(x), lambda g, x, y: g * (sigmoid(x) * (1 + x * (1 - sigmoid(x)))))
erf = unary("erf", math.erf, lambda g, x, y: g * (2 / math.sqrt(math.pi) * exp(-x * x)),
            array=lambda np, x: np.vectorize(math.erf, otypes=[x.dtype])(x))
_INVERSE_ROOT_2 = math.sqrt(0.5)
gelu_erf = unary("gelu", lambda x: x * (0.5 * (1 + erf(x * _INVERSE_ROOT_2))),
                 lambda g, x, y: g * (0.5 * (1 + erf(x * _INVERSE_ROOT_2)) + x * exp(-0.5 * x * x) / math.sqrt(2 * math.pi)))
gelu_tanh = unary("gelu_tanh", lambda x: 0.5 * x * (1 + _bend(x)),
                  lambda g, x, y: g * (0.5 * (1 + _bend(x)) + 0.5 * x * (1 - _bend(x) * _bend(x))
                                       * (_ROOT_2_BY_PI * (1 + 3 * 0.044715 * x * x))))
_ROOT_2_BY_PI = math.sqrt(2 / math.pi)


def _bend(x: Any) -> Any:
    """The tanh in the approximation of gelu (Hendrycks and Gimpel, 2016)."""
    return tanh(_ROOT_2_BY_PI * (x + 0.044715 * x * x * x))


def gelu(x: Any, approximate: str = "none") -> Any:
    """x times the normal distribution function of x, exactly or (approximate="tanh") by a tanh.

    >>> round(gelu(1.0), 6), round(gelu(1.0, approximate="tanh"), 6)
    (0.841345, 0.841192)
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu's approximate is 'none' or 'tanh', got {approximate!r}")
    return gelu_tanh(x) if approximate == "tanh" else gelu_erf(x)


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    """x held between min and max, either of which may be None; the gradient at a bound is 1.

    >>> clamp(3.0, 0.0, 1.0), clamp(-3.0, min=-1.0)
    (1.0, -1.0)
    """
    if min is None and max is None:
        raise ValueError("clamp needs min, max or both; neither was given")
    x = x if min is None else clamp_min(x, min)
    return x if max is None else clamp_max(x, max)


# ------------------------------------------------------------------- what every operand can do
def _method(op: Operation) -> Callable[[Operand], Any]:
    """x.exp() and its like."""
    def method(self: Operand) -> Any: return self.unary(op)
    method.__name__, method.__doc__ = op.name, f"{op.name}(self), elementwise."
    return method


def _operators(op: Operation) -> tuple[Callable, Callable, Callable]:
    """self op other, other op self, self op= other."""
    return (lambda self, other: self.binary(op, other), lambda self, other: self.reflected(op, other),
            lambda self, other: self.in_place(op, other))


class Operand:
    """Anything that can stand in a formula: it hands each operator and method to the table.

    A subclass says what it means to apply an operation, in `apply(op, *inputs)`: a Value records a
    node, a name writes a line of source. `unary`, `binary` and `reflected` may be made faster.
    """

    __slots__ = ()
    rank = 0                    # of several operands in one operation, the highest rank decides
    __array_ufunc__ = None      # `ndarray * operand` and `numpy.float64 * operand` are ours to answer

    def apply(self, op: Operation, *inputs: Any) -> Any:
        """The result of `op` on `inputs`, one of which is this operand."""
        raise NotImplementedError

    def unary(self, op: Operation) -> Any:
        """op(self)"""
        return self.apply(op, self)

    def binary(self, op: Operation, other: Any) -> Any:
        """op(self, other)"""
        return self.apply(op, self, other)

    def reflected(self, op: Operation, other: Any) -> Any:
        """op(other, self)"""
        return self.apply(op, other, self)

    def in_place(self, op: Operation, other: Any) -> Any:
        """self op= other, which by default makes a new operand."""
        return self.binary(op, other)

    __add__, __radd__, __iadd__ = _operators(add)
    __sub__, __rsub__, __isub__ = _operators(sub)
    __mul__, __rmul__, __imul__ = _operators(mul)
    __truediv__, __rtruediv__, __itruediv__ = _operators(div)
    __pow__, __rpow__, __ipow__ = _operators(pow)
    def __neg__(self) -> Any: return self.unary(neg)
    def __pos__(self) -> Any: return self
    def __abs__(self) -> Any: return self.unary(abs)
    def pow(self, exponent: Any) -> Any: return self.binary(pow, exponent)
    def maximum(self, other: Any) -> Any: return self.binary(maximum, other)
    def minimum(self, other: Any) -> Any: return self.binary(minimum, other)
    def clamp(self, min: Any = None, max: Any = None) -> Any: return clamp(self, min, max)
    def where(self, condition: Any, other: Any) -> Any: return where(condition, self, other)
    def leaky_relu(self, negative_slope: Any = 0.01) -> Any: return self.binary(leaky_relu, negative_slope)
    def elu(self, alpha: Any = 1.0) -> Any: return self.binary(elu, alpha)
    def gelu(self, approximate: str = "none") -> Any: return gelu(self, approximate)
    abs, sign, exp, expm1, log, log1p, sqrt, erf = map(_method, (abs, sign, exp, expm1, log, log1p, sqrt, erf))
    sin, cos, tan, atan, sinh, cosh, tanh = map(_method, (sin, cos, tan, atan, sinh, cosh, tanh))
    sigmoid, relu, silu, softplus, logsigmoid = map(_method, (sigmoid, relu, silu, softplus, logsigmoid))
