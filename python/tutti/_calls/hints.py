# hints.py: names of other libraries, and their counterparts here.
# SPDX-License-Identifier: Apache-2.0
"""Looked at only when a name is not found or an argument makes no sense: users of mpi4py, torch.distributed, Horovod and
JAX are told what the same thing is called here."""
from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

# By the name that another library has. What begins with "tutti." exists here (a test looks it up).
_NAMES = {
    # MPI and mpi4py
    "MPI": "tutti.init(), whose result is what COMM_WORLD is there",
    "COMM_WORLD": "tutti.world()",
    "Init": "tutti.init",
    "Finalize": "tutti.finalize",
    "Get_rank": "tutti.rank()",
    "Get_size": "tutti.size()",
    "Abort": "tutti.world().abort(reason)",
    "Barrier": "tutti.barrier",
    "Bcast": "tutti.broadcast",
    "bcast": "tutti.broadcast for arrays, tutti.broadcast_object for objects",
    "Reduce": "tutti.reduce",
    "Allreduce": "tutti.all_reduce",
    "allreduce": "tutti.all_reduce",
    "Gather": "tutti.gather",
    "Gatherv": "tutti.gather(x, uneven=True)",
    "Allgather": "tutti.all_gather",
    "allgather": "tutti.all_gather for arrays, tutti.all_gather_object for objects",
    "Allgatherv": "tutti.all_gather(x, uneven=True)",
    "Scatter": "tutti.scatter",
    "Scatterv": "tutti.scatter(x, sizes=…)",
    "Alltoall": "tutti.all_to_all",
    "alltoall": "tutti.all_to_all",
    "Alltoallv": "tutti.all_to_all(x, split_sizes=…)",
    "Reduce_scatter": "tutti.reduce_scatter",
    "Reduce_scatter_block": "tutti.reduce_scatter",
    "Scan": "tutti.scan",
    "Exscan": "tutti.exscan",
    "Send": "tutti.send",
    "Recv": "tutti.recv",
    "Isend": "tutti.isend",
    "Irecv": "tutti.irecv",
    "Sendrecv": "tutti.sendrecv",
    "Split": "tutti.Group.split(color, key)",
    "Create_cart": "tutti.Mesh(y=2, x=4, periodic=(\"x\",))",
    "Waitall": "tutti.wait_all",
    "waitall": "tutti.wait_all",
    "Waitany": "tutti.wait_any",
    "waitany": "tutti.wait_any",
    "IN_PLACE": "out=x, with the same x",
    "Status": "source, tag and count of the work that irecv gives, or of the message that probe gives",
    "Request": "tutti.Work; several are waited for by tutti.wait_all",
    "Testall": "work.test() of each",
    "Testany": "work.test() of each",
    "Waitsome": "tutti.wait_any",
    "Comm": "tutti.Group",
    "Intracomm": "tutti.Group",
    "Op_create": "op=function, of two arrays",
    "COMM_TYPE_SHARED": "tutti.world().split(color=tutti.context().node_rank)",
    "COMM_SELF": "tutti.Group([tutti.rank()])",
    "COMM_NULL": "group.rank == -1",
    "Get_processor_name": "socket.gethostname() of Python",
    "Win": "tutti.store() for small values; there are no windows",
    "File": "numpy.memmap, or tutti.checkpoint",
    "Comm_spawn": "tutti.spawn",
    "MAXLOC": "op=function, of arrays with value and place",
    "MINLOC": "op=function, of arrays with value and place",
    "LAND": 'op="band" of bools',
    "LOR": 'op="bor" of bools',
    "BAND": 'op="band"',
    "BOR": 'op="bor"',
    "BXOR": 'op="bxor"',
    "sum": 'op="sum"',
    "AVG": 'op="mean"',
    "PRODUCT": 'op="product"',
    "neighbor_alltoall": "mesh.neighbour_all_to_all, of a tutti.Mesh",
    "neighbor_allgather": "mesh.neighbour_all_gather, of a tutti.Mesh",
    "Sendrecv_replace": "tutti.sendrecv(x, dst, src, out=x)",
    "Allreduce_init": "tutti.prepare",
    "ANY_SOURCE": "src=None",
    "ANY_TAG": "tag=None",
    "PROC_NULL": "tutti.nobody",
    "Mprobe": "tutti.probe",
    "mprobe": "tutti.probe",
    "Probe": "tutti.probe",
    "Improbe": "tutti.iprobe",
    "improbe": "tutti.iprobe",
    "Iprobe": "tutti.iprobe",
    "Cancel": "work.cancel()",
    "Get_count": "work.count",
    "SUM": 'op="sum"',
    "PROD": 'op="product"',
    "MAX": 'op="max"',
    "MIN": 'op="min"',
    "Wtime": "time.perf_counter() of Python",
    # torch.distributed
    "init_process_group": "tutti.init",
    "destroy_process_group": "tutti.finalize",
    "get_rank": "tutti.rank()",
    "get_world_size": "tutti.size()",
    "get_backend": "tutti.context().backend",
    "is_available": "tutti.is_initialized()",
    "new_group": "tutti.Group(ranks)",
    "new_subgroups": "tutti.Group.split(color)",
    "split_group": "tutti.Group.split(color)",
    "ProcessGroup": "tutti.Group",
    "ReduceOp": 'op="sum", op="max" and so on',
    "GroupMember": "tutti.Group",
    "all_reduce_coalesced": "tutti.all_reduce of a list of arrays",
    "all_gather_into_tensor": "tutti.all_gather",
    "all_gather_coalesced": "tutti.all_gather of a list of arrays",
    "reduce_scatter_tensor": "tutti.reduce_scatter",
    "all_to_all_single": "tutti.all_to_all",
    "broadcast_object_list": "tutti.broadcast_object",
    "scatter_object_list": "tutti.scatter_object",
    "monitored_barrier": "tutti.barrier(timeout=…), whose error names the ranks that are missing",
    "batch_isend_irecv": "tutti.isend and tutti.irecv, and tutti.wait_all",
    "P2POp": "tutti.isend and tutti.irecv",
    "init_device_mesh": "tutti.Mesh(data=2, tensor=4)",
    "DeviceMesh": "tutti.Mesh(data=2, tensor=4)",
    "DistributedDataParallel": "tutti.torch.DataParallel",
    "DataParallel": "tutti.torch.DataParallel",
    "DDP": "tutti.torch.DataParallel",
    "DistributedSampler": "tutti.torch.ShardSampler",
    "SyncBatchNorm": "tutti.torch.SyncBatchNorm",
    "ZeroOptimizer": "tutti.torch.ZeroOptimizer",
    "ZeroRedundancyOptimizer": "tutti.torch.ZeroOptimizer",
    "manual_seed": "tutti.seed",
    # Horovod
    "shutdown": "tutti.finalize",
    "local_size": "tutti.context().local_size",
    "cross_rank": "tutti.context().node_rank",
    "cross_size": "tutti.context().node_count",
    "is_homogeneous": "tutti.context().node_count and tutti.context().local_size",
    "allreduce_": "tutti.all_reduce(x, out=x)",
    "allreduce_async": "tutti.all_reduce(x, async_op=True)",
    "allreduce_async_": "tutti.all_reduce(x, out=x, async_op=True)",
    "allgather_async": "tutti.all_gather(x, async_op=True)",
    "broadcast_": "tutti.broadcast(x, out=x)",
    "broadcast_async": "tutti.broadcast(x, async_op=True)",
    "grouped_allreduce": "tutti.all_reduce of a list of arrays",
    "synchronize": "work.wait(), of what tutti.all_reduce(x, async_op=True) gives",
    "poll": "work.test(), of what tutti.all_reduce(x, async_op=True) gives",
    "allgather_object": "tutti.all_gather_object",
    "reducescatter": "tutti.reduce_scatter",
    "broadcast_parameters": "tutti.torch.DataParallel, which starts with rank 0's, or tutti.broadcast of a dict",
    "broadcast_optimizer_state": "tutti.broadcast_object(optimizer.state_dict())",
    "broadcast_variables": "tutti.tensorflow.broadcast_variables",
    "broadcast_global_variables": "tutti.tensorflow.broadcast_variables",
    "DistributedOptimizer": "tutti.average(gradients), or tutti.torch.DataParallel",
    "DistributedGradientTape": "tutti.tensorflow.GradientTape",
    "Compression": 'tutti.torch.DataParallel(model, hook="bf16")',
    "Average": 'op="mean"',
    "Sum": 'op="sum"',
    "ProcessSet": "tutti.Group(ranks)",
    "add_process_set": "tutti.Group(ranks)",
    "join": "tutti.torch.DataParallel.join()",
    # gloo, Ray, DeepSpeed, JAX
    "init_collective_group": "tutti.init(rank=…, size=…), or tutti.ray.run(function, ranks=…)",
    "create_collective_group": "tutti.ray.run(function, ranks=…)",
    "destroy_collective_group": "tutti.finalize",
    "get_collective_group_size": "tutti.size()",
    "init_distributed": "tutti.init",
    "initialize": "tutti.init",
    "inference_all_reduce": "tutti.all_reduce",
    "sync_global_devices": "tutti.barrier()",
    "broadcast_one_to_all": "tutti.broadcast",
    "process_allgather": "tutti.all_gather",
    "psum_scatter": "tutti.reduce_scatter",
    "pshuffle": "tutti.permute",
    "psum": "tutti.all_reduce",
    "pmean": 'tutti.all_reduce(x, op="mean")',
    "pmax": 'tutti.all_reduce(x, op="max")',
    "ppermute": "tutti.permute",
    "axis_index": "tutti.rank()",
    "process_index": "tutti.rank()",
    "process_count": "tutti.size()",
    "world_size": "tutti.size()",
    "get_local_rank": "tutti.local_rank()",
}
# The same on a group: what differs there from the functions.
_GROUP_NAMES = {
    "Get_rank": "group.rank",
    "get_rank": "group.rank",
    "Get_size": "group.size",
    "get_world_size": "group.size",
    "world_size": "group.size",
    "Split": "group.split(color, key)",
    "Split_type": "group.split(color=tutti.context().node_rank)",
    "split_type": "group.split(color=tutti.context().node_rank)",
    "Get_name": "repr(group)",
    "Get_group": "group.members",
    "Spawn": "tutti.spawn",
    "name": "repr(group)",
    "Dup": "group.subgroup(range(group.size))",
    "dup": "group.subgroup(range(group.size))",
    "Create": "group.subgroup(ranks)",
    "Create_group": "group.subgroup(ranks)",
    "new_group": "group.subgroup(ranks)",
    "ranks": "group.members, the ranks in the world",
    "Abort": "group.abort(reason)",
    "Free": "del group; a group needs no ending",
    "Create_cart": "tutti.Mesh(group, y=2, x=4)",
    "Neighbor_allgather": "mesh.neighbour_all_gather(x), of a tutti.Mesh(group, …)",
    "neighbor_allgather": "mesh.neighbour_all_gather(x), of a tutti.Mesh(group, …)",
    "Neighbor_alltoall": "mesh.neighbour_all_to_all(x), of a tutti.Mesh(group, …)",
    "neighbor_alltoall": "mesh.neighbour_all_to_all(x), of a tutti.Mesh(group, …)",
}
_INIT_ARGUMENTS = {
    "world_size": "size",
    "nprocs": "size",
    "num_processes": "size",
    "process_id": "rank",
    "master_addr": 'init_method="tcp://host:port"',
    "master_port": 'init_method="tcp://host:port"',
    "coordinator_address": 'init_method="tcp://host:port"',
    "url": "init_method",
}


