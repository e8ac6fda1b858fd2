"""The build backend that pip calls: scikit-build-core, with PyTorch in the build environment.

pip builds in an environment of its own. The ATen module is built against the PyTorch of the environment that pip installs
into. If that has none yet, it is built against the one that pip is about to install there.
"""

import subprocess
import sys

from scikit_build_core import build as backend
from scikit_build_core.build import *  # noqa: F403  the other hooks

# -I makes Python look past the separate environment.
FIND = [sys.executable, "-I", "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]


def get_requires_for_build_wheel(config_settings=None):
    has_torch = subprocess.run(FIND, check=False).returncode == 0
    return [*backend.get_requires_for_build_wheel(config_settings), *([] if has_torch else ["torch>=2.11"])]
