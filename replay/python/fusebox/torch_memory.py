"""torch tensors as arguments and results, without copies. torch is imported at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from fusebox import _fusebox
from fusebox.enums import dtype_word, torch_dtype
from fusebox.errors import FuseboxError
from fusebox.fusion import count
from fusebox.values import number

if TYPE_CHECKING:
    import torch

Number = bool | int | float | complex


def listed(inputs: Any) -> list[Any]:
    try:
        iter(inputs)
    except TypeError:
        raise FuseboxError("E0401", f"the inputs are a list of tensors and numbers, not {type(inputs).__name__}", "inputs") from None
    return list(inputs)


def device_of(inputs: Sequence[Any], device: Any, may_be_meta: bool = False) -> "torch.device":
    """The given device, or that of the inputs; the CPU if no input has one. `may_be_meta`: tensors of the device `meta` may stand beside any."""
    import torch

    try:
        wanted = None if device is None else torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        raise FuseboxError("E0401", 'PyTorch has no such device; give "cpu" or "cuda"', repr(device)) from None
    if wanted is not None and wanted.type == "cuda" and wanted.index is None:
        wanted = torch.device("cuda", torch.cuda.current_device() if torch.cuda.is_available() else 0)
    if wanted is not None and wanted.type == "cpu":
        wanted = torch.device("cpu")  # there is one, whatever its index
    for i, t in enumerate(inputs):
        # A tensor without axes may stay on the CPU beside others on a GPU.
        if not isinstance(t, torch.Tensor) or (t.device.type == "cpu" and t.dim() == 0 and len(inputs) > 1):
            continue
        if may_be_meta and t.device.type == "meta":
            continue
        if wanted is None:
            wanted = t.device
        elif t.device != wanted:
            raise FuseboxError("E0401", f"the input is on {t.device}, and the fusion runs on {wanted}; move one of them", f"inputs[{i}]")
    wanted = wanted or torch.device("cpu")
    if wanted.type not in ("cpu", "cuda"):
        raise FuseboxError("E0401", f"a fusion runs on the CPU or on CUDA, not on {wanted}; move the inputs", str(wanted))
    return wanted


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _address(value: "torch.Tensor", place: str, is_read: bool) -> int:
    """Where the tensor's memory lies. Fake tensors, and tensors inside a transform of torch.func, have none: E0401 if it is to be read."""
    address: int | None = None
    try:
        address = value.data_ptr()
    except RuntimeError:  # inside a transform
        pass
    if is_read and (address is None or (address == 0 and value.numel() > 0)):
        raise FuseboxError(
            "E0401", "the tensor has no memory: it is fake, or a transform such as torch.func.vmap or grad made it; call the fusion outside of that", place
        )
    return address or 0


def argument(value: Any, place: str, device: "torch.device", is_read: bool = True) -> object:
    """The value as the extension takes it: (address, dtype, shape, strides, owner), or the number. `is_read`: whether its memory is needed."""
    import torch

    value = number(value)
    if _is_number(value):
        return value
    if not isinstance(value, torch.Tensor):
        raise FuseboxError("E0401", f"an input is a torch tensor or a number, not {type(value).__name__}", place)
    check_strided(value, place)
    if value.is_conj() or value.is_neg():
        raise FuseboxError("E0401", "the tensor is a lazy conjugate or negative; call resolve_conj() or resolve_neg() first", place)
    if value.device != device:
        value = value.to(device)  # a tensor without axes: device_of refused the others
    return (_address(value, place, is_read), dtype_word(value.dtype), list(value.shape), list(value.stride()), value)


def host_argument(value: Any, place: str) -> object:
    """The same in host memory: a CPU tensor itself, another tensor as a copy with the same strides. E0401 for a tensor of the device `meta`."""
    import torch

    if isinstance(value, torch.Tensor) and value.device.type != "cpu":
        check_strided(value, place)
        if value.device.type == "meta":
            raise FuseboxError("E0401", "a tensor of the device meta has no values; give one that has", place)
        value = _elements(value).cpu().as_strided(value.shape, value.stride(), 0)
    return argument(value, place, torch.device("cpu"))


