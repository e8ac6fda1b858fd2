"""Fusebox fuses tensor programs into GPU kernels, and keeps every state of that work as a file.

    with fusebox.FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], dtype=fusebox.DataType.BFloat16)
        y = fd.ops.silu(fd.ops.cast(x, fusebox.DataType.Float))
        fd.add_output(fd.ops.cast(y, fusebox.DataType.BFloat16))
    (out,) = fd.execute([torch.randn(5, 7, dtype=torch.bfloat16)])
    fd.record("silu.fuse")
    assert fusebox.replay("silu.fuse").identical
"""

from fusebox.definition import FusionDefinition, load
from fusebox.enums import CacheOp, DataType, LoadStoreOpType, MemoryType, ParallelType, SwizzleType
from fusebox.errors import FuseboxAttributeError, FuseboxError, FuseboxIndexError, FuseboxInputError, FuseboxTypeError, FuseboxValueError
from fusebox.profile import KernelProfile, Profile, Spread
from fusebox.replays import Replay, Stage, replay
from fusebox.torch_memory import Launcher
from fusebox.values import Loop, Operand, Scalar, Tensor

__all__ = [
    "CacheOp",
    "DataType",
    "FuseboxAttributeError",
    "FuseboxError",
    "FuseboxIndexError",
    "FuseboxInputError",
    "FuseboxTypeError",
    "FuseboxValueError",
    "FusionDefinition",
    "KernelProfile",
    "Launcher",
    "LoadStoreOpType",
    "Loop",
    "MemoryType",
    "Operand",
    "ParallelType",
    "Profile",
    "Replay",
    "Scalar",
    "Spread",
    "Stage",
    "SwizzleType",
    "Tensor",
    "load",
    "replay",
]
