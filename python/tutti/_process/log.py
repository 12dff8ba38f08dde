# log.py: the library's log lines through Python's logging, where the program uses it.
# SPDX-License-Identifier: Apache-2.0
"""A program that has set up logging (a handler at the root, or at the logger "tutti") gets the lines there: the logger
"tutti", whose level says which are made. Without it they go to stderr, as in C++. TUTTI_LOG=error, warn, info or debug
sets the level of both."""

from __future__ import annotations

import logging
import os
import re
import threading

from .. import _native
from . import lifecycle

_LEVELS = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
_LINE = re.compile(r"(tutti\S*) (error|warn|info|debug): (.*)", re.DOTALL)
_IDLE_S = 5.0

logger = logging.getLogger("tutti")
_reader: _Reader | None = None


class _Reader:
    """Hands lines on until it is closed."""

    def __init__(self, level: str) -> None:
        self._lines = _native.LogLines(level)
        self._thread = threading.Thread(target=self._serve, name="tutti-log", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while (line := self._lines.pop(_IDLE_S)) != "":
            found = _LINE.fullmatch(line or "")
            if found is not None:
                logger.log(_LEVELS[found[2]], "%s: %s", found[1], found[3].rstrip("\n"))

    def close(self) -> None:
        self._lines.close()
        self._thread.join(_IDLE_S)


def _level() -> str:
    """The least serious level that the logger shows, in the core's words."""
    shown = logger.getEffectiveLevel()
    return next((name for name, level in reversed(_LEVELS.items()) if level >= shown), "error")


def connect() -> None:
    """Before init: if the program uses logging, the lines go there from now on."""
    global _reader
    if _reader is not None or not logger.hasHandlers():
        return
    asked = os.environ.get("TUTTI_LOG", "")
    if asked in _LEVELS:
        logger.setLevel(_LEVELS[asked])
    _reader = _Reader(_level())
    lifecycle.after_finalize(_disconnect)


def _disconnect() -> None:
    global _reader
    if _reader is not None:
        _reader.close()
        _reader = None
