"""FusionDefinition: a fusion that is defined op by op, perhaps scheduled, run on torch tensors, and recorded."""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, Sequence, SupportsIndex

from fusebox import _fusebox, generators, torch_memory
from fusebox.enums import DataType, DtypeLike, dtype_word, dtype_word_or_none
from fusebox.errors import FuseboxError
from fusebox.fusion import Fusion, as_integer, as_integers, flag, items, path_text, string
from fusebox.ops import Ops
from fusebox.profile import Profile, profile_of
from fusebox.sched import Schedule
from fusebox.torch_memory import Launcher
from fusebox.values import Operand, Scalar, Tensor, number, raw, raw_tensor, wrap

if TYPE_CHECKING:
    import torch

class CacheInfo(NamedTuple):
    """Figures of `FusionDefinition.cache_info`."""

    hits: int
    misses: int
    kept: int
    disk_hits: int = 0
    disk_misses: int = 0
    plans_made: int = 0
    recompiles: tuple[str, ...] = ()
    plans_shared: int = 0


class Decision(NamedTuple):
    """How the automatic plan schedules one segment: see `FusionDefinition.plan`."""

    segment: str
    scheduler: str
    choices: dict[str, int | str]
    declined: dict[str, str]


_FALSE, _TRUE, _NONE = 0, 1, 2  # contiguity of an axis; a broadcast has none


class TunedSegment(NamedTuple):
    """The findings of `tune` for one segment: heuristics as text, and the times of the whole fusion in microseconds."""

    segment: str
    chosen: str
    """By the scheduler."""
    fastest: str
    before_us: float
    after_us: float
    tries: int
    """Schedules that were timed."""


class Tuned(NamedTuple):
    """A fusion with the fastest steps that `tune` found."""

    definition: FusionDefinition
    segments: tuple[TunedSegment, ...]


