# model_parallel.py: one model over several ranks: tensors split along an axis, with gradients.
# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: the ranks of one group hold parts of one model and compute one loss, the same on each of them.

    mp = tutti.model_parallel
    mp.init(group_size=4)                       # the world as groups of 4, each with a model
    y = mp.linear(x, weight_part, dim=1)        # columns: each rank computes a part of the output
    y = mp.gather(y, dim=-1)

Four functions carry everything else. They come in pairs, each the gradient of the other:

    ==========  ========================  ======================
    function    forward                   gradient
    ==========  ========================  ======================
    copy        nothing                   sum over the ranks
    reduce      sum over the ranks        nothing
    scatter     this rank's part          the ranks' parts joined
    gather      the ranks' parts joined   this rank's part
    ==========  ========================  ======================

That differs from the plain verbs, whose gradients are those of the *sum* of all ranks' losses: here all ranks have the
same loss, and it counts once. PyTorch, JAX and TensorFlow differentiate through them; for NumPy each has
`.backward(gradient)`. Lengths that the ranks do not divide are split as evenly as it goes, the first ranks getting one
more."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native, adapters
from ._arrays.operations import array_ops_of
from ._calls.dispatch import group_or_world
from ._errors import InvalidArgument
from ._training.mesh import Mesh

_mesh: Mesh | None = None


