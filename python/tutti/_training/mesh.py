# mesh.py: ranks as a grid with named axes.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Never, TypeVar

from .. import _native
from .._calls.dispatch import group_or_world, tell_refusal
from .._errors import InvalidArgument, Unsupported
from .._messages.messages import nobody

T = TypeVar("T")


def _named_axes(axes: dict[str, Any], periodic: Iterable[str]) -> list[tuple[str, int, bool]]:
    """Name and size of each axis, and whether it goes around."""
    try:
        sizes = {name: operator.index(size) for name, size in axes.items()}
    except TypeError:
        raise InvalidArgument(f"Mesh: sizes are integers, as in Mesh(data=2, tensor=-1), not {axes}") from None
    if too_large := [name for name, size in sizes.items() if abs(size) >= 1 << 31]:
        raise InvalidArgument(f"Mesh: {too_large[0]}={sizes[too_large[0]]} is more than any number of ranks")
    around = {periodic} if isinstance(periodic, str) else set(periodic)
    if unknown := around - set(axes):
        raise InvalidArgument(f"Mesh: periodic names {', '.join(map(str, unknown))}; the axes are {', '.join(axes)}")
    return [(name, size, name in around) for name, size in sizes.items()]


def _numbers(name: str, given: Iterable[Any]) -> list[int]:
    try:
        numbers = [operator.index(each) for each in given]
    except TypeError:
        raise InvalidArgument(f"exchange: {name}={given!r} is neither an integer nor a list of integers") from None
    if any(abs(number) >= 1 << 31 for number in numbers):
        raise InvalidArgument(f"exchange: {name}={given!r} is out of range")
    return numbers


