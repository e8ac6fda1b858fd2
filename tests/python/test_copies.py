"""Copies of definitions by their own method and by Python's `copy` module, and the refusal to pickle one."""

import copy
import pickle

import pytest
import torch

from definitions import code_of
from fusebox import FusionDefinition

COPIES = [FusionDefinition.copy, copy.copy, copy.deepcopy]


class Wide(FusionDefinition):
    """A definition whose constructor takes other arguments than its base."""

    def __init__(self, width, *, scale):
        super().__init__("wide")
        self.width = width
        self.scale = scale
        self.add_output(self.ops.mul(self.define_tensor([width], name="x"), scale))


@pytest.mark.parametrize("make", COPIES)
def test_a_copy_is_independent(make):
    fd = FusionDefinition()
    x = fd.define_tensor([4], name="x")
    fd.add_output(fd.ops.neg(x))
    fd.execute([torch.ones(4)])
    before = fd.to_string()
    other = make(fd)
    assert other.to_string() == before
    other.add_output(other.ops.abs(x))
    assert fd.to_string() == before and len(fd.execute([torch.ones(4)])) == 1 and len(other.execute([torch.ones(4)])) == 2


@pytest.mark.parametrize("make", COPIES)
def test_a_copy_has_nothing_of_a_run(make, tmp_path):
    fd = FusionDefinition()
    x = fd.define_tensor([4], name="x")
    fd.add_output(fd.ops.add(x, 1.0), alias_input=x)
    given = torch.ones(4)
    fd.execute([given])
    other = make(fd)
    assert code_of(lambda: other.record(tmp_path / "b.fuse")) == "E0402"
    version = given._version
    assert other.execute([given]) == [] and given._version > version


@pytest.mark.parametrize("make", COPIES)
def test_a_copy_draws_its_own_random_numbers(make):
    fd = FusionDefinition()
    fd.add_output(fd.ops.uniform(0.0, 1.0, [4]))
    other = make(fd)
    other.add_output(other.ops.uniform(0.0, 1.0, [4]))
    assert len(fd.drawn.tensors) == 1 and len(other.drawn.tensors) == 2
    assert len(fd.execute([])) == 1 and len(other.execute([])) == 2


@pytest.mark.parametrize("make", COPIES)
def test_a_copy_of_a_subclass_runs_no_constructor(make):
    other = make(Wide(4, scale=3.0))
    assert type(other) is Wide and (other.width, other.scale) == (4, 3.0)
    assert torch.equal(other.execute([torch.ones(4)])[0], torch.full((4,), 3.0))


def test_a_definition_is_not_pickled():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert code_of(lambda: pickle.dumps(Wide(4, scale=3.0), protocol)) == "E0212"
