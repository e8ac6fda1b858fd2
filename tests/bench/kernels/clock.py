"""Times of GPU work by CUDA events.

Before each timed call the stream gets a busy wait and then a read of 256 MB. The wait is longer than the host needs to enqueue the call, so
launches are queued when the first event passes and the time between the events has no gap for the host. The read puts other lines into the
L2 cache. It reads, so no dirty line is left that the timed call would have to write back. What two events with nothing between them
measure is reported as `empty_us`, and not subtracted. Reads warm the GPU up before it is calibrated and before the rounds of a row: its
clocks fall while the host compiles."""

import statistics
import time
from dataclasses import dataclass

import torch

FLUSH_BYTES = 256 << 20
COPY_BYTES = 2 << 30


@dataclass
class Times:
    """Microseconds."""

    median: float
    p10: float
    p90: float
    rounds: int

    @classmethod
    def of(cls, samples):
        ordered = sorted(samples)
        at = lambda part: ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]  # noqa: E731
        return cls(statistics.median(ordered), at(0.1), at(0.9), len(ordered))


class Clock:
    def __init__(self):
        self._flush = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self._sink = torch.empty((), dtype=torch.int64, device="cuda")
        self._warm_up(0.5)
        self._cycles_per_us = self._calibrate()

    def _read(self):
        torch.sum(self._flush, dim=0, out=self._sink)

    def _warm_up(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(50):
                self._read()
            torch.cuda.synchronize()

    def _calibrate(self):
        cycles = 20_000_000
        torch.cuda._sleep(1000)
        start, stop = self._events()
        start.record()
        torch.cuda._sleep(cycles)
        stop.record()
        torch.cuda.synchronize()
        return cycles / (1000 * start.elapsed_time(stop))

    @staticmethod
    def _events():
        return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def enqueue_us(self, call):
        """The longest of three times that the host takes to enqueue a call."""
        times = []
        for _ in range(3):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            call()
            times.append(1e6 * (time.perf_counter() - begin))
        torch.cuda.synchronize()
        return max(times)

    def once_us(self, call, wait_us):
        start, stop = self._events()
        torch.cuda._sleep(int(self._cycles_per_us * wait_us))
        self._read()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return 1000 * start.elapsed_time(stop)

    def alternate(self, calls, rounds, deadline=None):
        """{name: Times}: in each round every call once, in an order that changes. Past the deadline (of time.monotonic) it ends early,
        but not before three rounds."""
        waits = {name: 50 + 1.5 * min(self.enqueue_us(call), 2000) for name, call in calls.items()}
        self._warm_up(0.1)
        for name, call in calls.items():
            self.once_us(call, waits[name])
        samples = {name: [] for name in calls}
        names = list(calls)
        for i in range(rounds):
            if i >= 3 and deadline is not None and time.monotonic() > deadline:
                break
            for name in names[i % len(names):] + names[:i % len(names)]:
                samples[name].append(self.once_us(calls[name], waits[name]))
        return {name: Times.of(s) for name, s in samples.items()}

    def wall_us(self, calls, rounds=5, seconds=0.004):
        """{name: Times} of a call among many, one behind the other, by the host's clock. A round of each makes as many calls as take about
        so long, and waits for the GPU once, at its end."""
        samples, names = {name: [] for name in calls}, list(calls)
        counts = {}
        for name, call in calls.items():
            one = self._run_us(call, 20)
            counts[name] = max(5, min(1000, int(1e6 * seconds / one)))
        for i in range(rounds):
            for name in names[i % len(names):] + names[:i % len(names)]:
                samples[name].append(self._run_us(calls[name], counts[name]))
        return {name: Times.of(s) for name, s in samples.items()}

    @staticmethod
    def _run_us(call, count):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        return 1e6 * (time.perf_counter() - begin) / count

    def graph_us(self, calls, count=50):
        """{name: Times} of a call among `count` that one CUDA graph holds, by the host's clock around replays of the graph."""
        graphs = {}
        for name, call in calls.items():
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(count):
                    call()
            graphs[name] = graph.replay
        times = self.wall_us(graphs)
        return {name: Times(t.median / count, t.p10 / count, t.p90 / count, t.rounds) for name, t in times.items()}

    def rates(self, rounds=15):
        """Bytes in a microsecond: of a 2 GiB copy (read and written), and of the fastest read of 2 GiB among several of PyTorch's."""
        source = torch.zeros(COPY_BYTES // 4, dtype=torch.float32, device="cuda")
        target = torch.empty_like(source)
        source.normal_()
        copy = self.alternate({"copy": lambda: target.copy_(source)}, rounds)["copy"].median
        del target
        square = source.view(-1, 1 << 16)
        readers = {"sum": lambda: source.sum(), "max": lambda: source.max(), "row sum": lambda: square.sum(1)}
        read = min(t.median for t in self.alternate(readers, rounds).values())
        return 2 * COPY_BYTES / copy, COPY_BYTES / read

    def empty_us(self, rounds=30):
        return self.alternate({"empty": lambda: None}, rounds)["empty"].median
