# suite.py: PyTorch's own tests of torch.distributed, made to run on a backend they do not know.
# SPDX-License-Identifier: Apache-2.0
"""The tests choose what to run by comparing the backend's name with "gloo", "nccl" and so on. Whatever is written for gloo
on the CPU should hold for Tutti, so the name handed to them is "tutti" but equal to "gloo", too. Nothing else of
PyTorch's file is changed. Tutti stays out of its lists of backends whose profiler events are examined: those of a
backend in Python cannot be asynchronous.
"""

import importlib.util
import os
import sys

MODULE = "torch.testing._internal.distributed.distributed_test"
NAME_LINE = 'BACKEND = os.environ["BACKEND"]'


class NamedLikeGloo(str):
    """A backend's name that the tests take for gloo's."""

    def __eq__(self, other):
        return str.__eq__(self, other) or other == "gloo"

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash("gloo")


def load(backend: str, ranks: int):
    """The module with the tests, for `backend`."""
    os.environ.update(BACKEND=backend, WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1")
    os.environ["PYTORCH_PRINT_REPRO_ON_FAILURE"] = "0"
    module = importlib.import_module(MODULE) if backend == "gloo" else load_changed(backend)
    # Tests of groups of some ranks ask for 8 ranks, unless they find "mpi" here; three are enough for them.
    os.environ["BACKEND"] = "mpi"
    return module


def load_changed(backend: str):
    import tutti.torch  # noqa: F401  registers the backend
    from torch.testing._internal.common_distributed import DistTestCases

    DistTestCases.backend_feature["plugin"].add(backend)
    spec = importlib.util.find_spec(MODULE)
    source = spec.loader.get_source(MODULE)
    if source.count(NAME_LINE) != 1:
        raise SystemExit(f"{MODULE} is not as this driver knows it: there is no single line {NAME_LINE}")
    module = importlib.util.module_from_spec(spec)
    module.backend_under_test = NamedLikeGloo(backend)
    sys.modules[MODULE] = module
    exec(compile(source.replace(NAME_LINE, "BACKEND = backend_under_test"), spec.origin, "exec"), vars(module))
    return module


def case_class(module):
    """What PyTorch's test_distributed_spawn.py makes of it."""

    class TestDistBackendWithSpawn(module.TestDistBackend, module.DistributedTest._DistTestBase):
        pass

    return TestDistBackendWithSpawn
