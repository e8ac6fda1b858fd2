"""Findings that only a GPU shows: files of tests/fuzz/findings whose names begin with gpu_."""

import pathlib

import pytest
import torch
from support import fusebox

FILES = sorted((pathlib.Path(__file__).parents[1] / "fuzz" / "findings").glob("gpu_*.fir"))

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_gpu_finds_nothing_any_more(file):
    result = fusebox("fuzz", "--case", file, "--on", "cuda")
    assert "nothing found" in result.stdout, result.stdout + result.stderr
