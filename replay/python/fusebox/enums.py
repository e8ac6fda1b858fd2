"""Enumerations. A member's value is its word in the text form of programs."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Union

from fusebox.errors import FuseboxError

if TYPE_CHECKING:
    import torch


class DataType(enum.Enum):
    Bool = "bool"
    Int8 = "i8"
    Int16 = "i16"
    Int32 = "i32"
    Int = "i64"
    UInt8 = "u8"
    UInt16 = "u16"
    UInt32 = "u32"
    UInt64 = "u64"
    Half = "f16"
    BFloat16 = "bf16"
    Float = "f32"
    Double = "f64"
    ComplexFloat = "c64"
    ComplexDouble = "c128"
    Float8_e4m3fn = "f8e4m3"
    Float8_e5m2 = "f8e5m2"
    Float8_e8m0fnu = "f8e8m0"
    Float4_e2m1fn = "f4e2m1"
    Float4_e2m1fn_x2 = "f4e2m1x2"
    Index = "index"
    Null = ""
    """The dtype that the operation infers."""


class ParallelType(enum.Enum):
    serial = "serial"
    grid_x = "grid.x"
    grid_y = "grid.y"
    grid_z = "grid.z"
    block_x = "block.x"
    block_y = "block.y"
    block_z = "block.z"
    vectorize = "vectorize"
    unroll = "unroll"
    unswitch = "unswitch"
    mesh_x = "mesh.x"
    mesh_y = "mesh.y"
    mesh_z = "mesh.z"
    stream = "stream"
    tma = "bulk"
    mma = "mma"
    group = "group"


class MemoryType(enum.Enum):
    local = "local"
    shared = "shared"
    global_ = "global"
    vars()["global"] = "global"  # the same member by nvFuser's name, which getattr reaches
    symmetric = "symmetric"


class SwizzleType(enum.Enum):
    xor = "xor"
    cyclic = "cyclic"


class LoadStoreOpType(enum.Enum):
    set = "set"
    load_matrix = "load_matrix"
    cp_async = "cp_async"
    tma = "tma"


class CacheOp(enum.Enum):
    unspecified = "unspecified"
    all_levels = "all_levels"
    streaming = "streaming"
    global_ = "global"
    vars()["global"] = "global"  # as in MemoryType


DtypeLike = Union[DataType, "torch.dtype"]

_TORCH_NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
    "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float8_e8m0fnu": "f8e8m0", "float4_e2m1fn_x2": "f4e2m1x2",
}
_WORDS = {word: name for name, word in _TORCH_NAMES.items()} | {"index": "int64"}


def word(member: enum.Enum, kind: type[enum.Enum]) -> str:
    """The word of an enumeration's member. E0207 for anything else."""
    if isinstance(member, kind):
        return str(member.value)
    raise FuseboxError("E0207", f"one of {kind.__name__} is needed here", repr(member))


def dtype_word(dtype: DtypeLike) -> str:
    """The word of a DataType or a torch.dtype. E0102 for anything else."""
    if isinstance(dtype, DataType) and dtype is not DataType.Null:
        return dtype.value
    name = str(dtype)
    if name.startswith("torch.") and name[6:] in _TORCH_NAMES:
        return _TORCH_NAMES[name[6:]]
    raise FuseboxError("E0102", "a dtype is a DataType or a torch.dtype that Fusebox has", repr(dtype))


def dtype_word_or_none(dtype: DtypeLike | None) -> str | None:
    return None if dtype is None or dtype is DataType.Null else dtype_word(dtype)


def torch_dtype(word: str) -> "torch.dtype":
    """The torch.dtype of a word. E0211 if PyTorch has none."""
    import torch

    found = getattr(torch, _WORDS.get(word, ""), None)
    if not isinstance(found, torch.dtype):
        raise FuseboxError("E0211", "PyTorch has no dtype for this one; cast the output", word)
    return found
