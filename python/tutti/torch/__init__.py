# __init__.py: what is special to PyTorch: gradients, torch.compile, torch.distributed's backend "tutti", training.
# SPDX-License-Identifier: Apache-2.0
"""The verbs themselves (tutti.all_reduce, …) take tensors, with autograd and under torch.compile, without this import.

`import tutti.torch` makes torch.distributed's backend "tutti". Here are also the classes for parallel training.
"""
from __future__ import annotations

from .._later import names_later
from .process_group import group_of

# By the module that has them; each is imported when first used.
_HOMES = {
    "DataParallel": "data_parallel",
    "ParallelLinear": "tensor_parallel",
    "ParallelEmbedding": "tensor_parallel",
    "parallel_cross_entropy": "tensor_parallel",
    "parallelize": "tensor_parallel",
    "collect_state_dict": "tensor_parallel",
    "load_collected_state_dict": "tensor_parallel",
    "ZeroOptimizer": "zero",
    "ShardSampler": "sampler",
    "clip_grad_norm_": "clipping",
    "compression": "compression",
}

__all__ = ["group_of", *(name for name, home in _HOMES.items() if name != home)]
__getattr__, __dir__ = names_later(__name__, _HOMES)
