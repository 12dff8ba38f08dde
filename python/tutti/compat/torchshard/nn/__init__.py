# __init__.py: torchshard.nn: modules whose weights are split over the ranks.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from .. import distributed
from .._marks import ignore_split_parameters, mark
from . import functional, init

__all__ = ["ParallelCrossEntropyLoss", "ParallelEmbedding", "ParallelLinear", "RegisterParallelDim", "functional", "init"]


def _part(whole: torch.Tensor | None, axis: int | None, dim: int | None, order_type: int = 0) -> nn.Parameter | None:
    """This rank's part of a whole parameter, marked with how its layer is split."""
    if whole is None:
        return None
    values = whole.detach().clone() if axis is None else distributed.scatter(whole.detach(), axis)
    return mark(nn.Parameter(values, requires_grad=whole.requires_grad), dim, order_type)


def _converted(module: nn.Module, kind: type[nn.Module], convert: Callable[[Any], nn.Module]) -> nn.Module:
    made = _replaced(module, kind, convert)
    ignore_split_parameters(made)
    return made


def _replaced(module: nn.Module, kind: type[nn.Module], convert: Callable[[Any], nn.Module]) -> nn.Module:
    if type(module) is kind:
        return convert(module)
    for name, child in module.named_children():
        setattr(module, name, _replaced(child, kind, convert))
    return module


class ParallelLinear(nn.Module):
    """torch.nn.Linear, split by columns (dim 1 or −1), by rows (0) or not at all (None)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dim: int | None = None) -> None:
        super().__init__()
        functional.check_dim(dim)
        self.in_features, self.out_features, self.dim = in_features, out_features, dim
        self._take(nn.Linear(in_features, out_features, bias))

    def _take(self, linear: nn.Linear) -> None:
        columns = self.dim in (1, -1)
        self.weight = _part(linear.weight, None if self.dim is None else 0 if columns else 1, self.dim)
        self.register_parameter("bias", _part(linear.bias, 0 if columns else None, self.dim))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functional.parallel_linear(input, self.weight, self.bias, self.dim)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, dim={self.dim}"

    @classmethod
    def convert_parallel_linear(cls, module: nn.Module, dim: int | None = None) -> nn.Module:
        """Splits every torch.nn.Linear of a module, with the values that it has, which are the same on every rank."""

        def convert(linear: nn.Linear) -> nn.Module:
            made = cls(linear.in_features, linear.out_features, linear.bias is not None, dim)
            made._take(linear)
            return made

        return _converted(module, nn.Linear, convert)


class ParallelEmbedding(nn.Module):
    """torch.nn.Embedding, split by rows (dim 0), by columns (1 or −1) or not at all (None)."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, dim: int | None = None,
    ) -> None:
        super().__init__()
        functional.check_dim(dim)
        self.num_embeddings, self.embedding_dim, self.dim = num_embeddings, embedding_dim, dim
        self.options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        self._take(nn.Embedding(num_embeddings, embedding_dim, *self.options))

    def _take(self, embedding: nn.Embedding) -> None:
        self.weight = _part(embedding.weight, None if self.dim is None else self.dim % 2, self.dim, order_type=1)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functional.parallel_embedding(input, self.weight, *self.options, self.num_embeddings, self.dim)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, dim={self.dim}"

    @classmethod
    def convert_parallel_embedding(cls, module: nn.Module, dim: int | None = None) -> nn.Module:
        """Splits every torch.nn.Embedding of a module, with the values that it has, which are the same on every rank."""

        def convert(table: nn.Embedding) -> nn.Module:
            made = cls(
                table.num_embeddings, table.embedding_dim, table.padding_idx, table.max_norm, table.norm_type,
                table.scale_grad_by_freq, table.sparse, dim,
            )
            made._take(table)
            return made

        return _converted(module, nn.Embedding, convert)


class ParallelCrossEntropyLoss(nn.Module):
    """torch.nn.CrossEntropyLoss for logits that are whole or split by columns."""

    def __init__(
        self, weight: torch.Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.options = {"size_average": size_average, "ignore_index": ignore_index, "reduce": reduce, "reduction": reduction}

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.parallel_cross_entropy(input, target, self.weight, **self.options)


class RegisterParallelDim(nn.Module):
    """Notes how its input is split, which other modules of torch do not hand on."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor | Sequence[torch.Tensor]) -> Any:
        for tensor in x if isinstance(x, (list, tuple)) else [x]:
            mark(tensor, self.dim)
        return x

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
