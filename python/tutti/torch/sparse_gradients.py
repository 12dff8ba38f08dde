# sparse_gradients.py: gradients of embeddings with sparse=True in data parallel training: only their rows travel.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .sparse import SparseSum


def find(module: nn.Module) -> list[nn.Parameter]:
    """The parameters whose gradients torch makes sparse, in an order that is the same on every rank."""
    found: dict[int, nn.Parameter] = {}
    for layer in module.modules():
        if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)) and layer.sparse and layer.weight.requires_grad:
            found.setdefault(id(layer.weight), layer.weight)
    return list(found.values())


class SparseGradients:
    """The mean over the ranks of gradients that have few rows. A rank without any takes part with none."""

    def __init__(self, parameters: list[nn.Parameter], group: Any) -> None:
        self.parameters = parameters
        self._group = group

    def average(self, factor: float | None) -> None:
        """After backward. factor: what this rank's gradients count; None: all ranks count alike. Collective."""
        sums = [(parameter, SparseSum(self._own(parameter, factor), self._group, None)) for parameter in self.parameters]
        for parameter, total in sums:
            mean = total.result(self._group.size if factor is None else 1)
            if parameter.grad is None and mean._nnz() == 0:
                continue  # no rank used it
            is_dense = parameter.grad is not None and not parameter.grad.is_sparse
            parameter.grad = mean.to_dense() if is_dense else mean

    @staticmethod
    def _own(parameter: nn.Parameter, factor: float | None) -> torch.Tensor:
        gradient = parameter.grad
        if gradient is None:
            gradient = torch.zeros_like(parameter, layout=torch.strided).to_sparse(1)
        elif not gradient.is_sparse:
            gradient = gradient.to_sparse(1)  # a weight that is also used otherwise
        return gradient if factor is None else gradient * factor