# By the keyword that another library's call has.
_KEYWORDS = {
    "dest": "dst=", "source": "src=", "obj": "the first argument", "buf": "the first argument", "sendobj": "the first argument",
    "sendbuf": "the first argument", "recvbuf": "out=", "sendtag": "tag=", "recvtag": "tag=", "recvsource": "src=", "comm": "group=",
    "status": "source, tag and count of the work that irecv gives, or of the message that probe gives",
    "tensor": "the first argument", "object": "the first argument", "tensor_list": "the first argument",
    "output_tensor": "out=", "input_tensor": "the first argument", "gather_list": "what comes back on the root",
    "scatter_list": "the first argument, one array that is cut", "object_list": "the first argument, and what comes back",
    "group_src": "src=", "group_dst": "dst=", "device_ids": "nothing: leave it out", "process_set": "group=", "group_name": "group=",
    "average": 'op="mean"', "root_rank": "root=", "name": "nothing: leave it out", "sparse_as_dense": "nothing: leave it out",
    "compression": 'tutti.torch.DataParallel(model, hook="bf16")', "prescale_factor": "op=tutti.premul(factor)",
    "postscale_factor": "a product with the result", "splits": "split_sizes=", "received_splits": "recv_sizes=",
    "token": "nothing: calls in a compiled program keep their order", "axis_name": "group=", "dim": "axis=", "dtype": "x.astype(dtype)",
    "scatter_dim": "axis=", "gather_dim": "axis=", "reduction": "op=", "reduce_op": "op=", "timeout_ms": "timeout=, in seconds",
    "output_device": "nothing: leave it out", "find_unused_parameters": "nothing: leave it out", "bucket_cap_mb": "bucket_bytes=",
    "gradient_as_bucket_view": "nothing: leave it out", "static_graph": "nothing: leave it out", "process_group": "group=",
    "sync_op": "async_op=", "use_calc_stream": "nothing: leave it out", "src_rank": "root=", "dst_rank": "root=",
}  # fmt: skip


