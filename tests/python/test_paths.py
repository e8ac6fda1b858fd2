"""Paths of files that the package reads and writes: every form that Python has, and refusals with the code of a file that cannot be opened."""

import os
import pathlib

import pytest
import torch

import fusebox
from definitions import code_of
from fusebox import FusionDefinition


def negated():
    fd = FusionDefinition()
    fd.add_output(fd.ops.neg(fd.define_tensor([4])))
    return fd


def refusals(path):
    """The codes of a write and of two reads."""
    return [code_of(call) for call in (lambda: negated().record(path, [torch.ones(4)]), lambda: fusebox.load(path), lambda: fusebox.replay(path))]


@pytest.mark.parametrize("form", [str, os.fsencode, pathlib.Path])
def test_forms_of_a_path(tmp_path, form):
    path = form(str(tmp_path / "ü.fuse"))
    negated().record(path, [torch.ones(4)])
    assert os.listdir(tmp_path) == ["ü.fuse"]
    assert fusebox.load(path).to_string().startswith(negated().to_string()) and fusebox.replay(path).identical


def test_a_path_with_a_nul_opens_no_other_file(tmp_path):
    path = str(tmp_path / "a.fuse")
    assert refusals(path + "\0junk") == ["E0431", "E0430", "E0430"] and os.listdir(tmp_path) == []
    negated().record(path, [torch.ones(4)])
    assert refusals(os.fsencode(path + "\0junk")) == ["E0431", "E0430", "E0430"]


@pytest.mark.parametrize("name", [b"\xff.fuse", "\ud800.fuse", "\udcff.fuse"])
def test_a_path_that_is_not_utf8(tmp_path, name):
    assert refusals(os.path.join(os.fsencode(tmp_path), name) if isinstance(name, bytes) else str(tmp_path / name)) == ["E0431", "E0430", "E0430"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", [3, None, ["a.fuse"], torch.ones(2)])
def test_what_is_no_path(path):
    assert refusals(path) == ["E0215"] * 3
