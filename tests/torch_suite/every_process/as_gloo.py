# as_gloo.py: a program that asks torch.distributed for gloo gets Tutti.
# SPDX-License-Identifier: Apache-2.0
"""torch is not imported here: most processes do, and then torch.distributed is changed as soon as it is there."""

import functools
import importlib.abc
import importlib.util
import sys

MODULE = "torch.distributed.distributed_c10d"


class NamedLikeGloo(str):
    """The name of a backend that tests take for gloo's."""

    def __eq__(self, other):
        return str.__eq__(self, other) or other == "gloo"

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash("gloo")


def ours(backend):
    """Where gloo would serve the CPU, also as the default for a machine without a GPU, Tutti does."""
    import tutti.torch  # noqa: F401  registers the backend

    text = None if backend is None else str(backend).lower()
    return "tutti" if text is None or "gloo" in text else backend


def change(module):
    init, new_group, get_backend = module.init_process_group, module.new_group, module.get_backend

    @functools.wraps(init)
    def init_process_group(backend=None, *arguments, **options):
        return init(ours(backend), *arguments, **options)

    @functools.wraps(new_group)
    def changed_new_group(ranks=None, timeout=None, backend=None, *arguments, **options):
        backend = backend if backend is None else ours(backend)  # None: that of the default group
        return new_group(ranks, timeout, backend, *arguments, **options)

    @functools.wraps(get_backend)
    def changed_get_backend(group=None):
        name = get_backend(group)
        return NamedLikeGloo(name) if name == "tutti" else name

    module.init_process_group, module.new_group = init_process_group, changed_new_group
    module.get_backend = changed_get_backend


class Loader(importlib.abc.Loader):
    """Changes the module once its own loader has run it."""

    def __init__(self, original):
        self._original = original

    def create_module(self, spec):
        return self._original.create_module(spec)

    def exec_module(self, module):
        self._original.exec_module(module)
        change(module)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        spec.loader = Loader(spec.loader)
        return spec


def install() -> None:
    sys.meta_path.insert(0, Finder())
