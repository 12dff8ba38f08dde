# __init__.py: what is special to PyTorch: gradients, torch.compile, torch.distributed's backend "tutti", training.
# SPDX-License-Identifier: Apache-2.0
"""The verbs themselves (tutti.all_reduce, …) take tensors, with autograd and under torch.compile, without this import.

`import tutti.torch` makes torch.distributed's backend "tutti". Here are also the classes for parallel training.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from .._process.later import names_later
from .process_group.group import group_of

# By the module that has them; each is imported when first used.
_HOMES = {
    "DataParallel": "data_parallel",
    "ParallelLinear": "tensor_parallel",
    "ParallelEmbedding": "tensor_parallel",
    "parallel_cross_entropy": "tensor_parallel",
    "parallelize": "tensor_parallel",
    "collect_state_dict": "tensor_parallel",
    "load_collected_state_dict": "tensor_parallel",
    "SyncBatchNorm": "sync_batch_norm",
    "ZeroOptimizer": "zero",
    "ShardSampler": "sampler",
    "clip_grad_norm_": "clipping",
    "compression": "compression",
}

__all__ = [
    "DataParallel", "ParallelEmbedding", "ParallelLinear", "ShardSampler", "SyncBatchNorm", "ZeroOptimizer", "clip_grad_norm_",
    "collect_state_dict", "group_of", "load_collected_state_dict", "parallel_cross_entropy", "parallelize",
]
if TYPE_CHECKING:
    from . import compression as compression
    from .clipping import clip_grad_norm_ as clip_grad_norm_
    from .data_parallel import DataParallel as DataParallel
    from .sampler import ShardSampler as ShardSampler
    from .sync_batch_norm import SyncBatchNorm as SyncBatchNorm
    from .tensor_parallel import ParallelEmbedding as ParallelEmbedding
    from .tensor_parallel import ParallelLinear as ParallelLinear
    from .tensor_parallel import collect_state_dict as collect_state_dict
    from .tensor_parallel import load_collected_state_dict as load_collected_state_dict
    from .tensor_parallel import parallel_cross_entropy as parallel_cross_entropy
    from .tensor_parallel import parallelize as parallelize
    from .zero import ZeroOptimizer as ZeroOptimizer
else:
    __getattr__, __dir__ = names_later(__name__, _HOMES)