_WORK_NAMES = {
    "Wait": "wait()", "Test": "test()", "Cancel": "cancel()", "result": "wait(), which gives the result", "is_completed": "test()",
    "is_success": "test(), and wait() raises what went wrong", "done": "test()", "exception": "wait(), which raises it",
    "get_future": "add_done_callback(function), or await work", "then": "add_done_callback(function)", "is_ready": "test()",
    "Get_source": "source", "Get_tag": "tag", "Get_count": "count", "Free": "nothing: a work needs no ending", "synchronize": "wait()",
    "block_until_ready": "wait()", "join": "wait()", "source_rank": "source", "value": "wait(), which gives the result",
}  # fmt: skip


def _did_you_mean(name: str, known: Iterable[str], most: int = 1, mark: str = "") -> str:
    """The public names that look like this one; empty if there is none."""
    close = difflib.get_close_matches(name, [each for each in known if not each.startswith("_")], n=most)
    return f"; did you mean {' or '.join(close)}{mark}?" if close else ""


def work_name_hint(name: str, known: Iterable[str]) -> str:
    """What to add to "a Work has no NAME"."""
    return f"; it is {_WORK_NAMES[name]} here" if name in _WORK_NAMES else _did_you_mean(name, known)


_MESH_NAMES = {
    "coords": "coordinates", "Get_coords": "mesh.coordinates", "Get_cart_rank": "rank_at(y=…, x=…)", "Shift": "neighbour(axis, distance)",
    "shift": "neighbour(axis, distance)", "dims": "shape", "ndim": "len(mesh)", "periods": "periodic", "rank": "mesh.group.rank",
    "Sub": "mesh[axis]", "get_group": "mesh[axis]", "get_local_rank": "mesh[axis].rank", "neighbor": "neighbour(axis)",
    "Neighbor_allgather": "neighbour_all_gather(x)", "Neighbor_alltoall": "neighbour_all_to_all(x)", "axis_names": "axes",
    "mesh_dim_names": "axes", "halo_exchange": "exchange(x, halo=1)",
}  # fmt: skip


