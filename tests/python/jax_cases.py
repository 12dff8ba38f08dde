# jax_cases.py: each verb as a function of one array, with the input that this rank gives it.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti


def make(rank, shape, salt=0):
    """The numbers of one rank: no two alike, so that min and max have one holder."""
    return np.random.default_rng([rank, salt]).uniform(-2, 2, shape)


def ring(size):
    return [(rank, (rank + 1) % size) for rank in range(size)]


def cases(rank, size):
    """name → (verb, shape of this rank's input). Shapes differ between ranks only where the verb says so."""
    uneven = [2 + other for other in range(size)]
    last = size - 1
    # How many rows rank r sends to rank q, for exchanges in which all differ.
    rows = [[1 + (r + 2 * q) % 3 for q in range(size)] for r in range(size)]
    incoming = [rows[r][rank] for r in range(size)]
    neighbours = {"dst": (rank + 1) % size, "src": (rank - 1) % size}
    return {
        "all_reduce": (tutti.all_reduce, (3, 2)),
        "all_reduce_mean": (lambda x: tutti.all_reduce(x, op="mean"), (5,)),
        "all_reduce_premul": (lambda x: tutti.all_reduce(x, op=tutti.premul(0.25)), (5,)),
        "all_reduce_scalar": (tutti.all_reduce, ()),
        "all_reduce_max": (lambda x: tutti.all_reduce(x, op="max"), (4, 2)),
        "all_reduce_min": (lambda x: tutti.all_reduce(x, op="min"), (5,)),
        "reduce": (lambda x: tutti.reduce(x, root=last), (3, 2)),
        "reduce_mean": (lambda x: tutti.reduce(x, op="mean"), (3,)),
        "reduce_max": (lambda x: tutti.reduce(x, root=last, op="max"), (4,)),
        "broadcast": (lambda x: tutti.broadcast(x, root=last), (3, 2)),
        "all_gather": (tutti.all_gather, (2, 3)),
        "all_gather_axis": (lambda x: tutti.all_gather(x, axis=-1), (2, 3)),
        "all_gather_stack": (lambda x: tutti.all_gather(x, axis=None), (2, 3)),
        "all_gather_uneven": (lambda x: tutti.all_gather(x, uneven=True, sizes=uneven), (uneven[rank], 2)),
        "gather": (lambda x: tutti.gather(x, root=last, axis=1), (2, 3)),
        "gather_stack": (lambda x: tutti.gather(x, axis=None), (2,)),
        "gather_uneven": (lambda x: tutti.gather(x, uneven=True, sizes=uneven), (uneven[rank],)),
        "reduce_scatter": (tutti.reduce_scatter, (2 * size, 3)),
        "reduce_scatter_mean": (lambda x: tutti.reduce_scatter(x, op="mean", axis=1), (2, size)),
        "reduce_scatter_drop": (lambda x: tutti.reduce_scatter(x, axis=None), (size, 3)),
        "reduce_scatter_uneven": (lambda x: tutti.reduce_scatter(x, sizes=uneven), (sum(uneven),)),
        "reduce_scatter_max": (lambda x: tutti.reduce_scatter(x, op="max", sizes=uneven), (sum(uneven), 2)),
        "scatter": (lambda x: tutti.scatter(x, root=last), (2 * size, 3)),
        "scatter_drop": (lambda x: tutti.scatter(x, axis=None), (size, 3)),
        "scatter_uneven": (lambda x: tutti.scatter(x, axis=1, sizes=uneven), (2, sum(uneven))),
        "all_to_all": (tutti.all_to_all, (size, 2)),
        "all_to_all_axes": (lambda x: tutti.all_to_all(x, split_axis=1, concat_axis=0), (3, 2 * size)),
        "all_to_all_uneven": (
            lambda x: tutti.all_to_all(x, split_sizes=rows[rank], recv_sizes=incoming),
            (sum(rows[rank]), 2),
        ),
        "scan": (tutti.scan, (4,)),
        "scan_premul": (lambda x: tutti.scan(x, op=tutti.premul(0.5)), (4,)),
        "exscan": (tutti.exscan, (2, 2)),
        "permute": (lambda x: tutti.permute(x, ring(size)), (3,)),
        "permute_partly": (lambda x: tutti.permute(x, [(0, last)]), (3,)),
        "sendrecv": (lambda x: tutti.sendrecv(x, **neighbours), (3, 2)),
        "sendrecv_edge": (
            lambda x: tutti.sendrecv(x, rank + 1 if rank < last else tutti.nobody, rank - 1 if rank else tutti.nobody),
            (3,),
        ),
    }


NAMES = list(cases(0, 1))
