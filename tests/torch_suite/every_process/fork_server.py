# fork_server.py: processes that a test would spawn come from a server that has imported torch already.
# SPDX-License-Identifier: Apache-2.0
"""Most of PyTorch's distributed tests spawn 4 processes each, and nearly all the time of a test is their `import torch`. A
fork server imports it once for a file. Its children get what a spawned process gets: no state of the test's own process
but the pickled arguments, sys.path, the folder, and the environment as it is when the process is started."""

import multiprocessing
import multiprocessing.spawn as spawn
import os

PRELOADED = [
    "torch",
    "torch.testing._internal.common_distributed",
    "torch.testing._internal.distributed._tensor.common_dtensor",
]


def install() -> None:
    get_context, prepared, prepare = multiprocessing.get_context, spawn.get_preparation_data, spawn.prepare

    def changed_get_context(method=None):
        if method != "spawn":
            return get_context(method)
        context = get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        return context

    def changed_prepared(name):
        return prepared(name) | {"environment": dict(os.environ)}

    def changed_prepare(data):
        environment = data.pop("environment", None)
        if environment is not None:  # in a child of the fork server, whose own environment is that of its start
            os.environ.clear()
            os.environ.update(environment)
        prepare(data)

    multiprocessing.get_context = changed_get_context  # torch.multiprocessing takes it over when it is imported
    spawn.get_preparation_data, spawn.prepare = changed_prepared, changed_prepare
