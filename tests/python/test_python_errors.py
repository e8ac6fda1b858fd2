"""Wrong arguments of the Python package: each has a code, and the class that Python's users expect."""

import pickle
import warnings

import numpy as np
import torch

import fusebox
from definitions import code_of, error_of
from fusebox import DataType, FusionDefinition


def plus_one(name="fusion"):
    fd = FusionDefinition(name)
    fd.add_output(fd.ops.add(fd.define_tensor([-1]), 1))
    return fd


def test_a_missing_op_is_a_missing_attribute():
    ops = FusionDefinition().ops
    assert not hasattr(ops, "nope") and not hasattr(ops, "nv_block_quantize")
    assert getattr(ops, "_repr_html_", None) is None
    unknown, later = error_of(lambda: ops.nope), error_of(lambda: ops.nv_block_quantize)
    assert (unknown.code, later.code) == ("E0201", "E0212")
    assert isinstance(unknown, fusebox.FuseboxAttributeError) and isinstance(unknown, AttributeError) and isinstance(unknown, ValueError)


def test_a_missing_schedule_function_is_a_missing_attribute():
    sched = FusionDefinition().sched
    assert not hasattr(sched, "nope") and getattr(sched, "_repr_html_", None) is None
    assert code_of(lambda: sched.schedule()) == "E0318"


def test_an_attribute_error_keeps_its_code_when_it_is_pickled():
    error = pickle.loads(pickle.dumps(fusebox.FuseboxAttributeError("E0201", "a sentence", "x")))
    assert type(error) is fusebox.FuseboxAttributeError and (error.code, error.message, error.place) == ("E0201", "a sentence", "x")


def test_names_of_fusions():
    assert code_of(lambda: FusionDefinition(3)) == "E0215"
    assert code_of(lambda: FusionDefinition("")) == "E0207"
    assert isinstance(error_of(lambda: FusionDefinition(None)), TypeError)
    assert isinstance(error_of(lambda: FusionDefinition("")), ValueError)


def test_signatures():
    fd = FusionDefinition()
    assert code_of(lambda: fd.define_tensor([2**63])) == "E0104"
    assert code_of(lambda: fd.define_tensor([2, 3], [2**63, 1])) == "E0104"
    assert code_of(lambda: fd.define_tensor([2, 3], None)) == "E0207"
    assert code_of(lambda: fd.define_tensor([2, 3], "ab")) == "E0207"


def test_numbers_of_embedding():
    fd = FusionDefinition()
    indices, weight = fd.define_tensor([2], dtype=DataType.Int), fd.define_tensor([3, 3])
    assert code_of(lambda: fd.ops.embedding_fwd(indices, weight, None, "a")) == "E0215"
    assert code_of(lambda: fd.ops.embedding_fwd(indices, weight, None, "1")) == "E0215"
    assert code_of(lambda: fd.ops.embedding_fwd(indices, weight, None, 1.0, 1j)) == "E0215"
    fd.add_output(fd.ops.embedding_fwd(indices, weight, None, np.float32(1.0)))


def test_arguments_of_execute():
    fd, x = plus_one(), torch.ones(3)
    assert code_of(lambda: fd.execute([x], threads=1.5)) == "E0440"
    assert code_of(lambda: fd.profile([x], threads="2")) == "E0440"
    assert code_of(lambda: fd.execute([x], device="foo")) == "E0401"
    assert code_of(lambda: fd.execute([x], device=[])) == "E0401"
    for call in (fd.execute, fd.plan, fd.profile, fd.launcher, fd.validate, fd.judge, fd.cuda_source, fd.sched.compile_refusal):
        error = error_of(lambda: call(None))
        assert error.code == "E0401" and "NoneType" in error.message


def test_tensors_without_memory():
    fd = plus_one()
    x = torch.ones(3)
    for transform in (torch.func.vmap(lambda a: fd.execute([a])[0]), torch.func.grad(lambda a: fd.execute([a])[0].sum())):
        error = error_of(lambda: transform(torch.ones(2, 3) if transform.__name__ == "vmap" else x))
        assert error.code == "E0401" and "no memory" in error.message
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, about data_ptr()
        error = error_of(lambda: fd.execute([fake]))
        assert error.code == "E0401" and "no memory" in error.message
        assert fd.cuda_source([fake]) == fd.cuda_source([x.to("meta")])  # looks at no value
    assert torch.equal(fd.execute([torch.ones(0)])[0], torch.ones(0))


def test_numbers_of_numpy_are_constants():
    fd = FusionDefinition()
    assert fd.define_scalar(np.int32(3)).dtype == DataType.Int
    assert fd.define_scalar(np.float32(3)).dtype == DataType.Double
    assert fd.define_scalar(np.bool_(True)).dtype == DataType.Bool
