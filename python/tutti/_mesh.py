# _mesh.py: ranks as a grid with named axes.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _native
from ._dispatch import group_or_world
from ._errors import InvalidArgument


class Mesh:
    """The ranks as a grid with named axes, and a group along each of them. ::

        mesh = tutti.Mesh(data=2, tensor=4)          # 8 ranks; -1 for one axis: as many as are left
        mesh["tensor"].all_reduce(x)                 # among the 4 ranks of this rank's row
        mesh["data", "tensor"]                       # the group of several axes
        mesh.coordinates                             # {"data": 1, "tensor": 2}
        print(mesh)

    Every rank of the group makes the same mesh. The last axis is the one whose ranks are closest to each other (on one
    node as far as it goes): tensor parallelism goes there, data parallelism first. A group other than the world comes
    as the first argument: ``tutti.Mesh(group, data=-1)``.

    Raises InvalidArgument where the sizes do not multiply to the number of ranks.
    """

    def __init__(self, group: _native.Group | None = None, /, **axes: int):
        if not all(isinstance(size, int) for size in axes.values()):
            raise InvalidArgument(f"Mesh: sizes are integers, as in Mesh(data=2, tensor=-1), not {axes}")
        self._group = group_or_world(group)
        self._grid = _native.Mesh(self._group, list(axes.items()))
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
        return tuple(name for name, _ in self._grid.axes)

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis."""
        return dict(self._grid.axes)

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
        """The rank (in the mesh's group) that many steps further along the axis, around its end."""
        return self._grid.neighbour(axis, distance)

    def __contains__(self, axis: Any) -> bool:
        return axis in self.axes

    def __iter__(self) -> Iterator[str]:
        return iter(self.axes)

    def __len__(self) -> int:
        return len(self.axes)

    def __repr__(self) -> str:
        return f"tutti.Mesh({', '.join(f'{name}={size}' for name, size in self.shape.items())})"

    def __str__(self) -> str:
        return self._grid.describe()
