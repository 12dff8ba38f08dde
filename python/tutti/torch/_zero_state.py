# _zero_state.py: a sharded optimiser's state as the plain optimiser would have it, and back.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch

from .._errors import InvalidArgument


def _numbers(optimizer: Any) -> dict[int, int]:
    """A parameter's number in torch's state_dict: its place in the param groups."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return {id(p): i for i, p in enumerate(parameters)}


def _groups(optimizer: Any) -> list[dict[str, Any]]:
    groups, begin = [], 0
    for group in optimizer.param_groups:
        fields = {key: value for key, value in group.items() if key != "params"}
        groups.append({**fields, "params": list(range(begin, begin + len(group["params"])))})
        begin += len(group["params"])
    return groups


def collect(optimizer: Any) -> dict[str, Any]:
    """Collective."""
    numbers = _numbers(optimizer)
    state: dict[int, dict[str, Any]] = {}
    for chunk in optimizer.chunks:
        runs = optimizer._runs[id(chunk)]
        if chunk.owners is None:
            _collect_run(chunk, optimizer.inner.state.get(runs[0], {}), numbers, state)
        else:
            _collect_whole(optimizer, chunk, numbers, state)
    return {"state": dict(sorted(state.items())), "param_groups": _groups(optimizer)}


def _collect_run(chunk: Any, own: dict[str, Any], numbers: dict[int, int], state: dict[int, dict[str, Any]]) -> None:
    for key in sorted(own):
        value = own[key]
        is_run = torch.is_tensor(value) and value.dim() == 1 and value.numel() == chunk.length and key != "step"
        parts = chunk.views(chunk.gather_run(value)) if is_run else [value] * len(chunk.parameters)
        for parameter, part in zip(chunk.parameters, parts, strict=True):
            copy = part.clone() if torch.is_tensor(part) else part
            state.setdefault(numbers[id(parameter)], {})[key] = copy


def _collect_whole(optimizer: Any, chunk: Any, numbers: dict[int, int], state: dict[int, dict[str, Any]]) -> None:
    from .._objects.verbs import all_gather_object

    mine = iter(optimizer._runs[id(chunk)])
    found = {}
    for parameter, owner in zip(chunk.parameters, chunk.owners, strict=True):
        if owner == chunk.group.rank:
            own = optimizer.inner.state.get(next(mine), {})
            found[numbers[id(parameter)]] = {k: v.cpu().numpy() if torch.is_tensor(v) else v for k, v in own.items()}
    for part in all_gather_object(found, group=chunk.group):
        for number, own in part.items():
            if own:
                state[number] = {k: _placed(torch.as_tensor(v.copy()), chunk) if hasattr(v, "dtype") else v for k, v in own.items()}


def _placed(value: torch.Tensor, chunk: Any) -> torch.Tensor:
    """A tensor of state as the optimiser keeps it: with its parameters, but for numbers (how many steps there were)."""
    return value.to(chunk.device) if value.dim() > 0 else value


def load(optimizer: Any, state_dict: dict[str, Any]) -> None:
    """No communication: every rank has the whole state."""
    numbers = _numbers(optimizer)
    groups = state_dict["param_groups"]
    if [len(g["params"]) for g in groups] != [len(g["params"]) for g in optimizer.param_groups]:
        raise InvalidArgument("ZeroOptimizer: the state is of other param groups than this optimiser's")
    for outer, saved in zip(optimizer.param_groups, groups, strict=True):
        outer.update({key: value for key, value in saved.items() if key != "params"})
    for chunk in optimizer.chunks:
        saved = [state_dict["state"].get(numbers[id(p)], {}) for p in chunk.parameters]
        runs = optimizer._runs[id(chunk)]
        if chunk.owners is None:
            optimizer.inner.state[runs[0]] = _own_run(chunk, saved)
            continue
        mine = iter(runs)
        for own, owner in zip(saved, chunk.owners, strict=True):
            if owner == chunk.group.rank:
                optimizer.inner.state[next(mine)] = {
                    k: _placed(v.clone(), chunk) if torch.is_tensor(v) else v for k, v in own.items()
                }


def _own_run(chunk: Any, saved: list[dict[str, Any]]) -> dict[str, Any]:
    """This rank's run of each entry. Parameters without state count as 0 (they never had a gradient)."""
    own: dict[str, Any] = {}
    for key in sorted({key for state in saved for key in state}):
        values = [state.get(key) for state in saved]
        pairs = list(zip(values, chunk.parameters, strict=True))
        first = next(value for value in values if value is not None)
        if all(v is None or (torch.is_tensor(v) and v.shape == p.shape) for v, p in pairs) and key != "step":
            flat = torch.zeros(chunk.count, dtype=first.dtype, device=chunk.device)
            for view, value in zip(chunk.views(flat), values, strict=True):
                if value is not None:
                    view.copy_(value)
            own[key] = chunk.own(flat).clone()
        else:
            own[key] = first.clone() if torch.is_tensor(first) else first
    return own
