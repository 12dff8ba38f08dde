# reductions.py: reductions that are made of a number; the others have names.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from .. import _native
from .._errors import InvalidArgument
from .._native import Op


def premul(factor: float) -> Op:
    """The sum of `factor` times each rank's contribution.

    Raises InvalidArgument for what is no number.

    Example::

        mean = tutti.all_reduce(np.ones(3), op=tutti.premul(1 / size))
        assert np.allclose(mean, 1)
    """
    try:
        return _native.premul(factor)
    except TypeError:
        raise InvalidArgument(f"premul: the factor is a number, not {factor!r}") from None
