"""A GPU that is a stand-in, for all tests of `matmul`."""

import pytest

from tests.support import fake_cupy, fake_gpu

host = pytest.fixture(fake_gpu.installed)
gpu = pytest.fixture(fake_cupy.gpu)