def mesh_name_hint(name: str, axes: Iterable[str], known: Iterable[str]) -> str:
    """What to add to "a Mesh has no NAME"."""
    if name in axes:
        return f'; its group along that axis is mesh["{name}"]'
    if name in _MESH_NAMES:
        return f"; it is {_MESH_NAMES[name]} here"
    return _did_you_mean(name, known)


def keyword_hint(verb: str, name: str, known: Iterable[str]) -> str:
    """What to add to "VERB has no NAME=": the argument of ours."""
    known = [each for each in known if each != "x"]
    ours = "out=" if name in ("tensor", "buf") and verb in ("recv", "irecv") else _KEYWORDS.get(name)
    if name in ("src", "dst") and "root" in known:
        ours = "root="
    if ours is not None and (not ours.endswith("=") or ours[:-1] in known):
        return f"; here it is {ours}"
    return _did_you_mean(name, known, mark="=") or f"; it takes {', '.join(known)}"


def array_hint(verb: str, name: str) -> str:
    """For an array, or a list of arrays, where an option belongs."""
    return f"{verb}: {name}= is an array; results come back, y = tutti.{verb}(x), or go into an array given as out="


def name_hint(name: str, known: Iterable[str]) -> str:
    """What to add to "tutti has no NAME": the name it has here, or those that look like it; empty if there is none."""
    if name in _NAMES:
        return f"; it is called {_NAMES[name]} here"
    return _did_you_mean(name, known, most=3)


