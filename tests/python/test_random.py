"""Random numbers: against a reference written here from the published generator, by their distribution, under schedules, and with torch's
generators. The reference shares nothing with the package."""

import math

import numpy as np
import pytest
import torch

import fusebox
from fusebox import DataType, FusionDefinition, FuseboxError, ParallelType

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}


def words(seed, offset, count, stream):
    """The words of elements 0 to count − 1: Philox 4x32-10 of the counter (offset + element / 4, stream, 0) under the seed."""
    mask = np.uint64(0xFFFFFFFF)
    block = np.array([(offset + i // 4) % 2**64 for i in range(count)], dtype=np.uint64)
    c = [block & mask, block >> np.uint64(32), np.full(count, stream, np.uint64), np.zeros(count, np.uint64)]
    key = [seed % 2**32, seed % 2**64 >> 32]
    for _ in range(10):
        left, right = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [right >> np.uint64(32) ^ c[1] ^ np.uint64(key[0]), right & mask, left >> np.uint64(32) ^ c[3] ^ np.uint64(key[1]), left & mask]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return np.choose(np.arange(count) % 4, c).astype(np.uint64)


def digits53(seed, offset, count, stream):
    return (words(seed, offset, count, stream) << np.uint64(21) | words(seed, offset, count, stream + 1) >> np.uint64(11)).astype(np.float64)


def reference_uniform(seed, offset, count, dtype):
    """u in [0, 1), exact in the dtype."""
    if dtype == torch.float64:
        return torch.from_numpy(digits53(seed, offset, count, 0) * 2.0**-53)
    digits = DIGITS[dtype]
    high = (words(seed, offset, count, 0) >> np.uint64(32 - digits)).astype(np.float64)
    return torch.from_numpy(high * 2.0**-digits).to(dtype)


def reference_normal(seed, offset, count, dtype):
    """In double, from the same uniform numbers."""
    if dtype == torch.float64:
        u1, u2 = (digits53(seed, offset, count, 0) + 1) * 2.0**-53, digits53(seed, offset, count, 2) * 2.0**-53
    else:
        u1 = (words(seed, offset, count, 0).astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)).astype(np.float64)
        u2 = (words(seed, offset, count, 1) >> np.uint64(8)).astype(np.float64) * 2.0**-24
    return torch.from_numpy(np.sqrt(-2 * np.log(u1)) * np.cos(2 * math.pi * u2))


def drawn(op, shape, a, b, seed, offset, dtype, **fusion):
    with FusionDefinition(**fusion) as fd:
        fd.add_output(getattr(fd.ops, op)(a, b, shape, rng_seed=seed, rng_offset=offset, dtype=dtype))
    (out,) = fd.execute([])
    return out


WORDS = [(0, 0), (1, 2**32 - 2), (2**32 - 1, 2**63), (0x123456789ABCDEF0, 2**64 - 1), (-1, -3)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed,offset", WORDS)
def test_uniform_has_the_bits_of_the_reference(seed, offset, dtype):
    out = drawn("uniform", [5, 37], 0.0, 1.0, seed, offset, dtype)
    assert out.dtype == dtype and out.shape == (5, 37)
    assert torch.equal(out.flatten(), reference_uniform(seed, offset, 5 * 37, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed,offset", WORDS)
def test_normal_is_near_the_reference(seed, offset, dtype):
    out = drawn("normal", [5, 37], 0.0, 1.0, seed, offset, dtype)
    expected = reference_normal(seed, offset, 5 * 37, dtype)
    # The angle is rounded to half a unit of 2 pi; a cosine near its zero moves by as much, times a radius below 9.
    eps = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-19, torch.float64: 2.0**-48}[dtype]
    assert ((out.double().flatten() - expected).abs() <= eps * (1 + expected.abs())).all()


@pytest.mark.parametrize("shape", [[0], [1], [], [1, 9], [3, 1, 5], [2, 0, 3], [2, 3, 5, 7]])
def test_numbers_go_by_rows(shape):
    count = math.prod(shape)
    out = drawn("uniform", shape, 0.0, 1.0, 7, 9, torch.float32)
    assert list(out.shape) == shape and torch.equal(out.flatten(), reference_uniform(7, 9, count, torch.float32))


def test_low_and_high_mean_and_deviation():
    u, z = reference_uniform(3, 4, 99, torch.float32), drawn("normal", [99], 0.0, 1.0, 3, 4, torch.float32)
    assert torch.equal(drawn("uniform", [99], -2.0, 5.0, 3, 4, torch.float32), -2 + u * 7)
    assert torch.equal(drawn("normal", [99], 10.0, 0.5, 3, 4, torch.float32), 10 + 0.5 * z)
    with FusionDefinition() as fd:
        low, high = fd.define_scalar(torch.float32, name="low"), fd.define_scalar(torch.float32, name="high")
        seed, offset = fd.define_scalar(torch.int64, name="seed"), fd.define_scalar(torch.int32, name="offset")
        fd.add_output(fd.ops.uniform(low, high, [99], rng_seed=seed, rng_offset=offset))
    assert torch.equal(fd.execute([-2.0, 5.0, 3, 4])[0], -2 + u * 7)


# -- distribution: each bound fails for a right generator with a probability below 1e-9
COUNT = 1 << 20
SIGMAS = 6.2


def moments(values):
    """Mean, and the mean of squares, with the standard error of each."""
    v = values.double()
    return [(float(m.mean()), float(m.std()) / math.sqrt(len(m))) for m in (v, v * v)]


@pytest.mark.parametrize("seed", [0, 2**40 + 5])
def test_uniform_numbers_are_uniform(seed):
    u = drawn("uniform", [COUNT], 0.0, 1.0, seed, 0, torch.float32)
    assert 0 <= float(u.min()) and float(u.max()) < 1
    for (value, error), expected in zip(moments(u), (1 / 2, 1 / 3), strict=True):
        assert abs(value - expected) <= SIGMAS * error
    bins = 1024
    counts = torch.bincount((u * bins).long(), minlength=bins).double()
    chi_square = float(((counts - COUNT / bins) ** 2).sum() / (COUNT / bins))
    assert abs(chi_square - (bins - 1)) <= 7 * math.sqrt(2 * (bins - 1))
    # Neighbours of each distance within two blocks are independent.
    for lag in range(1, 9):
        products = (u[lag:].double() - 0.5) * (u[:-lag].double() - 0.5)
        assert abs(float(products.mean())) <= SIGMAS / 12 / math.sqrt(len(products))


@pytest.mark.parametrize("seed", [0, 2**40 + 5])
def test_normal_numbers_are_normal(seed):
    z = drawn("normal", [COUNT], 0.0, 1.0, seed, 0, torch.float32)
    for (value, error), expected in zip(moments(z), (0, 1), strict=True):
        assert abs(value - expected) <= SIGMAS * error
    assert abs(float((z.double() ** 3).mean())) <= SIGMAS * math.sqrt(15 / COUNT)
    assert abs(float((z.double() ** 4).mean()) - 3) <= SIGMAS * math.sqrt(96 / COUNT)
    bins = 1024
    at = (0.5 * torch.erfc(-z.double() / math.sqrt(2)) * bins).long().clamp(0, bins - 1)
    counts = torch.bincount(at, minlength=bins).double()
    chi_square = float(((counts - COUNT / bins) ** 2).sum() / (COUNT / bins))
    assert abs(chi_square - (bins - 1)) <= 7 * math.sqrt(2 * (bins - 1))
    for lag in range(1, 9):
        assert abs(float((z[lag:].double() * z[:-lag].double()).mean())) <= SIGMAS / math.sqrt(COUNT - lag)


def test_streams_of_two_seeds_and_two_offsets_are_apart():
    draws = [drawn("uniform", [4096], 0.0, 1.0, s, o, torch.float32) for s, o in ((0, 0), (1, 0), (2**32, 0), (0, 1024), (0, 2**32))]
    for i, a in enumerate(draws):
        for b in draws[:i]:
            assert int((a == b).sum()) < 20


# -- dropout
def dropout(p, **words):
    with FusionDefinition("dropout") as fd:
        x = fd.define_tensor([-1, -1], name="x")
        keep = fd.ops.ge(fd.ops.rand_like(x, **words), p)
        fd.result = fd.ops.where(keep, fd.ops.mul(x, 1 / (1 - p)), 0.0)
        fd.add_output(fd.result)
    return fd


def test_dropout_keeps_and_scales_as_torch_does():
    x, p = torch.randn(512, 1024) + 3, 0.3
    (y,) = dropout(p, rng_seed=11).execute([x])
    kept = y != 0
    assert torch.equal(y[kept], (x * (1 / (1 - p)))[kept])
    expected = torch.nn.functional.dropout(x, p)
    torch.testing.assert_close(y[kept & (expected != 0)], expected[kept & (expected != 0)])
    share = float((~kept).double().mean())
    assert abs(share - p) <= SIGMAS * math.sqrt(p * (1 - p) / x.numel())
    for axis in (0, 1):  # no row and no column has another share
        shares = (~kept).double().mean(axis)
        assert float((shares - p).abs().max()) <= 7 * math.sqrt(p * (1 - p) / x.shape[axis])


@pytest.mark.parametrize("split", [3, 32, 128])
def test_a_schedule_changes_no_number(split):
    x = torch.randn(13, 37)
    fd = dropout(0.5, rng_seed=5, rng_offset=2**33)
    (plain,) = fd.execute([x])
    y = fd.result
    fd.sched.merge(y, 0)
    fd.sched.split(y, 0, split)
    fd.sched.transform_like(y)
    fd.sched.parallelize(y, 0, ParallelType.grid_x)
    fd.sched.parallelize(y, 1, ParallelType.block_x)
    fd.sched.parallelize_like(y)
    fd.sched.inline_most()
    assert torch.equal(fd.execute([x])[0], plain)


# -- torch's generators
def test_without_a_seed_torchs_generator_gives_it():
    fd = dropout(0.5)
    x = torch.ones(64, 64)
    torch.manual_seed(3)
    first, second = fd.execute([x])[0], fd.execute([x])[0]
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(fd.execute([x])[0], first) and torch.equal(fd.execute([x])[0], second)
    with torch.random.fork_rng():
        torch.manual_seed(4)
        assert not torch.equal(fd.execute([x])[0], first)


def test_random_tensors_of_one_fusion_follow_each_other():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], name="x")
        for _ in range(2):
            fd.add_output(fd.ops.rand_like(x))
        fd.add_output(fd.ops.uniform(0.0, 1.0, [7]))
        fd.add_output(fd.ops.rand_like(x))
        fd.add_output(fd.ops.neg(fd.define_tensor([-1], name="late")))
    assert fd.program.input_names() == ["x", "rng_seed", "rng_offset", "late"]
    x, late = torch.zeros(3, 7), torch.ones(2)
    outs = fd.execute([x, 17, 100, late])
    for out, (offset, count) in zip(outs, ((100, 21), (106, 21), (112, 7), (114, 21)), strict=False):
        assert torch.equal(out.flatten(), reference_uniform(17, offset, count, torch.float32))
    torch.manual_seed(0)
    a, b, _, c, _ = fd.execute([x, late])
    assert not torch.equal(a, b) and not torch.equal(b, c)


def test_a_copy_draws_on():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.uniform(0.0, 1.0, [6]))
    other = fd.copy()
    other.add_output(other.ops.uniform(0.0, 1.0, [6]))
    a, b = other.execute([1, 0])
    assert torch.equal(a, reference_uniform(1, 0, 6, torch.float32)) and torch.equal(b, reference_uniform(1, 2, 6, torch.float32))
    assert torch.equal(fd.execute([1, 0])[0], a)


def test_a_record_keeps_seed_and_offset(tmp_path):
    fd = dropout(0.5)
    x = torch.randn(5, 9)
    fd.execute([x])
    fd.record(tmp_path / "last.fuse")
    fd.record(tmp_path / "given.fuse", [x])
    for name in ("last", "given"):
        assert fusebox.replay(tmp_path / f"{name}.fuse").identical


def test_validate_and_judge_draw_too():
    x = torch.randn(5, 9)
    fd = dropout(0.5)
    fd.validate([x])
    assert fd.judge([x]).outcome == "passed"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_the_generator_advances_by_four_words_for_a_block():
    x = torch.ones(5, 7, device="cuda")
    fd = dropout(0.5)
    torch.cuda.manual_seed(21)
    generator = torch.cuda.default_generators[x.device.index or 0]
    before = generator.get_offset()
    first = fd.execute([x])[0]
    assert generator.get_offset() == before + 4 * 9
    second = fd.execute([x])[0]
    assert not torch.equal(first, second)
    torch.cuda.manual_seed(21)
    assert torch.equal(fd.execute([x])[0], first)
    assert torch.equal(first.cpu(), fd.execute([x.cpu(), 21, 0])[0])


# -- refusals
def refused(build):
    with pytest.raises(FuseboxError) as caught:
        build(FusionDefinition())
    return caught.value.code


def test_refusals():
    assert refused(lambda fd: fd.ops.uniform(0.0, 1.0, [3], rng_offset=1)) == "E0207"
    assert refused(lambda fd: fd.ops.uniform(0.0, 1.0, [3], rng_seed=1.5)) == "E0207"
    assert refused(lambda fd: fd.ops.uniform(0.0, 1.0, 3, rng_seed=1)) == "E0207"
    assert refused(lambda fd: fd.ops.uniform(0.0, 1.0, [-3], rng_seed=1)) == "E0207"
    assert refused(lambda fd: fd.ops.uniform(0.0, 1.0, [3], rng_seed=1, dtype=DataType.Int)) == "E0204"
    assert refused(lambda fd: fd.ops.normal(0.0, 1.0, [3], rng_seed=1, dtype=DataType.Float8_e5m2)) == "E0211"
    assert refused(lambda fd: fd.ops.normal(0.0, 1j, [3], rng_seed=1)) == "E0204"
    assert refused(lambda fd: fd.ops.uniform(0.0, 1.0, [3], rng_seed=fd.define_scalar(torch.float32))) == "E0204"
    assert refused(lambda fd: fd.ops.uniform(0.0, 1e6, [3], rng_seed=1, dtype=torch.float16)) == "E0216"


def unseeded_dropout():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], name="x")
        fd.add_output(fd.ops.where(fd.ops.lt(fd.ops.rand_like(x), 0.9), x, 0.0))
    return fd