class Mesh:
    """The ranks as a grid with named axes, and a group along each of them. ::

        mesh = tutti.Mesh(data=2, tensor=4)          # 8 ranks; -1 for one axis: as many as are left
        mesh["tensor"].all_reduce(x)                 # among the 4 ranks of this rank's row
        mesh["data", "tensor"]                       # the group of several axes
        mesh.coordinates                             # {"data": 1, "tensor": 2}
        print(mesh)
        grid = tutti.Mesh(y=2, x=4, periodic=("x",)) # along x, the last rank's neighbour is the first one
        u = grid.exchange(u, halo=1)                 # margins from the neighbours

    Every rank of the group makes the same mesh. The last axis is the one whose ranks are closest to each other (on one
    node as far as it goes): tensor parallelism goes there, data parallelism first. A group other than the world comes
    as the first argument: ``tutti.Mesh(group, data=-1)``.

    periodic: the names of the axes that go around; beyond the edges of the others is tutti.nobody.

    Raises InvalidArgument where the sizes do not multiply to the number of ranks, and Mismatch where another rank makes another mesh.
    """

    def __init__(
        self, group: _native.Group | None = None, /, *unnamed: Never, periodic: Iterable[str] = (), **axes: int
    ):
        if unnamed or isinstance(group, (int, tuple, list)):
            sizes = [*(group if isinstance(group, (tuple, list)) else [group]), *unnamed]
            named = ", ".join(f"{name}={size}" for name, size in zip("zyx"[-len(sizes) :], sizes, strict=False))
            raise InvalidArgument(f"Mesh: axes have names here: Mesh({named}); a group of ranks comes first, without a name")
        self._group = group_or_world(group)
        try:
            named = _named_axes(axes, periodic)
        except InvalidArgument as wrong:
            tell_refusal(self._group, _native.Call("all_reduce"), wrong)  # by which the ranks agree on their mesh
            raise
        self._grid = _native.Mesh(self._group, named)
        self._groups: dict[tuple[str, ...], _native.Group] = {}
        for name in axes:
            self._groups[name,] = self._grid.group([name])

    @property
    def group(self) -> _native.Group:
        """The group that the mesh was made of."""
        return self._group

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, the closest ranks last."""
        return tuple(name for name, _, _ in self._grid.axes)

    @property
    def periodic(self) -> tuple[str, ...]:
        """The names of the axes that go around."""
        return tuple(name for name, _, around in self._grid.axes if around)

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis."""
        return {name: size for name, size, _ in self._grid.axes}

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._group.size

    @property
    def coordinates(self) -> dict[str, int]:
        """Where this rank stands on each axis: its rank in that axis's group."""
        return dict(zip(self.axes, self._grid.coordinates, strict=True))

    def __getitem__(self, axes: str | tuple[str, ...]) -> _native.Group:
        """The ranks that differ from this one along these axes only, in their order.

        The group of one axis is there from the start; one of several is made when its members first ask for it,
        together."""
        names = (axes,) if isinstance(axes, str) else tuple(axes)
        unknown = [name for name in names if name not in self.axes]
        if unknown or not names:
            raise InvalidArgument(
                f"the mesh has no axis {', '.join(map(repr, unknown)) or '()'}; it has {', '.join(self.axes)}"
            )
        if names not in self._groups:
            self._groups[names] = self._grid.group(list(names))
        return self._groups[names]

    def rank_at(self, **coordinates: int) -> int:
        """The rank (in the mesh's group) at these coordinates; axes that are not named stay where this rank is."""
        place = self.coordinates
        for name, index in coordinates.items():
            if name not in place:
                raise InvalidArgument(f"the mesh has no axis {name!r}; it has {', '.join(self.axes)}")
            if not 0 <= index < self.shape[name]:
                raise InvalidArgument(f"axis {name!r} has {self.shape[name]} places; there is no {index}")
            place[name] = index
        return self._grid.rank_at(list(place.values()))

    def neighbour(self, axis: str, distance: int = 1) -> int:
        """The rank (in the mesh's group) that many steps further along the axis; beyond an open edge, tutti.nobody."""
        rank = self._grid.neighbour(axis, distance)
        return nobody if rank == nobody else rank

    def exchange(
        self, x: T, halo: int | Sequence[int] = 1, *, axes: Sequence[int] | None = None, out: T | None = None,
        timeout: float | None = None,
    ) -> T:
        """An array whose margins are filled with what lies next to them on the neighbours, corners too.

        x: an array of NumPy, PyTorch, JAX or TensorFlow: along each axis of the mesh `halo` cells of margin, this rank's own cells
            (at least as many), and `halo` cells of margin.
        halo: the width of the margins; one number, or one for each axis of the mesh.
        axes: which axis of the array belongs to which axis of the mesh; without it the first ones, in order.
        out: x itself, to fill its margins in place; not for JAX and TensorFlow, nor under autograd.

        What lies beyond an open edge stays as it is. With gradients: those of a margin go to the rank that owns its cells.

        Raises InvalidArgument where the margins do not fit, and Mismatch where a neighbour's array has another shape.

        Example::

            grid = tutti.Mesh(x=-1, periodic=("x",))
            u = np.full(5, float(rank))
            u = grid.exchange(u, halo=1)
            assert u[0] == (rank - 1) % size and u[-1] == (rank + 1) % size
        """
        from .halo import exchange

        with self._skipping_what_is_refused():
            widths = _numbers("halo", halo if isinstance(halo, Iterable) and getattr(halo, "ndim", 1) else [halo])
            return exchange(self, x, widths, [] if axes is None else _numbers("axes", axes), out, timeout)

    def neighbour_all_gather(self, x: T, *, timeout: float | None = None) -> T:
        """What the neighbours pass, stacked on a new first axis: for each axis of the mesh the lower neighbour's, then the upper one's.

        x: an array of NumPy, PyTorch, JAX or TensorFlow, of the same shape on all neighbours.

        Where nobody is, beyond an open edge, are zeros. With gradients.

        Example::

            line = tutti.Mesh(x=-1)
            both = line.neighbour_all_gather(np.array([rank + 1.0]))
            assert both.shape == (2, 1) and both[0] == rank
        """
        from .halo import exchange_parts

        with self._skipping_what_is_refused():
            return exchange_parts(self, x, True, timeout)

    def neighbour_all_to_all(self, x: T, *, timeout: float | None = None) -> T:
        """Each neighbour gets its own part of the first axis, and gives one: two parts for each axis of the mesh, as in neighbour_all_gather.

        Example::

            line = tutti.Mesh(x=-1)
            below, above = line.neighbour_all_to_all(np.array([10.0 * rank, 10.0 * rank + 1]))
            assert below == (10 * (rank - 1) + 1 if rank > 0 else 0)
        """
        from .halo import exchange_parts

        with self._skipping_what_is_refused():
            return exchange_parts(self, x, False, timeout)

    @contextlib.contextmanager
    def _skipping_what_is_refused(self) -> Iterator[None]:
        """Around an exchange: one that is refused here has taken its number, as on the ranks that make it."""
        try:
            yield
        except (InvalidArgument, Unsupported):
            self._grid.skip_exchange()
            raise

    def __contains__(self, axis: Any) -> bool:
        return axis in self.axes

    def __iter__(self) -> Iterator[str]:
        return iter(self.axes)

    def __len__(self) -> int:
        return len(self.axes)

    def __repr__(self) -> str:
        around = f", periodic={self.periodic}" if self.periodic else ""
        return f"tutti.Mesh({', '.join(f'{name}={size}' for name, size in self.shape.items())}{around})"

    def __str__(self) -> str:
        return self._grid.describe()


def _unknown(self: Mesh, name: str) -> Any:
    """For names that are not found only."""
    if name.startswith("_"):  # Python's own questions, which expect no advice
        raise AttributeError(f"'Mesh' object has no attribute {name!r}")
    from .._calls.hints import mesh_name_hint

    raise AttributeError(f"a tutti.Mesh has no {name}" + mesh_name_hint(name, self.axes, dir(Mesh)))


setattr(Mesh, "__getattr__", _unknown)  # noqa: B010  # in the class, type checkers would take every name for one that is there
