# group.py: torch.distributed's backend "tutti".
# SPDX-License-Identifier: Apache-2.0
"""After ``import tutti.torch``::

    dist.init_process_group("tutti")

serves all of torch.distributed, on the CPU and on GPUs: every collective in every form, messages, groups, meshes,
DistributedDataParallel, ZeroRedundancyOptimizer, FSDP2 and functional collectives. A call that ranks make differently
raises on every one of them, a lost rank is named, and no call waits longer than its timeout.
``tutti.torch.group_of(pg)`` is the same group for Tutti's own verbs.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend as _BackendOfCxx
from torch.distributed import distributed_c10d as c10d

from ... import _native
from ..._errors import InvalidArgument
from ..gpu import is_on_gpu, on_cpu
from ..memory import from_array
from . import compiled as cxx
from . import rendezvous as meeting
from .barrier import monitored_barrier
from .collectives import Collectives
from .layout import Flat
from .modes import shown_to_modes
from .work import Work

_CPU = torch.device("cpu")
_UNRECORDED = contextlib.nullcontext()


class ProcessGroup(Collectives, dist.ProcessGroup):
    """A group of torch.distributed whose calls a Tutti group carries out.

    torch's own code calls some methods from C++, which finds only those that this very class has: names are torch's.
    """

    def __init__(self, store: dist.Store, group: _native.Group, timeout: timedelta) -> None:
        super().__init__(group.rank, group.size)  # with the store there, torch would not make a class of Python's
        self.group = group
        self.set_timeout(timeout)
        self._store = store
        self._call_lock = threading.Lock()  # a Tutti group takes calls from one thread at a time
        self._name = ""
        self._description = ""
        self._barriers = 0
        self._splits: Counter[tuple[int, ...]] = Counter()
        self._owns_world = False
        self._is_shown = False  # to the profiler, by the part in C++

    # Who it is.

    def getBackendName(self) -> str:
        return "tutti"

    name = _get_backend_name = getBackendName

    def getGroupName(self) -> str:
        return self._name

    group_name = property(getGroupName)

    def setGroupName(self, name: str) -> None:
        self._name = name

    _set_group_name = setGroupName

    def getGroupDesc(self) -> str:
        return self._description

    group_desc = property(getGroupDesc)

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    _set_group_desc = setGroupDesc

    def get_group_store(self) -> dist.Store:
        return self._store

    def __repr__(self) -> str:
        return f"tutti.torch.ProcessGroup(rank {self.rank()} of {self.size()}, name {self._name!r})"

    # What torch asks of the backend of a device: there is one device, and this is its backend.

    supports_splitting = False  # not by torch's split_group(), which asks for an accelerator first
    supports_coalescing = False  # calls are started at once, and several run side by side
    supports_time_estimate = False
    supports_shrinking = False

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(device) for device in _devices()]

    def _get_backend(self, device: torch.device) -> ProcessGroup:
        if torch.device(device).type not in _devices():
            raise RuntimeError(f"backend tutti serves {' and '.join(_devices())}, not {device}")
        return self

    def supports_tensor_alloc(self, device: torch.device) -> bool:
        return torch.device(device).type == "cpu"

    def allocate_tensor(self, size: int, *, dtype: torch.dtype, device: torch.device = _CPU) -> torch.Tensor:
        """Memory that the other ranks of this host read without a copy."""
        return from_array(self.group.memory(size * dtype.itemsize)).view(dtype)

    def set_timeout(self, timeout: timedelta) -> None:
        """For calls from now on."""
        self.timeout = timeout
        self._seconds = timeout.total_seconds()

    _set_default_timeout = set_timeout

    @property
    def options(self) -> _BackendOfCxx.Options:
        """As torch's own backends tell theirs."""
        return _BackendOfCxx.Options("tutti", self.timeout)

    def _set_sequence_number_for_group(self) -> None:
        """The core numbers calls itself."""

    def _has_hooks(self) -> bool:
        return False

    def _wait_for_pending_works(self) -> None:
        """Nothing runs on completion but futures, which keep themselves."""

    # Messages.

    @shown_to_modes
    def send(self, tensors: Sequence[torch.Tensor], dst: int, tag: int = 0) -> Work:
        with self._recorded("send", tensors), self._call_lock:
            flat = Flat([on_cpu(tensor) for tensor in tensors])  # messages move the CPU's memory
            return Work([self.group.start_send(flat.array, dst, tag, timeout=self._seconds)], list(tensors))

    @shown_to_modes
    def recv(self, tensors: Sequence[torch.Tensor], src: int, tag: int = 0) -> Work:
        return self._receive("recv", tensors, src, tag)

    @shown_to_modes
    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Work:
        return self._receive("recvAnySource", tensors, None, tag)

    def _receive(self, name: str, tensors: Sequence[torch.Tensor], src: int | None, tag: int) -> Work:
        with self._recorded(name, tensors), self._call_lock:
            hosted = [on_cpu(tensor) for tensor in tensors]
            flat = Flat(hosted, filled=False)
            part = self.group.start_recv(flat.array, src, tag, timeout=self._seconds)

            def settle() -> None:
                flat.restore()
                for tensor, arrived in zip(tensors, hosted, strict=True):
                    if arrived is not tensor:
                        tensor.copy_(arrived)

            needs_end = flat.is_staged or any(is_on_gpu(tensor) for tensor in tensors)
            return Work([part], list(tensors), settle if needs_end else None)

    def _start_coalescing(self, device: torch.device) -> None:
        """Calls are started at once, and several of them run side by side."""

    def _end_coalescing(self, device: torch.device) -> None:
        return None

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """A barrier that names the ranks that did not come, on rank 0; the group stays usable."""
        self._barriers += 1
        place = dist.PrefixStore(f"tutti/monitored/{self._barriers}", self._store)
        monitored_barrier(self, place, self.timeout if timeout is None else timeout, wait_all_ranks)

    # Groups from this one, and the end.

    def split_group(
        self,
        new_ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> ProcessGroup | None:
        """The listed ranks of this group as a group of their own; only they need call it. None: this one is not in it."""
        if self.rank() not in new_ranks:
            return None
        timeout = self.timeout if timeout is None else timeout
        self._splits[tuple(new_ranks)] += 1  # its members make such groups equally often
        words = ["split", *map(str, new_ranks), f"#{self._splits[tuple(new_ranks)]}"]
        name = group_name or f"{self._name}:{'_'.join(words)}"
        part = ProcessGroup(
            dist.PrefixStore(f"{name}/", self._store), self.group.subgroup(list(new_ranks), timeout), timeout
        )
        part.setGroupName(name)
        part.setGroupDesc(group_desc or f"{self._description}:split")
        return part

    splitGroup = split_group

    def shutdown(self) -> None:
        """The end of the group: calls under way on other ranks go on, later ones here raise."""
        if self._owns_world:
            meeting.leave(self.group)

    def abort(self) -> None:
        """Breaks the group on every rank: calls under way raise."""
        self.group.abort(f"abort() on rank {self.rank()} of process group {self._name}")

    # The profiler.

    def _recorded(self, verb: str, tensors: Sequence[torch.Tensor]) -> contextlib.AbstractContextManager:
        if self._is_shown or not torch.autograd._profiler_enabled():
            return _UNRECORDED
        return _record(f"tutti:{verb}", tensors)


@contextlib.contextmanager
def _record(name: str, tensors: Sequence[torch.Tensor]):
    with torch._C._profiler._RecordFunctionFast(name, list(tensors)):
        yield


def _create(options: Any, _: Any) -> Any:
    """What torch calls for every group of this backend, on the ranks that are in it.

    Groups of a default group that is Tutti's are parts of its world. Beside another backend's they meet in the store
    they are given.
    """
    if not cxx.is_asked_for():
        return _made(options)
    cxx.module()  # may have to be compiled: before the others wait for this rank
    return cxx.wrapped(_made(options))


def _made(options: Any) -> ProcessGroup:
    default = _behind(c10d._world.default_pg)
    ranks, timeout = list(options.global_ranks_in_group), options.timeout
    if ranks and default is not None:
        return ProcessGroup(options.store, default.group.subgroup(ranks, timeout), timeout)
    world = meeting.join(options.store, options.group_rank, options.group_size, timeout)
    process_group = ProcessGroup(options.store, world, timeout)
    process_group._owns_world = True
    return process_group


def _behind(process_group: dist.ProcessGroup | None) -> ProcessGroup | None:
    """The process group of this class that makes the calls of a group of torch.distributed; None: it has another backend."""
    if process_group is None or isinstance(process_group, ProcessGroup):
        return process_group
    if not cxx.is_asked_for() or _CPU not in process_group._device_types:
        return None
    return cxx.behind(process_group._get_backend(_CPU))


def group_of(process_group: dist.ProcessGroup | None = None) -> _native.Group:
    """The Tutti group behind a group of torch.distributed, for Tutti's own verbs.

    Example::

        dist.init_process_group("tutti")
        y = tutti.scan(x, group=tutti.torch.group_of())

    Raises InvalidArgument if that group's backend is not "tutti".
    """
    process_group = process_group or c10d._get_default_group()
    found = _behind(process_group) if isinstance(process_group, dist.ProcessGroup) else None
    if found is None:
        raise InvalidArgument(
            f"{process_group} has not the backend tutti: give one that has, or init_process_group('tutti')"
        )
    return found.group


def _devices() -> list[str]:
    """What the backend serves. The part in C++ serves the CPU."""
    return ["cpu", "cuda"] if torch.cuda.is_available() and not cxx.is_asked_for() else ["cpu"]


def _register() -> None:
    if "TUTTI" in dist.Backend._plugins:
        return
    dist.Backend.register_backend("tutti", _create, extended_api=True, devices=_devices())
    _extend_monitored_barrier()
    _extend_set_pg_timeout()
    _leave_out_flight_recorder()


def _leave_out_flight_recorder() -> None:
    """From 2.15 on torch attaches a recorder to every group whose backend does not record by itself; on a group that is a
    class of Python it cannot. What Tutti knows of calls under way is in its own errors."""
    getattr(c10d, "_FR_SELF_RECORDING_BACKENDS", set()).add("tutti")


def _extend_monitored_barrier() -> None:
    """torch.distributed.monitored_barrier() refuses every backend but gloo before it asks it."""
    original = c10d.monitored_barrier

    def monitored_barrier(group=dist.GroupMember.WORLD, timeout=None, wait_all_ranks=False):
        target = c10d._world.default_pg if group is None else group
        found = _behind(target) if isinstance(target, dist.ProcessGroup) else None
        if found is None:
            return original(group, timeout, wait_all_ranks)
        if isinstance(timeout, float):
            timeout = timedelta(seconds=timeout)
        return found.monitored_barrier(timeout, wait_all_ranks)

    monitored_barrier.__doc__ = original.__doc__
    c10d.monitored_barrier = dist.monitored_barrier = monitored_barrier


def _extend_set_pg_timeout() -> None:
    """It warns that the backend is none of torch's own, and sets nothing."""
    original = c10d._set_pg_timeout

    @functools.wraps(original)
    def _set_pg_timeout(timeout: timedelta, group: dist.ProcessGroup | None = None) -> None:
        target = c10d._get_default_group() if group is None else group
        found = _behind(target)
        if found is None:
            original(timeout, group)
        elif found is target:
            found.set_timeout(timeout)
        else:
            target._get_backend(_CPU)._set_default_timeout(timeout)

    c10d._set_pg_timeout = _set_pg_timeout


_register()
