# compiled.py: the backend's part in C++: compiled against the torch that is there, kept, loaded.
# SPDX-License-Identifier: Apache-2.0
"""``TUTTI_TORCH_BACKEND=cpp`` asks for it. It is compiled when a process first needs it (about half a minute) and kept in
``~/.cache/tutti`` (``XDG_CACHE_HOME``), under a name that changes with torch, Python, the compiler and the source.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import stat
import subprocess
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ... import _native
from ..._errors import InvalidArgument, Unsupported
from ..memory import NAMES
from .work import explained

_VARIABLE = "TUTTI_TORCH_BACKEND"
_SOURCES = Path(__file__).parent / "cxx"
_MODULE = "_tutti_torch_backend"
_BUILD_SECONDS = 600


def is_asked_for() -> bool:
    choice = os.environ.get(_VARIABLE, "python")
    if choice not in ("python", "cpp"):
        raise InvalidArgument(f"{_VARIABLE}={choice}: say python or cpp")
    return choice == "cpp"


def wrapped(process_group: Any) -> Any:
    """A c10d::Backend over a process group of the Python class."""
    backend = module().Backend(process_group, _native.torch_entry(process_group.group), explained, wrapped)
    process_group._call_lock = backend.call_lock
    process_group._is_shown = True
    return backend


def behind(backend: Any) -> Any:
    """The process group of the Python class that a backend holds; None: it is another kind of backend."""
    backend = getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL puts another one around it
    return backend.process_group if is_asked_for() and isinstance(backend, module().Backend) else None


@cache
def module() -> ModuleType:
    """The compiled part, compiled now if need be. Raises Unsupported with the reason where it cannot be had."""
    library = _cached()
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(library))
    spec = importlib.util.spec_from_file_location(_MODULE, library, loader=loader)
    made = importlib.util.module_from_spec(spec)
    loader.exec_module(made)
    made.make_known(_native.torch_entry_numbers(), NAMES)
    return made


def _cached() -> Path:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise Unsupported(f"{_VARIABLE}=cpp needs a compiler for C++20: install one, name it in CXX, or say python")
    folder = _folder()
    library = folder / f"torch-{_key(compiler)}.so"
    with (folder / f"{library.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process compiles, the others of this machine wait for it
        if not library.exists():
            _compile(compiler, library)
    if _is_open_to_others(library):
        raise Unsupported(f"{library} belongs to somebody else, or others may write it: remove it")
    return library


def _folder() -> Path:
    """Ours, and nobody else may write there: what lies in it is loaded into the program."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tutti"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_open_to_others(folder):
        raise Unsupported(f"{folder} belongs to somebody else, or others may write there: chmod go-w, or set XDG_CACHE_HOME")
    return folder


def _is_open_to_others(path: Path) -> bool:
    found = path.lstat()
    is_other = found.st_uid != os.getuid() or stat.S_ISLNK(found.st_mode)
    return is_other or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _key(compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=60).stdout
    words = [torch.__version__, torch.__file__, sysconfig.get_config_var("SOABI"), compiler]
    sources = [path.read_bytes() for path in sorted(_SOURCES.iterdir()) if path.suffix in (".cpp", ".hpp")]
    return hashlib.sha256(b"\0".join([*map(str.encode, words), version, *sources])).hexdigest()[:24]


def _compile(compiler: str, library: Path) -> None:
    home = Path(torch.__file__).parent
    include = [home / "include", home / "include/torch/csrc/api/include", sysconfig.get_path("include")]
    with tempfile.TemporaryDirectory(dir=library.parent) as place:
        made = Path(place) / library.name
        command = [
            compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w",
            f"-DTORCH_EXTENSION_NAME={_MODULE}", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            *(f"-I{folder}" for folder in include), str(_SOURCES / "backend.cpp"), "-o", str(made),
            f"-L{home / 'lib'}", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python",
        ]  # fmt: skip
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECONDS)
        if ran.returncode:
            raise Unsupported(f"{_VARIABLE}=cpp: {compiler} cannot compile the backend: {ran.stderr.strip()[-2000:]}")
        made.chmod(0o700)
        made.rename(library)
