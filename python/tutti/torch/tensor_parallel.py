# tensor_parallel.py: torch modules whose weights are split over the ranks of a group.
# SPDX-License-Identifier: Apache-2.0
"""Drop-in parts for one model over several ranks; the functions behind them are those of tutti.model_parallel.

    tutti.model_parallel.init(group_size=4)
    layer = tutti.torch.ParallelLinear(4096, 4096, dim=1)          # in place of torch.nn.Linear(4096, 4096)
    model = tutti.torch.parallelize(model, {"*.up": "columns", "*.down": "rows", "embed": "rows"})

Whole in, whole out, unless asked otherwise: each layer computes what its dense counterpart would. Parameters are
created from the same random numbers as the dense layer's and cut afterwards, so that a seed gives the same model on any
number of ranks."""
from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from .. import _native
from .. import model_parallel as mp
from .._errors import InvalidArgument


class _CustomVjp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, forward: Any, backward: Any) -> torch.Tensor:
        ctx.backward_of = backward
        return forward(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.backward_of(gradient), None, None


def custom_vjp(x: torch.Tensor, forward: Any, backward: Any) -> torch.Tensor:
    """y = forward(x), with backward(gradient of y) for the gradient of x; backward may be differentiated in turn."""
    return _CustomVjp.apply(x, forward, backward)


def _unchanged_random(weight: torch.Tensor) -> Any:
    """Making a layer in here draws nothing from the program's random numbers."""
    return torch.random.fork_rng(devices=[weight.device] if weight.is_cuda else [])


def _cut(whole: torch.Tensor, axis: int, group: Any) -> torch.Tensor:
    sizes = _native.shard_sizes(whole.shape[axis], group.size)
    return whole.narrow(axis, sum(sizes[: group.rank]), sizes[group.rank]).clone()


class _Parallel(nn.Module):
    """Remembers how its parameters were cut, so that they can be put together again."""

    def __init__(self, group: Any):
        super().__init__()
        self.group = group if group is not None else mp.group()
        self.split_axes: dict[str, int] = {}
        self.whole_lengths: dict[str, int] = {}

    def _adopt(self, name: str, whole: torch.Tensor | None, axis: int | None) -> None:
        if whole is None:
            self.register_parameter(name, None)
            return
        requires_grad = getattr(whole, "requires_grad", True)
        part = whole.detach().clone()
        if axis is not None:
            self.split_axes[name] = axis
            self.whole_lengths[name] = whole.shape[axis]
            part = _cut(whole.detach(), axis, self.group)
        parameter = nn.Parameter(part, requires_grad=requires_grad)
        parameter.tutti_split = axis  # for norms: of a split parameter, all ranks' parts count
        self.register_parameter(name, parameter)


class ParallelLinear(_Parallel):
    """torch.nn.Linear with its weight split over the ranks of a group.

    dim: 1 or −1, columns: each rank computes some of the outputs; 0, rows: each rank uses some of the inputs and the
        results are summed; None: not split at all, the same on every rank.
    whole_input (rows): the input is whole and this rank takes its part; False: it gets its part, as a columns layer
        with whole_output=False leaves it.
    whole_output (columns): the parts are joined; False: each rank keeps its own.
    sequence_dim: the activations outside of this layer are split along this axis (sequence parallelism): columns join
        them first, rows sum and split them again in one step; takes the place of whole_input and whole_output there.
    group: the ranks that share the layer; model_parallel's unless given.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dim: int | None = 1, whole_input: bool = True,
        whole_output: bool = True, sequence_dim: int | None = None, group: Any = None, device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(group)
        if dim not in (None, 0, 1, -1):
            raise InvalidArgument(f"ParallelLinear: dim={dim} is none of 0 (rows), 1 or −1 (columns), None (whole)")
        self.in_features, self.out_features = in_features, out_features
        self.dim, self.whole_input, self.whole_output = dim, whole_input, whole_output
        self.sequence_dim = sequence_dim
        self._take(nn.Linear(in_features, out_features, bias, device=device, dtype=dtype))

    @classmethod
    def from_linear(cls, linear: nn.Linear, **options: Any) -> "ParallelLinear":
        """A dense layer, the same on every rank, cut into parts."""
        with _unchanged_random(linear.weight):
            made = cls(
                linear.in_features, linear.out_features, linear.bias is not None,
                device=linear.weight.device, dtype=linear.weight.dtype, **options,
            )
        made._take(linear)
        return made

    def _take(self, linear: nn.Linear) -> None:
        columns = self.dim in (1, -1)
        self._adopt("weight", linear.weight, None if self.dim is None else 0 if columns else 1)
        self._adopt("bias", linear.bias, 0 if columns else None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.dim is None:
            return nn.functional.linear(x, self.weight, self.bias)
        if self.sequence_dim is not None:
            return self._forward_sequence(x)
        return mp.linear(
            x, self.weight, self.bias, dim=self.dim, whole_input=self.whole_input, whole_output=self.whole_output,
            total=self.out_features, group=self.group,
        )

    def _forward_sequence(self, x: torch.Tensor) -> torch.Tensor:
        axis = self.sequence_dim % x.dim()
        if self.dim == 0:
            part = nn.functional.linear(x, self.weight)
            sizes = _native.shard_sizes(part.shape[axis], self.group.size)
            call = _native.Call("reduce_scatter", axis=axis, sizes=sizes)
            whole = _native.apply(call, part, None, self.group, False, None)
            if self.bias is None:
                return whole
            bias = mp.copy(self.bias, group=self.group)  # each rank adds it to other positions
            return whole + bias.to(whole.dtype)  # which torch.autocast has made smaller
        whole = _native.apply(_gather_call(x, axis, self.group), x, None, self.group, False, None)
        return nn.functional.linear(whole, self.weight, self.bias)

    def extra_repr(self) -> str:
        form = {0: "rows", None: "whole"}.get(self.dim, "columns")
        return f"in_features={self.in_features}, out_features={self.out_features}, {form} over {self.group.size} ranks"


def _gather_call(x: torch.Tensor, axis: int, group: Any) -> Any:
    """The parts of a sequence joined: its gradient, which every rank has a part of, is summed and split again."""
    from .._calls.dispatch import with_sizes

    return with_sizes(_native.Call("all_gather", axis=axis, uneven=True), x, group)


class ParallelEmbedding(_Parallel):
    """torch.nn.Embedding with its table split over ranks: dim=0 by rows (the vocabulary), 1 or −1 by columns."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, *, dim: int = 0, group: Any = None, device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(group)
        if dim not in (0, 1, -1):
            raise InvalidArgument(f"ParallelEmbedding: dim={dim} is neither 0 (rows) nor 1 or −1 (columns)")
        self.num_embeddings, self.embedding_dim, self.dim = num_embeddings, embedding_dim, dim
        self._adopt("weight", nn.Embedding(num_embeddings, embedding_dim, device=device, dtype=dtype).weight, dim % 2)

    @classmethod
    def from_embedding(cls, embedding: nn.Embedding, **options: Any) -> "ParallelEmbedding":
        """A dense table, the same on every rank, cut into parts."""
        if embedding.max_norm is not None or embedding.sparse or embedding.scale_grad_by_freq:
            raise InvalidArgument("ParallelEmbedding: max_norm, sparse and scale_grad_by_freq are not supported")
        weight = embedding.weight
        with _unchanged_random(weight):
            made = cls(*weight.shape, device=weight.device, dtype=weight.dtype, **options)
        made._adopt("weight", weight, made.dim % 2)
        return made

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        total = self.whole_lengths["weight"]
        return mp.embedding(indices, self.weight, dim=self.dim, total=total, group=self.group)

    def extra_repr(self) -> str:
        form = "columns" if self.dim else "rows"
        return f"{self.num_embeddings}, {self.embedding_dim}, {form} over {self.group.size} ranks"


def parallel_cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor, *, classes: int | None = None, ignore_index: int = -100,
    reduction: str = "mean", group: Any = None,
) -> torch.Tensor:
    """torch.nn.functional.cross_entropy for logits whose last axis, the classes, is split over the ranks, as a columns
    layer with whole_output=False gives them. classes: their number in all, if the ranks do not divide it."""
    return mp.cross_entropy(
        logits, targets, classes=classes, ignore=ignore_index, reduction=reduction, group=group or mp.group()
    )


