"""Shared by tests of fusebox.FusionDefinition: inputs, and the code of an expected error."""

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from fusebox import FuseboxError  # noqa: E402


def error_of(action):
    with pytest.raises(FuseboxError) as caught:
        action()
    assert caught.value.message
    return caught.value


def code_of(action):
    return error_of(action).code


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
