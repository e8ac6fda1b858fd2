"""The table of gpu_kernels.py: which program, at which sizes, against which peers.

A row of `corpus/schedules` has the schedule that is written for speed. Rows `corpus/NAME` are the programs of `corpus/programs` with their
own schedules and full inputs. To add a row: write `corpus/schedules/NAME.fir` with both sets of inputs, add its function to reference.py if
the fusion is new, and a line here."""

from dataclasses import dataclass, field

from kernels.programs import ROOT, Program


@dataclass(frozen=True)
class Row:
    name: str
    path: str  # of the .fir, in the repository
    sizes: dict = field(default_factory=dict)  # instead of the file's, by symbol
    scaled: str = "m"  # the symbol that --scale multiplies
    goal: float | None = None  # the fraction of the floor that the kernel should reach
    only_reads: bool = False  # the floor is a read rate
    multiples: dict = field(default_factory=dict)  # of symbols, by their vectors; another extent is E0404 at the launch
    reads: dict = field(default_factory=dict)  # bytes read of an input of which a run needs a part: a function of the inputs

    def program(self):
        return Program.read(self.path)

    def scaled_sizes(self, program, scale):
        sizes = {**program.sizes("gpu"), **self.sizes}
        return {**sizes, self.scaled: sizes[self.scaled] * scale}

    def moved_bytes(self, program, inputs, outputs):
        read, written = program.moved_bytes(inputs, outputs)
        for name, part in self.reads.items():
            read[name] = part(inputs)
        return sum(read.values()) + written


def _gathered(inputs):
    """The rows of the table that the tokens name: each once, however many tokens name it."""
    return inputs["token"].unique().numel() * inputs["table"].shape[1] * inputs["table"].element_size()


_COLUMNS = {"n": 8}


def _row(name, multiples=_COLUMNS, **rest):
    return Row(name, f"corpus/schedules/{name}.fir", multiples=multiples, **rest)


_LONG = {"m": 4096, "n": 131072}
_ODD = {"m": 16384, "n": 4099}

SCHEDULES = [
    _row("silu_mul_bias", goal=0.96),
    _row("softmax", goal=0.91),
    _row("layer_norm", goal=0.90),
    _row("layer_norm_welford"),
    _row("rms_norm", goal=0.92),
    _row("layer_norm_backward", goal=0.82),
    _row("row_sum", goal=0.90, only_reads=True),
    _row("column_sum", goal=0.90, only_reads=True),
    _row("total_sum", goal=0.90, only_reads=True),
    _row("transpose_add", multiples={"m": 8, "n": 8}, goal=0.94),
    _row("cross_entropy", goal=0.90, only_reads=True),
    _row("cross_entropy_two_pass", only_reads=True),
    _row("attention_mask_softmax", multiples={"S": 4}, goal=0.90, scaled="H"),
    _row("rope", multiples={"h": 8}, goal=0.90, scaled="b"),
    _row("welford_batch_norm", multiples={"l": 4}, goal=0.85, scaled="n"),
    _row("gelu_dropout_mask", goal=0.92),
    _row("embedding_gather", multiples={"d": 8}, goal=0.92, scaled="t", reads={"table": _gathered}),
    _row("softmax_long", sizes=_LONG, goal=0.88),
    _row("rms_norm_long", sizes=_LONG, goal=0.88),
    _row("softmax_cluster", sizes=_LONG, goal=0.88),
    _row("rms_norm_cluster", sizes=_LONG, goal=0.88),
    _row("softmax_odd", multiples={}, sizes=_ODD, goal=0.75),
    _row("layer_norm_odd", multiples={}, sizes=_ODD, goal=0.75),
    _row("rms_norm_odd", multiples={}, sizes=_ODD, goal=0.75),
]

_SCALED = {"attention_mask_softmax": "H", "rope": "b", "welford_batch_norm": "n", "embedding_gather": "t", "swizzled_copy_1d": "n"}


def _corpus_row(path):
    reads = {"table": _gathered} if path.stem == "embedding_gather" else {}
    return Row(f"corpus/{path.stem}", str(path.relative_to(ROOT)), scaled=_SCALED.get(path.stem, "m"), reads=reads)


def all_rows():
    # No peer draws the numbers of `dropout`.
    programs = sorted(path for path in (ROOT / "corpus" / "programs").glob("*.fir") if path.stem != "dropout")
    written = [row for row in SCHEDULES if (ROOT / row.path).exists()]
    return written + [_corpus_row(path) for path in programs]
