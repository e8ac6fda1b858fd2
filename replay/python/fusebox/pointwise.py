"""Operations that compute element by element: one method for each row of the op table. pointwise.pyi lists them."""

from __future__ import annotations

from typing import Callable

from fusebox import _fusebox
from fusebox.errors import FuseboxAttributeError, FuseboxError
from fusebox.fusion import Fusion
from fusebox.values import Operand, Scalar, Tensor, raw, wrap

# Operand names in the front ends that users know. Other ops take `arg`, or `arg1` and `arg2`.
_NAMES: dict[str, tuple[str, ...]] = {
    "lerp": ("start", "end", "weight"),
    "where": ("condition", "input", "other"),
    "clamp": ("input", "min", "max"),
    "threshold": ("input", "threshold", "value"),
    "addcmul": ("input", "tensor1", "tensor2", "value"),
}
_OPERANDS = dict(_fusebox.pointwise_ops())


def _missing(name: str) -> FuseboxAttributeError:
    """The error about a name without a function: the op is unknown, is not supported yet, or cannot be called in Python."""
    try:
        _fusebox.check_op(name)
    except FuseboxError as e:
        return FuseboxAttributeError(e.code, e.message, e.place)
    return FuseboxAttributeError("E0212", "this op has no function in Python", name)


def _power(given: list[Operand]) -> tuple[str, list[Operand]]:
    """torch.pow takes the root where a tensor's exponent is a number: NaN for -inf, and -0.0 for -0.0, unlike a general power."""
    if isinstance(given[0], Tensor) and isinstance(given[1], float) and abs(given[1]) == 0.5:
        return "sqrt" if given[1] > 0 else "rsqrt", given[:1]
    return "pow", given


class Pointwise:
    def __init__(self, fd: Fusion) -> None:
        self._fd = fd

    def __getattr__(self, name: str) -> Callable[..., Tensor | Scalar]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _OPERANDS:
            raise _missing(name)

        def call(*operands: Operand, **named: Operand) -> Tensor | Scalar:
            return self._call(name, operands, named)

        call.__name__ = name
        return call

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *_OPERANDS})

    def _call(self, name: str, operands: tuple[Operand, ...], named: dict[str, Operand]) -> Tensor | Scalar:
        names = _NAMES.get(name, ("arg",) if _OPERANDS[name] == 1 else ("arg1", "arg2"))
        given = list(operands)
        for wanted in names[len(given):]:
            if wanted not in named:
                break
            given.append(named.pop(wanted))
        if name == "addcmul" and len(given) == 3 and not named:
            given.append(1)
        if twice := sorted(set(named) & set(names[: len(given)])):
            raise FuseboxError("E0202", f"{name} has its operand {twice[0]} already; give it once", name)
        if named and set(named) <= set(names):
            raise FuseboxError("E0202", f"{name} needs its operand {names[len(given)]} too", name)
        if named:
            raise FuseboxError("E0202", f"{name} has no operand of the name {', '.join(sorted(named))}; it takes {', '.join(names)}", name)
        if name == "pow":
            name, given = _power(given)
        return wrap(self._fd, self._fd.program.pointwise(name, [raw(o) for o in given]))