def twin(value: Any) -> Any:
    """A copy of a tensor with the same strides, also where they are 0; anything else as it is."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_nested:
        return value
    return _elements(value).clone().as_strided(value.shape, value.stride(), 0)


def _elements(value: "torch.Tensor") -> "torch.Tensor":
    """A view of the memory from the first element to the last one."""
    span = 0 if value.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride()))
    return value.as_strided((span,), (1,))


def check_strided(value: "torch.Tensor", place: str) -> None:
    import torch

    if value.layout != torch.strided:
        raise FuseboxError("E0401", f"a tensor of layout {value.layout} has no strides; make it dense", place)
    if value.is_nested:
        raise FuseboxError("E0401", "a nested tensor has no shape; pad it by to_padded_tensor", place)


def shapes(inputs: Sequence[Any]) -> list[list[int]]:
    """The shapes of the tensors among the inputs; tensors may be of any device."""
    import torch

    tensors = [(v, f"inputs[{i}]") for i, v in enumerate(inputs) if isinstance(v, torch.Tensor)]
    for tensor, place in tensors:
        check_strided(tensor, place)
    return [list(tensor.shape) for tensor, _ in tensors]


def layouts(inputs: Sequence[Any]) -> list[object]:
    """The inputs as the extension takes them where it looks at no value: tensors of any device."""
    import torch

    return [argument(v, f"inputs[{i}]", v.device if isinstance(v, torch.Tensor) else torch.device("cpu"), False) for i, v in enumerate(inputs)]


def run(program: _fusebox.Program, inputs: Sequence[Any], device: "torch.device", threads: int) -> "list[torch.Tensor | Number]":
    arguments, ordinal, stream = _arguments(inputs, device)
    threads = count(threads, "the number of threads")
    return _outputs(program.execute(arguments, ordinal, threads, stream), device)


def profile(program: _fusebox.Program, inputs: Sequence[Any], device: "torch.device", runs: int, threads: int) -> dict[str, Any]:
    arguments, ordinal, _ = _arguments(inputs, device, waits=True)
    return program.profile(arguments, ordinal, count(threads, "the number of threads"), count(runs, "the number of runs"))


def tune(program: _fusebox.Program, inputs: Sequence[Any], device: "torch.device", runs: int) -> tuple[_fusebox.Program, list[tuple[str, str, str, float, float, int]]]:
    arguments, ordinal, _ = _arguments(inputs, device, waits=True)
    return program.tune(arguments, ordinal, count(runs, "the number of runs"))


def plan(
    program: _fusebox.Program, inputs: Sequence[Any], device: "torch.device"
) -> list[tuple[str, str, list[tuple[str, int | str]], list[tuple[str, str]]]]:
    return program.plan_of(layouts(inputs), -1 if device.type != "cuda" else device.index)


def calls() -> Any:
    """A store of calls that need no planning, or None if this PyTorch is not the one that Fusebox was built for."""
    try:
        from fusebox import _fusebox_torch
    except ImportError:
        return None
    return _fusebox_torch.Calls()


def first_call(program: _fusebox.Program, known: Any, inputs: list[Any], device: "torch.device") -> "list[torch.Tensor] | None":
    """Plans a call, keeps it in `known`, and makes it. None if this program, or inputs like these, need the slower way."""
    import torch

    if known is None or any(isinstance(v, torch.Tensor) and v.device != device for v in inputs):
        return None
    ready = program.fast_call([argument(v, f"inputs[{i}]", device) for i, v in enumerate(inputs)], device.index)
    if ready is None or not known.add(inputs, ready):
        return None
    return known.call(inputs)


class Launcher:
    """A run that can be repeated on the same memory: `FusionDefinition.launcher` makes it."""

    def __init__(self, program: _fusebox.Program, inputs: Sequence[Any], device: "torch.device") -> None:
        arguments, ordinal, _ = _arguments(inputs, device, waits=True)
        self._launcher = program.launcher(arguments, ordinal)
        self.outputs = _outputs(self._launcher.outputs(), device)
        """As `execute` returns them. Each launch writes this memory."""

    def launch(self) -> None:
        """Runs the kernels again, with the copies and clears between them. On a GPU it returns at once; the work takes its turn on CUDA's
        default stream, which is PyTorch's too, so events of PyTorch can time it. In-place outputs read what the run before left."""
        self._launcher.launch()


def _arguments(inputs: Sequence[Any], device: "torch.device", waits: bool = False) -> tuple[list[object], int, int]:
    """The arguments, the number of the GPU or -1, and the current stream. `waits`: for work on another stream than that."""
    import torch

    arguments = [argument(value, f"inputs[{i}]", device) for i, value in enumerate(inputs)]
    if device.type != "cuda":
        return arguments, -1, 0
    stream = torch.cuda.current_stream(device)
    if waits:
        stream.synchronize()  # kernels that make the inputs may still run
    return arguments, device.index, stream.cuda_stream


def _bytes_of(capsule: object, by_aten: object | None) -> "torch.Tensor":
    """The memory of an output. What an ATen segment made is PyTorch's own tensor, so that its allocator knows the memory (record_stream)."""
    import torch

    if by_aten is not None:
        try:
            from fusebox import _fusebox_torch
        except ImportError:  # another PyTorch than the one that Fusebox was built for
            pass
        else:
            return _fusebox_torch.output_by_aten(by_aten)
    return torch.utils.dlpack.from_dlpack(capsule)


def _outputs(results: Sequence[tuple[object | None, str, list[int], list[int], Number, object | None]], device: "torch.device") -> "list[torch.Tensor | Number]":
    import torch

    outputs: list[torch.Tensor | Number] = []
    for capsule, word, shape, strides, number, by_aten in results:
        if capsule is None:
            outputs.append(number)
            continue
        dtype = torch_dtype(word)
        if 0 in shape:
            outputs.append(torch.empty_strided(shape, strides, dtype=dtype, device=device))
        else:
            outputs.append(_bytes_of(capsule, by_aten).view(dtype).as_strided(shape, strides))
    return outputs
