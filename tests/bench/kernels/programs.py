"""A .fir file as the benchmark needs it: its text, its inputs at any size, and the bytes that a run must move.

    p = Program.read("corpus/schedules/softmax.fir")
    inputs = p.inputs("gpu", {"m": 64}, device)     # {"x": tensor of shape [64, n]}
"""

import math
import pathlib
import re
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[3]

_DTYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64", "i64": "int64", "i32": "int32", "i8": "int8", "bool": "bool"}
_TENSOR = re.compile(r"%(\w+) = (\w+)\[([\d, ]*)\](?: strides \[([\d, ]*)\])? (\w+)((?: -?[\d.]+)*?)(?: seed (\d+))?$")
_SCALAR = re.compile(r"%(\w+) = (-?[\d.]+)_(\w+)$")
_DECLARED = re.compile(r"%(\w+) = input (\w+)\[([^\]]*)\]")
_OUTPUT = re.compile(r"output %(\w+)(?: alias %(\w+))?$")


@dataclass(frozen=True)
class Spec:
    """One line of an `inputs` block. Each axis is a symbol's name, or "" where its extent is fixed."""

    name: str
    dtype: str
    symbols: tuple = ()
    shape: tuple = ()
    strides: tuple = ()
    generator: str = ""
    arguments: tuple = ()
    seed: int = 0
    value: float | None = None  # of a scalar


def contiguous_strides(shape):
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


def stored_elements(tensor):
    """The elements in memory: an axis of stride 0 counts once."""
    return math.prod(n for n, stride in zip(tensor.shape, tensor.stride()) if stride != 0)


def stored_bytes(tensor):
    return stored_elements(tensor) * tensor.element_size()


def _integers(text):
    return tuple(int(n) for n in (text or "").split(",") if n.strip())


class Program:
    """The main fusion of a file. `outputs` are (name, overwritten input or "") in order."""

    def __init__(self, text, path=None):
        self.path = path
        self.text = text
        lines = [line.split("//")[0].strip() for line in text.splitlines()]
        self.fusion = re.search(r"fusion @(\w+)", text)[1]
        self._axes = {m[1]: [a.strip() for a in m[3].split(",")] for m in map(_DECLARED.match, lines) if m}
        self.outputs = [(m[1], m[2] or "") for m in map(_OUTPUT.match, lines) if m]
        self._specs = {where: self._read_specs(where) for where in re.findall(rf"inputs @{self.fusion} (\w+)", text)}

    @classmethod
    def read(cls, path):
        path = ROOT / path
        return cls(path.read_text(), path)

    def fast(self):
        """The text with every op fast that can be, or None if there is no such op."""
        ops = "cos|div|exp|exp2|log|log10|log2|reciprocal|rsqrt|sigmoid|silu|sin|sqrt|tanh|truediv"
        if not re.search(rf"= ({ops}) %", self.text):
            return None
        head = f"steps @{self.fusion} {{\n"
        if head not in self.text:
            return self.text + f"\n{head}  precision of [] fast\n}}\n"
        return self.text.replace(head, head + "  precision of [] fast\n")

    def automatic(self):
        """The text without its schedule, with every op fast that can be: schedulers decide."""
        bare = Program(re.sub(rf"steps @{self.fusion} \{{.*?\n\}}\n", "", self.text, flags=re.S))
        return bare.fast() or bare.text

    def _read_specs(self, where):
        block = re.search(rf"inputs @{self.fusion} {where} \{{(.*?)\n\}}", self.text, re.S)[1]
        specs = []
        for line in filter(None, (line.split("//")[0].strip() for line in block.splitlines())):
            if m := _SCALAR.match(line):
                specs.append(Spec(m[1], m[3], value=float(m[2])))
            elif m := _TENSOR.match(line):
                symbols = tuple(a[1:] if a.startswith("%") else "" for a in self._axes[m[1]] if a)
                arguments = tuple(float(a) for a in m[6].split())
                specs.append(Spec(m[1], m[2], symbols, _integers(m[3]), _integers(m[4]), m[5], arguments, int(m[7] or 0)))
            else:
                raise ValueError(f"{self.path}: this line of the inputs is not understood: {line}")
        return specs

    def sizes(self, where):
        """The extent of each symbol."""
        return {s: n for spec in self._specs[where] for s, n in zip(spec.symbols, spec.shape) if s}

    def inputs(self, where, sizes=None, device="cpu"):
        """The inputs by name, in order. `sizes` replaces extents of symbols; a bound of integers that was such an extent, and padded
        strides, follow."""
        known = self.sizes(where)
        wanted = {**known, **(sizes or {})}
        return {spec.name: self._make(spec, known, wanted, device) for spec in self._specs[where]}

    def _make(self, spec, known, wanted, device):
        import torch

        if spec.value is not None:
            return spec.value
        shape = tuple(wanted[s] if s else n for s, n in zip(spec.symbols, spec.shape))
        strides = contiguous_strides(shape)
        if spec.strides:
            gaps = [a - b for a, b in zip(spec.strides, contiguous_strides(spec.shape))]
            strides = tuple(s + gap for s, gap in zip(strides, gaps))
        dtype = getattr(torch, _DTYPES[spec.dtype])
        storage = torch.empty(1 + sum((n - 1) * s for n, s in zip(shape, strides)) if math.prod(shape) else 0, dtype=dtype, device=device)
        tensor = storage.as_strided(shape, strides)
        random = torch.Generator(device).manual_seed(spec.seed)
        if spec.generator == "normal":
            tensor.normal_(generator=random)
        elif spec.generator == "uniform" and dtype.is_floating_point:
            tensor.uniform_(*spec.arguments, generator=random)
        elif spec.generator in ("integers", "uniform"):
            low, high = (int(a) for a in spec.arguments)
            moved = {known[s]: wanted[s] for s in known if known[s] == high}
            tensor.copy_(torch.randint(low, moved.get(high, high), shape, generator=random, device=device))
        else:
            raise ValueError(f"{self.path}: no values are drawn by `{spec.generator}`")
        return tensor

    def moved_bytes(self, inputs, outputs):
        """(read, written): each input and each output once, an overwritten input both ways."""
        overwritten = {alias for _, alias in self.outputs if alias}
        read = {name: stored_bytes(t) for name, t in inputs.items() if not isinstance(t, float)}
        written = sum(map(stored_bytes, outputs)) + sum(read[name] for name in overwritten)
        return read, written