def _memory(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The memory of a tensor and its layout there. `x.data = y` changes it and leaves the version of x as it is."""
    return tensor.data_ptr(), tensor.shape, tensor.stride()


def _kept(value: Any) -> tuple[Any, ...]:
    """An input of a run for `record`: a number; or a tensor, weakly where it has a version, with that version and its memory."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value, -1
    return (value, -1, _memory(value)) if value.is_inference() else (weakref.ref(value), value._version, _memory(value))


class FusionDefinition(Fusion):
    """A fusion, defined inside `with` or without it. `ops` has the operations, `sched` the schedule steps. Without steps schedulers decide."""

    def __init__(self, name: str = "fusion", *, precision: str = "fast", unfused: bool = False, defects: Sequence[str] = ()) -> None:
        """`precision`: "fast" lets a GPU compute elementary functions and divisions of f32 and narrower floats by its approximations, which
        are at most a few ulp off; "exact" gives the bits of the host executor on every GPU. A step `precision` says otherwise for single ops,
        and bundles record which. `unfused`: without steps each operation is a kernel, instead of the automatic plan. `defects` names seeded defects: rules that
        every compilation of this program breaks on purpose."""
        super().__init__(name)
        self._set_precision(precision)
        self.program.set_unfused(flag(unfused, "unfused"))
        self.program.set_defects([string(d, "a defect") for d in items(defects, "the argument defects")])
        self._in_place: list[str] = []
        self._forget_runs()

    def _forget_runs(self) -> None:
        self._last: list[tuple[Any, ...]] | None = None  # inputs of the last run (_kept); those of a repeated call on a GPU have no memory
        self._last_device: torch.device | None = None
        self._calls: Any = None  # calls on a GPU that need no planning; None before the first one

    # Made anew each time: a definition that held them would be in a cycle of references. Then only Python's collector would end it, with the
    # kernels that it loaded, at any moment.
    @property
    def ops(self) -> Ops:
        """The operations."""
        return Ops(self)

    @property
    def sched(self) -> Schedule:
        """The schedule steps."""
        return Schedule(self)

    def copy(self) -> Self:
        """An independent copy of definition and steps, without anything of a run. A tensor of this fusion still belongs to this one. `ops` of the
        copy takes it if it was there before the copy; `sched` of the copy takes it for the copy's tensor of that name. The copy has the class
        of this definition; attributes that a subclass added are shared, and no `__init__` runs. `copy.copy` and `copy.deepcopy` give the same."""
        return self._copy_with(self.program.copy())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        message = "a definition cannot be pickled; send fd.to_string(), and read it by FusionDefinition.from_text"
        raise FuseboxError("E0212", message, f"@{self.program.name()}")

    def _copy_with(self, program: _fusebox.Program) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.program = program
        other._in_place = list(self._in_place)
        other._forget_runs()
        if self.drawn is not None:
            other.drawn = self.drawn._replace(tensors=list(self.drawn.tensors))
        return other

    def _set_precision(self, precision: str) -> None:
        if not isinstance(precision, str) or precision not in ("fast", "exact"):
            raise FuseboxError("E0440", 'a precision is "fast" or "exact"', repr(precision))
        self.program.set_fast(precision == "fast")

    @classmethod
    def from_text(cls, text: str, name: str = "", steps: str = "", *, precision: str = "fast") -> FusionDefinition:
        """The fusion of a text with its steps. `name` says which if there are several, `steps` which of its lists of steps."""
        names = string(name, "a fusion's name"), string(steps, "the name of a list of steps")
        return cls._of_program(_fusebox.Program.of_text(string(text, "a fusion's text"), *names), precision)

    @classmethod
    def _of_program(cls, program: _fusebox.Program, precision: str = "fast") -> FusionDefinition:
        fd = cls(program.name(), precision=precision)
        fd.program = program
        fd._set_precision(precision)
        fd._in_place = [info.name for info in fd.program.input_infos() if info.is_overwritten]
        return fd

    def __enter__(self) -> FusionDefinition:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    # -- signature
    def define_tensor(self, *args: Any, **kwargs: Any) -> Tensor:
        """define_tensor(shape, contiguity=True, dtype=Float, is_cpu=False, stride_order=[]): in the shape −1 is a symbol and 1 a broadcast.
        contiguity is one bool, or a list of True, False or None (a broadcast) for the axes in the order of their strides, the largest
        first. stride_order[i] is the place of axis i among the strides, 0 the smallest.
        define_tensor(sizes, strides, dtype=Float, static_sizes=False): an input like a tensor of these sizes and strides."""
        second = args[1] if len(args) > 1 else None
        if "sizes" in kwargs or "strides" in kwargs or as_integers(second):
            return self._define_like(*args, **kwargs)
        return self._define_shape(*args, **kwargs)

    def _define_shape(
        self,
        shape: Sequence[int],
        contiguity: bool | Sequence[bool | None] = True,
        dtype: DtypeLike = DataType.Float,
        is_cpu: bool = False,
        stride_order: Sequence[int] = (),
        name: str = "",
    ) -> Tensor:
        extents = as_integers(shape)
        if extents is None:
            raise FuseboxError("E0207", "a shape is a list of integers, -1 for a symbol", repr(shape))
        rank = len(extents)
        if flag(is_cpu, "is_cpu") and rank > 0:
            raise FuseboxError("E0212", "only a tensor without axes may stay on the CPU; leave out is_cpu", string(name, "a tensor's name") or "define_tensor")
        places = as_integers(stride_order)
        if places is None or sorted(places) not in ([], list(range(rank))):
            raise FuseboxError("E0207", f"a stride order is a list with the places 0 to {rank - 1}, each once", repr(stride_order))
        order = sorted(range(rank), key=[-p for p in places].__getitem__) if places else list(range(rank))
        if not isinstance(contiguity, (bool, list, tuple)):
            raise FuseboxError("E0207", "a contiguity is one bool, or a list of True, False or None", repr(contiguity))
        marks = [contiguity] * rank if isinstance(contiguity, bool) else list(contiguity)
        if len(marks) != rank:
            raise FuseboxError("E0207", f"a contiguity is one bool, or one for each of {rank} axes", repr(contiguity))
        by_axis = [_NONE] * rank
        for axis, mark in zip(order, marks):
            by_axis[axis] = _NONE if mark is None else _TRUE if flag(mark, "a mark of the contiguity") else _FALSE
        # An axis with an extent but no contiguity is an expanded broadcast.
        expanded = [n if by_axis[i] == _NONE and n != 1 else 1 for i, n in enumerate(extents)]
        return self._input(name, dtype, [1 if e != 1 else n for n, e in zip(extents, expanded)], by_axis, order, expanded)

    def _define_like(
        self, sizes: Sequence[int], strides: Sequence[int], dtype: DtypeLike = DataType.Float, static_sizes: bool = False, name: str = ""
    ) -> Tensor:
        given, steps = as_integers(sizes), as_integers(strides)
        if given is None or steps is None or len(given) != len(steps):
            raise FuseboxError("E0207", "sizes and strides are lists of integers, of one length", f"{sizes!r}, {strides!r}")
        return self._define_laid_out(given, steps, dtype, flag(static_sizes, "static_sizes"), name)

    def _define_laid_out(self, sizes: list[int], strides: list[int], dtype: DtypeLike, static_sizes: bool, name: str) -> Tensor:
        rank = len(sizes)
        is_expanded = [n != 1 and s == 0 for n, s in zip(sizes, strides)]
        shape = [1 if n == 1 or e else (n if static_sizes else -1) for n, e in zip(sizes, is_expanded)]
        expanded = [(n if static_sizes else -1) if e else 1 for n, e in zip(sizes, is_expanded)]
        # Broadcasts keep their places; the other axes are sorted among themselves.
        places = [i for i in range(rank) if shape[i] != 1]
        ranked = iter(sorted(places, key=lambda i: -strides[i]))
        order = [next(ranked) if i in places else i for i in range(rank)]
        contiguity = [_NONE] * rank
        step = 1
        for axis in reversed([i for i in order if i in places]):
            contiguity[axis] = _TRUE if strides[axis] == step else _FALSE
            step = strides[axis] * sizes[axis]
        return self._input(name, dtype, shape, contiguity, order, expanded)

    def _input(self, name: str, dtype: DtypeLike, shape: list[int], contiguity: list[int], order: list[int], expanded: list[int]) -> Tensor:
        plain = order == sorted(order)
        name = string(name, "a tensor's name")
        value = self.program.define_tensor(name, dtype_word(dtype), shape, contiguity, [] if plain else order, expanded if set(expanded) - {1} else [])
        return Tensor(self, value)

    def from_pytorch(self, tensor: torch.Tensor, static_sizes: bool = False, name: str = "") -> Tensor:
        """An input like this tensor: with its dtype, its broadcasts, the order and contiguity of its strides, and with static_sizes its sizes."""
        import torch

        if not isinstance(tensor, torch.Tensor):
            raise FuseboxError("E0215", "from_pytorch takes a torch tensor; torch.as_tensor makes one", repr(tensor))
        torch_memory.check_strided(tensor, "from_pytorch")
        return self._define_like(list(tensor.shape), list(tensor.stride()), tensor.dtype, static_sizes, name)

    def define_scalar(self, value: DtypeLike | bool | int | float | complex | None = None, dtype: DtypeLike | None = None, name: str = "") -> Scalar:
        """define_scalar(dtype): an input. define_scalar(value, dtype=None): a constant."""
        value, name = number(value), string(name, "a scalar's name")  # type: ignore[assignment]
        if isinstance(value, (bool, int, float, complex)):
            scalar = wrap(self, self.program.constant(value, dtype_word_or_none(dtype)))
        else:
            wanted = dtype if value is None else value
            scalar = wrap(self, self.program.define_scalar(name, dtype_word(DataType.Double if wanted is None else wanted)))
        assert isinstance(scalar, Scalar)
        return scalar

    def define_vector(self, values: Sequence[int | Scalar] | int) -> list[int | Scalar]:
        """A list of integers and scalars, as a shape is. E0212 for a number, which would be an input of several scalars: define each of them."""
        if isinstance(values, int) or as_integer(values) is not None:
            raise FuseboxError("E0212", "a vector is no input yet; define its scalars one by one", "define_vector")
        return items(values, "a vector of integers and scalars")

    def add_output(self, output: Tensor | Scalar, alias_input: Tensor | None = None) -> None:
        """Makes a value an output. With alias_input it is stored over that input, and execute does not return it."""
        self.program.add_output(raw(output), None if alias_input is None else raw_tensor(alias_input))
        if alias_input is not None:
            self._in_place.append(alias_input.name)

    # -- text
    def to_string(self) -> str:
        """The fusion and its steps in the text form that the command line reads."""
        return self.program.text()

    __str__ = to_string
    __repr__ = to_string

    def print(self) -> None:
        print(self.to_string(), end="")

    def cuda_source(self, inputs: Sequence[Any]) -> dict[str, str]:
        """The CUDA text of each kernel by its name, in the order of the launches, as it is compiled for inputs like these. Of a tensor only
        dtype, shape and strides count, so it may be on any device, `meta` too. Needs no GPU. Segments by ATen have no text."""
        return dict(self.program.cuda_source(torch_memory.layouts(generators.planned(self, inputs))))

    def scheduled_text(self, inputs: Sequence[Any] | None = None) -> str:
        """The fusion with its schedule applied, in the text form: each tensor with its loops. With inputs (as for `cuda_source`): a program
        for each segment, as it is compiled for inputs like these. Without: as the steps so far have left the fusion. A schedule that cannot
        be compiled for these inputs raises the error that `execute` would raise."""
        if inputs is None:
            return self.program.scheduled_text()
        return self.program.scheduled_text_for(torch_memory.layouts(generators.planned(self, inputs)))

    # -- execution
    def execute(self, inputs: Sequence[torch.Tensor | bool | int | float | complex], *, device: Any = None, threads: int = 1) -> list[Any]:
        """Runs on the inputs' device (or `device`), on their memory. Outputs are new tensors; in-place outputs write the input that they
        overwrite; an output that is an input shares its memory. On a GPU it runs on PyTorch's current stream and returns before the work is
        done; a call like an earlier one (dtypes, sizes, strides, alignments) needs no planning, and works while a CUDA graph is captured. A
        fusion with a segment by ATen, or with an output that is a scalar, an input or another output, runs on the current stream too, but
        is interpreted each time and waited for; inside of a capture such a call is refused (E0212). The checked host executor runs CPU
        tensors, with this many threads. Random tensors without a seed take it from torch's generator (generators.py), unless the inputs have
        two numbers more, for the inputs that hold seed and offset."""
        if type(inputs) is not list:
            inputs = torch_memory.listed(inputs)
        if self.drawn is not None:
            inputs = self._completed(inputs, device)
        if self._calls is not None and device is None:
            outputs = self._calls.call(inputs)
            if outputs is not None:
                self._last = None
                return outputs
        return self._execute(inputs, device, threads)

    def _execute(self, inputs: list[Any], device: Any, threads: int) -> list[Any]:
        """Plans the call if nothing knows it. A GPU's call that can be repeated without planning is kept."""
        where = torch_memory.device_of(inputs, device)
        if where.type == "cuda" and device is None and not self.program.needs_host_program():
            self._calls = self._calls or torch_memory.calls()
            outputs = torch_memory.first_call(self.program, self._calls, inputs, where)
            if outputs is not None:
                self._last = None
                return outputs
        outputs = torch_memory.run(self.program, inputs, where, threads)
        import torch

        self._last = [_kept(v) for v in inputs]
        self._last_device = where
        if self._in_place:
            for i, name in enumerate(self._input_names()):
                if name in self._in_place and not inputs[i].is_inference():
                    torch.autograd.graph.increment_version(inputs[i])
        return outputs

    def plan(self, inputs: Sequence[Any], *, device: Any = None) -> list[Decision]:
        """The decisions of the automatic plan for inputs like these, by segment in the order in which they run: the scheduler ("unfused" if none
        takes the segment), its choices, and why the schedulers before it declined. Empty if the fusion has steps, or is `unfused`. Nothing
        runs, and no value is read, so tensors may be on the device `meta`; the plan is for the GPU of the inputs, or for an H200."""
        given = generators.planned(self, inputs)
        return [
            Decision(segment, scheduler, dict(choices), dict(declined))
            for segment, scheduler, choices, declined in torch_memory.plan(self.program, given, torch_memory.device_of(given, device, may_be_meta=True))
        ]

    def cache_info(self) -> CacheInfo:
        """How often `execute` on a GPU found a call that needed no planning, how often it did not, and how many such calls it keeps; how often a
        plan that memory lacked was on disk, and how often it was not (0 and 0 without a cache folder); how many plans this definition made, on any
        device, and why: the part of the inputs in which a call differed from the one before (the last reasons; FUSEBOX_LOG=recompiles prints each);
        how often it took a plan that an equal definition of the process had made."""
        hits, misses, kept = self._calls.info() if self._calls is not None else (0, 0, 0)
        made, _, _, _, recompiles, shared = self.program.plan_counts()
        return CacheInfo(hits, misses, kept, *self.program.disk_counts(), made, tuple(recompiles), shared)

    def profile(self, inputs: Sequence[torch.Tensor | bool | int | float | complex], *, runs: int = 20, device: Any = None, threads: int = 1) -> Profile:
        """Runs repeatedly on the inputs' device (or `device`) and measures: the time of the whole, of each kernel and of the host, in
        microseconds, and the bytes that any run must move. On a GPU it also says which part of the time is the floor: the time of a copy of
        as many bytes. Inputs are not written: those that an output overwrites are copied, and their values change from run to run. `runs`
        is at least 1 (E0440). E0212 on a GPU for a fusion with a segment by ATen."""
        inputs = torch_memory.listed(inputs)
        where = torch_memory.device_of(inputs, device)
        inputs = self._completed(inputs, device)
        return profile_of(self.program.name(), torch_memory.profile(self.program, inputs, where, runs, threads))

    def tune(self, inputs: Sequence[torch.Tensor | bool | int | float | complex], *, runs: int = 12, device: Any = None) -> Tuned:
        """Times schedules like those that the automatic plan chooses, on the GPU of the inputs (or `device`), each `runs` times, and keeps the
        fastest ones as steps. How the fusion is cut into kernels does not change. Returns the fusion with these steps, which needs no
        search any more and can be recorded, and for each segment what was found; the steps say which ops are fast. This fusion stays as it is; inputs are not written.
        E0440 without a GPU, for a fusion with a schedule, or if `unfused`."""
        inputs = self._completed(torch_memory.listed(inputs), device)
        program, segments = torch_memory.tune(self.program, inputs, torch_memory.device_of(inputs, device), runs)
        tuned = self._copy_with(program)
        tuned._set_precision("exact")
        return Tuned(tuned, tuple(TunedSegment(*s) for s in segments))

    def launcher(self, inputs: Sequence[torch.Tensor | bool | int | float | complex], *, device: Any = None) -> Launcher:
        """Runs as `execute` does, and returns what launches the same kernels again on the same memory: for measuring, or for a loop that
        changes only values. E0212 if ops are assigned to ATen."""
        inputs = self._completed(torch_memory.listed(inputs), device)
        return Launcher(self.program, inputs, torch_memory.device_of(inputs, device))

    def validate(self, inputs: Sequence[Any], reference_outputs: Sequence[Any] | None = None, *, device: Any = None) -> None:
        """Runs on copies of the inputs and compares each output with the reference, or with ATen's value within its bound. Raises AssertionError
        if one differs."""
        inputs = self._completed(torch_memory.listed(inputs), device)
        if reference_outputs is not None:
            import torch

            wanted = items(reference_outputs, "the argument reference_outputs")
            outputs = self.execute([torch_memory.twin(v) for v in inputs], device=device)
            try:
                torch.testing.assert_close(outputs, wanted)
            except TypeError:
                raise FuseboxError("E0215", "a reference is a torch tensor, or a number for an output that is a scalar", "reference_outputs") from None
            return
        arguments, executor = self._host_arguments(inputs, device)
        for _, ok, _, _, message in self.program.validate(arguments, executor):
            assert ok, message

    def record(self, path: str | os.PathLike[str], inputs: Sequence[Any] | None = None, *, device: Any = None) -> None:
        """Runs on copies of the inputs and writes everything about the run into a bundle. Without inputs it takes those of the last execute,
        if they still exist unchanged. A run that fails is written too, and its error raised."""
        file = path_text(path, "E0431")
        given = self._last_inputs() if inputs is None else self._completed(torch_memory.listed(inputs), device)
        arguments, executor = self._host_arguments(given, self._last_device if inputs is None else device)
        self.program.record(file, arguments, executor, {})

    def judge(self, inputs: Sequence[Any]) -> _fusebox.Judgement:
        """Runs on the checked host executor, on copies of CPU inputs, and compares with ATen's bounds and with the unfused plan. Also writes
        the program and reads it again. `outcome` is "passed", "failed", or "refused" if the steps cannot be compiled or the launch
        exceeds a limit. `stage`, `check` and `place` are equal for the same failure; `message` says it in words."""
        given = self._completed(torch_memory.listed(inputs), "cpu")
        return self.program.judge([torch_memory.host_argument(v, f"inputs[{i}]") for i, v in enumerate(given)])

    def _completed(self, inputs: list[Any], device: Any) -> list[Any]:
        if self.drawn is None:
            return inputs
        return generators.completed(self.program, self.drawn, inputs, torch_memory.device_of(inputs, device))

    def _host_arguments(self, inputs: list[Any], device: Any) -> tuple[list[object], str]:
        where = torch_memory.device_of(inputs, device)
        arguments = [torch_memory.host_argument(v, f"inputs[{i}]") for i, v in enumerate(inputs)]
        return arguments, "cuda" if where.type == "cuda" else "host"

    def _last_inputs(self) -> list[Any]:
        if self._last is None and self._calls is not None:
            self._last, self._last_device = self._calls.last() or None, None
        if self._last is None:
            raise FuseboxError("E0402", "nothing was run yet; give the inputs to record", "record")
        inputs = []
        for i, (value, version, *memory) in enumerate(self._last):
            tensor = value() if isinstance(value, weakref.ref) else value
            if tensor is None or (version >= 0 and tensor._version != version) or (memory and [_memory(tensor)] != memory):
                raise FuseboxError("E0402", "an input of the last run is gone or was overwritten since; give the inputs to record", f"inputs[{i}]")
            inputs.append(tensor)
        return inputs

    def _input_names(self) -> list[str]:
        return self.program.input_names()


def load(path: str | os.PathLike[str], name: str = "", steps: str = "") -> FusionDefinition:
    """The fusion in a file, with its steps: a .fir as `FusionDefinition.from_text` reads it, or a .fuse. Of a bundle's run it takes the
    fusion, the steps that the run took and the seeded defects, if there were any; `fusebox.replay` runs it on its inputs. E0430 for a file
    that cannot be read; the errors of the text, or of the bytes, for what is in it."""
    names = string(name, "a fusion's name"), string(steps, "the name of a list of steps")
    return FusionDefinition._of_program(_fusebox.Program.of_file(path_text(path, "E0430"), *names))
