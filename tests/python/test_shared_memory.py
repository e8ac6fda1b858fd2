"""Inputs of one call that share memory, one of them overwritten: the others are read as they were when the call began."""

import pytest
import torch
from fusebox import FuseboxError, FusionDefinition

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there"))]
READERS = {
    "scaled": (lambda o, x, y: o.mul(y, 3.0), lambda x, y: y * 3.0),
    "beside": (lambda o, x, y: o.mul(y, x), lambda x, y: y * x),
    "summed": (lambda o, x, y: o.sum(y), lambda x, y: y.sum()),
    "by ATen": (lambda o, x, y: o.cumsum(y, 0), lambda x, y: y.cumsum(0)),
}


def call(define, x, y, unfused):
    f = FusionDefinition(unfused=unfused)
    a, b = f.from_pytorch(x), f.from_pytorch(y)
    f.add_output(f.ops.add(a, 1.0), a)
    f.add_output(define(f.ops, a, b))
    return f.execute([x, y])[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("unfused", [False, True])
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("begins", [(0, 0), (0, 1), (1, 0), (0, 600)])
def test_readers_see_what_was_there(name, begins, unfused, device):
    define, reference = READERS[name]
    memory = torch.arange(1200.0, device=device)
    x, y = (memory[b : b + 600] for b in begins)
    wanted, stored = reference(x.clone(), y.clone()), x + 1.0
    for _ in range(2):  # the second call is the prepared one
        memory.copy_(torch.arange(1200.0))
        torch.testing.assert_close(call(define, x, y, unfused), wanted)
        torch.testing.assert_close(x, stored)


@pytest.mark.parametrize("device", DEVICES)
def test_parts_of_a_packed_tensor_are_overwritten_together(device):
    packed = torch.randn(7, 3, 5, device=device)
    q, k, v = packed.unbind(1)
    wanted = [q + v, k * v]
    f = FusionDefinition()
    a, b, c = (f.from_pytorch(t) for t in (q, k, v))
    f.add_output(f.ops.add(a, c), a)
    f.add_output(f.ops.mul(b, c), b)
    f.execute([q, k, v])
    torch.testing.assert_close([q, k], wanted)


def test_two_overwritten_inputs_must_lie_apart():
    memory = torch.arange(9.0)
    f = FusionDefinition()
    x, y = f.from_pytorch(memory[:8]), f.from_pytorch(memory[1:])
    f.add_output(f.ops.neg(x), x)
    f.add_output(f.ops.exp(y), y)
    with pytest.raises(FuseboxError, match="E0401.*share memory"):
        f.execute([memory[:8], memory[1:]])


def test_an_overwritten_input_must_not_meet_itself():
    row = torch.arange(4.0)
    f = FusionDefinition()
    x = f.define_tensor([-1, -1], contiguity=[False, True])
    f.add_output(f.ops.neg(x), x)
    with pytest.raises(FuseboxError, match="E0401.*lie at one place"):
        f.execute([row.as_strided([3, 4], [0, 1])])