def init(group_size: int = -1) -> None:
    """Cuts the world into groups of `group_size` ranks (−1: one group of all), close ones together. Collective."""
    global _mesh
    world = _native.world()
    if _mesh is not None:
        raise InvalidArgument(f"model_parallel.init: groups of {_mesh.shape['tensor']} exist; call destroy() first")
    size = world.size if group_size == -1 else group_size
    if size < 1 or world.size % size:
        raise InvalidArgument(f"model_parallel.init: {world.size} ranks cannot be cut into groups of {group_size}")
    _mesh = Mesh(data=world.size // size, tensor=size)


def is_initialized() -> bool:
    """Whether init() has been called."""
    return _mesh is not None


def destroy() -> None:
    """Forgets the groups, so that init() can make others."""
    global _mesh
    _mesh = None


def _made() -> Mesh:
    if _mesh is None:
        raise InvalidArgument("model_parallel: there are no groups yet; call tutti.model_parallel.init() on every rank")
    return _mesh


def group() -> _native.Group:
    """The ranks that hold parts of the same model as this one."""
    return _made()["tensor"]


def data_group() -> _native.Group:
    """The ranks that hold the same part as this one, of other copies of the model: gradients are averaged over them."""
    return _made()["data"]


def rank() -> int:
    """This rank's place in the world."""
    return _made() and _native.world().rank


def world_size() -> int:
    """The number of ranks in the world."""
    return _made() and _native.world().size


def group_size() -> int:
    """The number of ranks that share one model."""
    return _made().shape["tensor"]


def members_of(group: _native.Group | None) -> _native.Group:
    """The group that was given, or model_parallel's own."""
    return _made()["tensor"] if group is None else group_or_world(group)


class Split:
    """How a length is cut over the ranks of a group."""

    def __init__(self, length: int, members: Any):
        self.sizes = _native.shard_sizes(length, members.size)
        self.begin = sum(self.sizes[: members.rank])
        self.length = self.sizes[members.rank]

    @property
    def is_even(self) -> bool:
        return self.sizes[0] == self.sizes[-1]


def _axis_of(x: Any, dim: int, what: str) -> int:
    axes = len(x.shape)
    if not -axes <= dim < axes:
        raise InvalidArgument(f"model_parallel.{what}: dim={dim} is none of the {axes} axes of the array")
    return dim % axes


def _length_of(x: Any, axis: int, what: str) -> int:
    """How much there is to cut or join; tf.function may not know it."""
    length = x.shape[axis]
    if length is None:
        raise InvalidArgument(
            f"model_parallel.{what}: the length of axis {axis} is not known while tf.function traces; give the function an"
            " input_signature with that length, or x.set_shape(…) before"
        )
    return int(length)


def _joined(x: Any, axis: int, members: Any, total: int | None) -> Any:
    """The ranks' parts along an axis. `total` tells the lengths; without it they are asked for, which a compiled
    program cannot do: there they have to be equal, and the call raises Mismatch where they are not."""
    if total is None:
        call = _native.Call("all_gather", axis=axis, uneven=not adapters.is_traced(x))
    elif (split := Split(total, members)).is_even:
        call = _native.Call("all_gather", axis=axis)
    else:
        call = _native.Call("all_gather", axis=axis, uneven=True, sizes=split.sizes)
    return _native.apply(call, x, None, members, False, None)


def _part(x: Any, axis: int, members: Any) -> Any:
    split = Split(_length_of(x, axis, "scatter"), members)
    ops = array_ops_of(x, "model_parallel.scatter")
    return ops.copy(ops.slice(x, axis, split.begin, split.length))


class _Function:
    """A function and its gradient, which NumPy's users call themselves."""

    def __init__(self, forward: Any, backward_of: Any):
        self._forward = forward
        self._backward_of = backward_of
        self.__doc__ = forward.__doc__
        self.__name__ = forward.__name__
        self.__wrapped__ = forward
        self.autograph_info__: dict = {}  # inside tf.function: TensorFlow is to call it as it is, not to rewrite it

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._forward(*args, **options)

    def backward(self, gradient: Any, *args: Any, **options: Any) -> Any:
        """The gradient of the input from that of the output. The other arguments are those of the function."""
        return self._backward_of(gradient, *args, **options)


def _copy(x: Any, *, group: _native.Group | None = None) -> Any:
    """x as it is; the gradient is summed over the ranks. For what every rank uses for its own part of the work."""
    members = members_of(group)
    ops = array_ops_of(x, "model_parallel.copy")
    return ops.custom_vjp(x, ops.copy, lambda g: _reduce(g, group=members))


def _reduce(x: Any, *, out: Any = None, group: _native.Group | None = None) -> Any:
    """The sum over the ranks, on every rank; the gradient is handed on as it is. For what each rank has a part of.

    out=x works in place, for NumPy arrays and for tensors without gradients."""
    members = members_of(group)
    call = _native.Call("all_reduce")
    if out is not None:
        return _native.apply(call, x, out, members, False, None)
    ops = array_ops_of(x, "model_parallel.reduce")
    total = ops.custom_vjp(
        x, lambda part: _native.apply(call, part, None, members, False, None), lambda g: _copy(g, group=members)
    )
    return total


def _scatter(x: Any, dim: int | None = -1, *, group: _native.Group | None = None) -> Any:
    """This rank's part of x along `dim`; nothing is sent, as every rank has x. The gradient is the parts' gradients
    joined.

    dim=None leaves x whole."""
    if dim is None:
        return x
    members = members_of(group)
    axis = _axis_of(x, dim, "scatter")
    total = _length_of(x, axis, "scatter")
    ops = array_ops_of(x, "model_parallel.scatter")
    return ops.custom_vjp(
        x, lambda whole: _part(whole, axis, members), lambda g: _gather(g, axis, total=total, group=members)
    )


def _gather(x: Any, dim: int | None = -1, *, total: int | None = None, group: _native.Group | None = None) -> Any:
    """All ranks' parts joined along `dim`, on every rank; the gradient is this rank's part of it.

    total: the length of the result, if it was split as scatter() does it: spares a question to the others, and has to
        be given under a compiler unless all parts are equally long. dim=None leaves x as it is."""
    if dim is None:
        return x
    members = members_of(group)
    axis = _axis_of(x, dim, "gather")
    own = _length_of(x, axis, "gather")
    if total is not None and (due := Split(total, members).length) != own:
        raise InvalidArgument(f"model_parallel.gather: total={total} gives this rank {due}, but it has {own}")
    ops = array_ops_of(x, "model_parallel.gather")

    def backward(gradient: Any) -> Any:
        if total is None and Split(int(gradient.shape[axis]), members).length != own:
            raise InvalidArgument("model_parallel.gather: such parts have no gradient; split them as scatter() does")
        return _scatter(gradient, axis, group=members)

    return ops.custom_vjp(x, lambda part: _joined(part, axis, members, total), backward)


copy = _Function(_copy, lambda g, **options: _reduce(g, **options))
reduce = _Function(_reduce, lambda g, **options: _copy(g, **{k: v for k, v in options.items() if k != "out"}))
scatter = _Function(_scatter, lambda g, dim=-1, *, total=None, **options: _gather(g, dim, total=total, **options))
gather = _Function(_gather, lambda g, dim=-1, *, total=None, **options: _scatter(g, dim, **options))


if TYPE_CHECKING:
    from ._training.parallel_layers import cross_entropy as cross_entropy
    from ._training.parallel_layers import embedding as embedding
    from ._training.parallel_layers import linear as linear
else:

    def __getattr__(name: str) -> Any:
        if name in ("linear", "embedding", "cross_entropy"):
            from ._training import parallel_layers

            return getattr(parallel_layers, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "linear", "embedding", "cross_entropy"})
