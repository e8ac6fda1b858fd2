"""The times of a fusion's runs, as `FusionDefinition.profile` measures them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Microseconds of repeated runs: the median, and the values that a tenth of the runs lies below and above."""

    median: float
    p10: float
    p90: float

    def __str__(self) -> str:
        return f"{_time(self.median)} ({_time(self.p10)} – {_time(self.p90)})"


@dataclass(frozen=True)
class KernelProfile:
    """One kernel of the fusion; "copy" and "clear" are work between kernels, "ATen NAME" is a segment that ATen runs."""

    name: str
    launches: int
    """In one run."""
    us: Spread
    """Summed over all its launches in a run."""


@dataclass(frozen=True)
class Profile:
    """Times and bytes of a fusion's runs. Times are microseconds, sizes bytes, rates 10⁹ bytes a second."""

    name: str
    executor: str
    """"cuda": times between events, the L2 cache flushed before each run. "host": the wall clock of the checked host executor, whose times
    say nothing about a GPU."""
    gpu: str | None
    runs: int
    launches: int
    whole_us: Spread
    kernels_us: Spread
    """The sum over the kernels of a run."""
    host_us: Spread
    """On a GPU the time to enqueue a run; on the host executor the whole without the kernels."""
    kernels: tuple[KernelProfile, ...]
    read_bytes: int
    """The bytes that any run must read: each input that it needs, once."""
    written_bytes: int
    """The bytes that any run must write: each output, once."""
    copy_gb_s: float | None
    """The rate of a large copy in this process, read and written. None where no GPU was measured, as for the next three."""
    empty_us: float | None
    """Two events with nothing between them; no time leaves it out."""
    floor_us: float | None
    """The time in which that copy moves as many bytes."""
    fraction: float | None
    """floor_us by the median of the whole."""

    @property
    def moved_bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    def __repr__(self) -> str:
        clock = f"events on {self.gpu}" if self.gpu is not None else "the wall clock of the host executor; no GPU was measured"
        lines = [
            f"@{self.name} on {self.executor}: {self.runs} runs, by {clock}",
            f"  whole      {self.whole_us}",
            f"  kernels    {self.kernels_us}, {self.launches} launches",
            f"  host       {self.host_us}",
            *(f"    {kernel.name:<20} {kernel.us}" for kernel in self.kernels),
            f"  must move  {_bytes(self.moved_bytes)}: {_bytes(self.read_bytes)} read, {_bytes(self.written_bytes)} written",
        ]
        if self.floor_us is not None and self.fraction is not None:
            lines.append(f"  floor      {_time(self.floor_us)} at {self.copy_gb_s:.0f} GB/s; the whole reaches {int(100 * self.fraction + 1e-6) / 100:.2f} of it")
        return "\n".join(lines)

    __str__ = __repr__


def profile_of(name: str, given: dict[str, Any]) -> Profile:
    """The extension's answer as an object."""
    spreads = {key: Spread(*given[key]) for key in ("whole_us", "kernels_us", "host_us")}
    kernels = tuple(KernelProfile(kernel, launches, Spread(*us)) for kernel, launches, us in given["kernels"])
    return Profile(name=name, **{**given, **spreads, "kernels": kernels})


def _time(us: float) -> str:
    if us >= 999950:
        return f"{us / 1e6:.3f} s"
    return f"{us / 1e3:.2f} ms" if us >= 9999.5 else f"{us:.1f} µs"


def _bytes(count: float) -> str:
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"