def group_name_hint(name: str, known: Iterable[str]) -> str:
    """The same for a name that was asked of a group."""
    if name in _GROUP_NAMES:
        return f"; it is called {_GROUP_NAMES[name]} here"
    ours = _NAMES.get(name, "")
    if ours.startswith("tutti.") and ours.removeprefix("tutti.").split("(")[0].split(" ")[0] in known:
        return f"; it is called {ours.replace('tutti.', 'group.')} here"
    return _did_you_mean(name, known, most=3)


def group_hint(given: Any) -> str:
    """What to pass for group= instead of something that is no group."""
    what = f"group={given!r:.60}"
    if isinstance(given, (list, tuple, range, set)):
        return f"{what} is no group; make one once, group = tutti.Group({list(given)!r:.40}), and pass that in every call"
    kind = type(given)
    if kind.__module__ == "tutti._training.mesh":
        axes = " or ".join(f'mesh["{axis}"]' for axis in given)
        return f"{what} is a mesh: say along which axis, {axes}, or mesh.group for all its ranks"
    if kind.__module__.partition(".")[0] == "torch":
        return f"{what} is a group of torch.distributed; with backend=\"tutti\" its group here is tutti.torch.group_of(group)"
    if kind.__module__.partition(".")[0] == "mpi4py":
        return f"{what} is a communicator of MPI; make the group here: tutti.Group(ranks), or tutti.world().split(color)"
    if isinstance(given, int):
        return f"{what} is a number; group= takes a tutti.Group, such as tutti.Group([{given}]), and root=, dst= or src= take a rank"
    return f"{what} is no group; pass a tutti.Group, made by tutti.Group(ranks), world.split(color) or mesh[axis]"


_OPS = {
    "average": "mean", "avg": "mean", "prod": "product", "mul": "product", "add": "sum", "maximum": "max", "minimum": "min",
    "multiply": "product", "bitwise_and": "band", "bitwise_or": "bor", "bitwise_xor": "bxor", "premul_sum": "premul(factor)",
    "and": "band", "or": "bor", "xor": "bxor", "land": "band", "lor": "bor",
}  # fmt: skip


def op_hint(given: Any) -> str:
    """What to pass for op= instead of another library's reduction, or its name."""
    text = given if isinstance(given, str) else getattr(given, "__name__", None) or getattr(given, "name", None) or str(given)
    word = str(text).rpartition(".")[2].removeprefix("MPI_").lower()
    ours = _OPS.get(word, word if word in ("sum", "mean", "product", "min", "max", "band", "bor", "bxor") else "")
    if ours == "premul(factor)":
        return "; write op=tutti.premul(factor)"
    if ours:
        return f'; write op="{ours}"'
    return "; ops are sum, mean, product, min, max, band, bor, bxor and tutti.premul(factor)" + (
        ", and functions in all_reduce, reduce, scan and exscan" if callable(given) else "")


def init_hint(name: str, known: Iterable[str]) -> str:
    """The same for an argument of init()."""
    if name in _INIT_ARGUMENTS:
        ours = _INIT_ARGUMENTS[name]
        return f"; it is {ours if '=' in ours else ours + '='} here"
    return _did_you_mean(name, known, mark="=") or f"; it takes {', '.join(known)}"
