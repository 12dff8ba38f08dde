# _reducer.py: gradients leave for their owners as soon as a chunk has them all: from stage 2 of ZeRO on.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch

from .. import _native


class Reducer:
    """From stage 2 on: gradients leave for their owners as soon as a chunk has them all."""

    IN_FLIGHT_MAX = 2  # chunks whose gradients are whole on this rank, besides the one being filled

    def __init__(self, optimizer: Any):
        self.optimizer = optimizer
        self.chunks = optimizer.chunks
        self.pool: dict[tuple[int, torch.dtype], list[torch.Tensor]] = {}
        self.filling: dict[int, torch.Tensor] = {}
        self.flying: list[tuple[int, Any, torch.Tensor, torch.Tensor]] = []
        self.runs: dict[int, torch.Tensor] = {}  # by chunk: this rank's part, kept from step to step
        self.is_open = False
        self.waiting: list[int] = []  # per chunk: gradients that have not come
        places = {}
        plan = []
        for c, chunk in enumerate(self.chunks):
            plan.append([len(places) + i for i in range(len(chunk.parameters))])
            for place, parameter in enumerate(chunk.parameters):
                places[len(places)] = (c, place)
                parameter.register_post_accumulate_grad_hook(lambda p, item=len(places) - 1: self.ready(item))
        self.places = places
        self.schedule = _native.BucketSchedule(plan)

    def ready(self, item: int) -> None:
        if not self.is_open:
            self.is_open = True
            self.optimizer.forget_spoiled()
            self.schedule.begin()
            self.waiting = [len(chunk.parameters) for chunk in self.chunks]
            torch.autograd.Variable._execution_engine.queue_callback(self.close)
        self._take(item)
        for c in self.schedule.ready(item):
            self._start(c)

    def _buffer(self, c: int) -> torch.Tensor:
        if c not in self.filling:
            chunk = self.chunks[c]
            free = self.pool.setdefault((chunk.count, chunk.dtype), [])
            self.filling[c] = free.pop() if free else chunk.new_flat()
        return self.filling[c]

    @torch.no_grad()
    def _take(self, item: int) -> None:
        c, place = self.places[item]
        chunk = self.chunks[c]
        parameter, view = chunk.parameters[place], chunk.view(self._buffer(c), place)
        if parameter.grad is None:
            view.zero_()
        else:
            view.copy_(parameter.grad)
            parameter.grad = None
        self.waiting[c] -= 1
        if self.waiting[c] == 0:
            self.optimizer.chunk_is_through(chunk)

    def _start(self, c: int) -> None:
        chunk, whole = self.chunks[c], self._buffer(c)
        del self.filling[c]
        run = self._memory_for_run(c)
        self.flying.append((c, chunk.start_reduce(whole, run, "mean"), whole, run))
        while len(self.flying) > self.IN_FLIGHT_MAX:
            self._land()

    def _memory_for_run(self, c: int) -> torch.Tensor:
        """Memory for this rank's averaged gradients: that of the last step, as new memory costs more time than what
        goes into it; or new memory where backward came again before the step."""
        chunk = self.chunks[c]
        is_used = id(chunk) in self.optimizer._gradients or any(flying[0] == c for flying in self.flying)
        if is_used or c not in self.runs:
            self.runs[c] = chunk.new_run()
        return self.runs[c]

    @torch.no_grad()
    def _land(self) -> None:
        c, work, whole, run = self.flying.pop(0)
        self.optimizer.wait_for([work])
        chunk = self.chunks[c]
        self.pool[chunk.count, chunk.dtype].append(whole)
        gradients = self.optimizer._gradients
        if id(chunk) in gradients:
            gradients[id(chunk)].add_(run)  # several backwards before one step
        else:
            gradients[id(chunk)] = run

    def close(self) -> None:
        """After backward: parameters that nobody used count as 0 where others used them."""
        self.is_open = False
        for item in self.schedule.missing():
            self._take(item)
            for c in self.schedule.ready(item):
                self._start(c)
        self.optimizer.backward_is_over()

    def is_through(self, chunk: Any) -> bool:
        """Whether all its gradients have come in this backward."""
        return self.waiting[self.chunks.index(chunk)] == 0

    def finish(self) -> None:
        while self.flying:
            self._land()