_FORMS = {
    "columns": {"dim": 1}, "rows": {"dim": 0},
    "columns, split": {"dim": 1, "whole_output": False}, "rows, split": {"dim": 0, "whole_input": False},
}


def parallelize(model: nn.Module, plan: Mapping[str, str | Mapping[str, Any]], *, group: Any = None) -> nn.Module:
    """Splits layers of a model that is the same on every rank; changes the model and gives it back.

    plan: patterns of module names (as `fnmatch` has them) and how each is split: "columns" and "rows" take and give
        whole activations; "columns, split" leaves its output split and "rows, split" takes such an input, which belong
        together::

            parallelize(model, {"blocks.*.mlp.up": "columns, split", "blocks.*.mlp.down": "rows, split"})

        or a dict of arguments for ParallelLinear or ParallelEmbedding.
    Raises InvalidArgument for a pattern that matches nothing, and for a layer that is neither Linear nor Embedding.
    """
    members = group or mp.group()
    modules = dict(model.named_modules())
    for pattern, form in plan.items():
        names = [name for name in modules if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            some = ", ".join(list(modules)[1:9])
            raise InvalidArgument(f"parallelize: no module is called {pattern!r}; there are {some}, …")
        for name in names:
            parent, _, own_name = name.rpartition(".")
            setattr(model.get_submodule(parent), own_name, _parallel_form(modules[name], name, form, members))
    return model


def _parallel_form(module: nn.Module, name: str, form: str | Mapping[str, Any], group: Any) -> nn.Module:
    if isinstance(form, str):
        if form not in _FORMS:
            raise InvalidArgument(f"parallelize: {form!r} for {name} is none of {', '.join(map(repr, _FORMS))}")
        form = _FORMS[form]
    if type(module) is nn.Linear:
        return ParallelLinear.from_linear(module, group=group, **form)
    if type(module) is nn.Embedding:
        return ParallelEmbedding.from_embedding(module, group=group, dim=form.get("dim", 0))
    raise InvalidArgument(f"parallelize: {name} is a {type(module).__name__}; only Linear and Embedding can be split")


def collect_state_dict(model: nn.Module) -> dict[str, torch.Tensor]:
    """The model's state with its split parameters put together, as the dense model has it, on every rank. Collective."""
    state = {name: value.detach().clone() for name, value in model.state_dict().items()}
    for prefix, module in model.named_modules():
        if isinstance(module, _Parallel):
            for name, axis in module.split_axes.items():
                key = f"{prefix}.{name}" if prefix else name
                state[key] = mp.gather(state[key], axis, total=module.whole_lengths[name], group=module.group)
    return state


def load_collected_state_dict(model: nn.Module, state: Mapping[str, torch.Tensor], *, strict: bool = True) -> Any:
    """Loads a dense state into a model whose parameters are split: each rank takes its parts. The number of ranks the
    state was collected from does not matter. Gives what torch's load_state_dict gives."""
    parts = dict(state)
    for prefix, module in model.named_modules():
        if isinstance(module, _Parallel):
            for name, axis in module.split_axes.items():
                key = f"{prefix}.{name}" if prefix else name
                if key in parts:
                    parts[key] = _cut(parts[key], axis, module.group)
    return model.load_state_dict(parts, strict=strict)