def test_plans_of_unseeded_random_tensors_take_the_inputs_of_execute():
    fd, inputs = unseeded_dropout(), [torch.ones(4, 8)]
    fd.execute(inputs)
    before = torch.get_rng_state()
    assert [d.scheduler for d in fd.plan(inputs)] == ["pointwise"]
    assert list(fd.cuda_source(inputs)) and "uniform" in fd.scheduled_text(inputs)
    assert fd.sched.compile_refusal(inputs) is None
    assert torch.equal(before, torch.get_rng_state()), "a plan draws no seed"
    assert fd.profile(inputs, runs=1)
    with pytest.raises(FuseboxError) as caught:
        fd.tune(inputs, device="cpu")
    assert caught.value.code == "E0440"


def test_a_refused_random_tensor_leaves_no_seed_behind():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], name="x")
        with pytest.raises(FuseboxError):
            fd.ops.uniform(0.0, 1.0, [2.0])
        fd.add_output(fd.ops.neg(x))
    assert "rng" not in fd.to_string()
    assert [d.scheduler for d in fd.plan([torch.ones(3)])] == ["pointwise"]


def test_one_plan_serves_every_seed():
    fd, inputs = unseeded_dropout(), [torch.ones(4, 8)]
    for _ in range(20):
        fd.execute(inputs)
    info = fd.cache_info()  # an equal definition of another test may have made the plan
    assert info.plans_made <= 1 and not [r for r in info.recompiles if "rng" in r]


def test_a_seed_is_drawn_on_the_cpu():
    fd = FusionDefinition()
    fd.add_output(fd.ops.uniform(0.0, 1.0, [5]))
    torch.manual_seed(7)
    (wanted,) = fd.execute([])
    torch.manual_seed(7)
    with torch.device("meta"):
        (got,) = fd.execute([])
    assert torch.equal(got, wanted)


def test_a_seed_without_memory_is_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode

    fd = FusionDefinition()
    fd.add_output(fd.ops.uniform(0.0, 1.0, [5]))
    with FakeTensorMode(), pytest.raises(FuseboxError, match="no memory") as error:
        fd.execute([])
    assert error.value.code == "E0401"
    with pytest.raises(FuseboxError, match="no memory"):
        torch.func.vmap(lambda x: fd.execute([])[0] + x)(torch.ones(2))
