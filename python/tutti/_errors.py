# _errors.py: what can go wrong. docs/errors.md says when each is raised and what to do.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations


class Error(RuntimeError):
    """Every error of the library. The text says who, what, why and what to try."""


class InvalidArgument(Error, ValueError):
    """The caller's mistake, found on this rank before any byte moved. The group stays usable."""


class Mismatch(Error):
    """Ranks asked for different things in the same call. The group is broken."""


class Timeout(Error, TimeoutError):
    """A deadline passed. From ``wait(timeout)`` it only means "not yet"; otherwise the group is broken."""


class PeerLost(Error):
    """A member of the group is gone; every group that contains it is broken, unless it only left without having received
    a message."""

    def __init__(self, text: str, rank: int = -1, host: str = "", reason: str = "") -> None:
        super().__init__(text)
        self.rank = rank  # in the world
        self.host = host
        self.reason = reason

    def __reduce__(self) -> tuple:
        return PeerLost, (str(self), self.rank, self.host, self.reason)


class Aborted(Error):
    """Somebody called abort(), refused its part of the call, or ended the job."""


class RendezvousError(Error):
    """The ranks could not find each other."""


class AuthenticationError(Error):
    """The other side does not know the job's secret, or is not a Tutti rank at all."""


class Unsupported(Error):
    """Asked for something this build, this machine or this framework does not have."""


# As programs name them: a traceback says tutti.Mismatch.
for _error in (
    Error, InvalidArgument, Mismatch, Timeout, PeerLost, Aborted, RendezvousError, AuthenticationError, Unsupported
):  # fmt: skip
    _error.__module__ = "tutti"
del _error
