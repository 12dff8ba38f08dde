# setup.sh: installs what is missing: Debian packages, and a virtual environment of pinned Python packages.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # the other files' variables
#
# The core is needed for everything. A piece is wanted by some tests: if it cannot be installed, build/skips gets a line
# "NAME<tab>reason", and those tests see TUTTI_SKIP_NAME=reason in their environment.

core_packages=(g++ cmake ninja-build ccache pkg-config python3 libhwy-dev libfmt-dev libssl-dev libhwloc-dev
               libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev)
pieces=(clang eigen openmpi mpich openmpi5 mpich5 impi ucx pmix slurm iperf3 iproute2 sshd python torch jax tensorflow mpi4py types ivy notebook ray dask cluster chromium)
python_pieces=(python torch jax tensorflow mpi4py types ivy notebook)  # sections of requirements/test.txt; the others stand on the first
declare -A piece_packages=(
  [clang]="clang clang-format clang-tidy libclang-rt-14-dev lld"
  [eigen]="libeigen3-dev"
  [openmpi]="openmpi-bin libopenmpi-dev"
  [mpich]="mpich libmpich-dev"
  [ray]="python3-venv" [dask]="python3-venv" [cluster]="python3-venv"
  [impi]="python3-venv" [openmpi5]="python3-venv" [mpich5]="python3-venv"
  [ucx]="libucx-dev ucx-utils"
  [pmix]="libpmix-dev"
  [slurm]="slurm-wlm munge"
  [iperf3]="iperf3"
  [iproute2]="iproute2"
  [chromium]="chromium"
  [sshd]="openssh-server openssh-client"
  [python]="python3-venv python3-dev" [torch]="" [jax]="" [tensorflow]="" [mpi4py]="openmpi-bin" [types]="" [ivy]="" [notebook]=""
)
requirements=requirements/test.txt
carried=$PWD/build/carry  # what tools/carry_dependencies brought from another machine
skips=build/skips

# A tool may also come from elsewhere; it counts if it runs. A library has to be a package.
package_is_there() {
  case $1 in
    g++ | cmake | ccache | pkg-config | python3 | clang | clang-format | clang-tidy | iperf3) "$1" --version ;;
    ninja-build) ninja --version ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    python3-dev) test -f "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ;;
    iproute2) ip -V ;;
    *) [[ $(dpkg-query -W -f='${Status}' "$1") == "install ok installed" ]] ;;
  esac >/dev/null 2>&1
}

missing_of() {
  local package
  for package in "$@"; do package_is_there "$package" || echo "$package"; done
}

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; elif [[ -t 0 ]]; then sudo "$@"; else sudo -n "$@"; fi
}

install_packages() {
  local command="apt-get install -y --no-install-recommends $*"
  if [[ -n ${TUTTI_NO_INSTALL:-} ]] || ! command -v apt-get >/dev/null || { [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; }; then
    note "missing: $*"
    note "install with: sudo $command"
    return 1
  fi
  if [[ -z ${package_lists_updated:-} ]]; then
    as_root apt-get update || true  # a mirror that is down for one list may still have what is needed
    package_lists_updated=1
  fi
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive $command
}

uses_carried() { [[ -d $carried && -n $(missing_of "${core_packages[@]}") ]]; }

set_up_core() {
  local missing
  mapfile -t missing < <(missing_of "${core_packages[@]}")
  if ((${#missing[@]} > 0)); then
    if uses_carried; then
      note "not installed here, taken from build/carry: ${missing[*]}"
    else
      install_packages "${missing[@]}"
    fi
  fi
  local version
  version=$(cmake --version | sed -n 's/^cmake version //p')
  printf '%s\n' 3.25 "$version" | sort -V -C || {
    note "cmake $version is too old: 3.25 or later is needed"
    return 1
  }
}

# A first failure is remembered, so that the next run does not spend a minute on it; CI always tries.
piece_stamp() {
  local what=${piece_packages[$1]}
  ! is_python_piece "$1" || what+=$(cat "$requirements")
  echo "build/stamps/no-$1-$(sha256sum <<<"$what" | cut -c1-12)"
}

set_up_piece() {  # piece
  local missing
  # shellcheck disable=SC2086
  mapfile -t missing < <(missing_of ${piece_packages[$1]})
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}" || return 1
  ! is_python_piece "$1" || set_up_python "$1" || return 1
  [[ ! -f requirements/$1.txt ]] || set_up_environment "$1"
}

# An MPI in a folder of its own: all of them call their programs mpirun and mpicc. Inside a host they need none of their dependencies.
set_up_environment() {  # piece
  local stamp
  stamp=build/$1/stamp-$(sha256sum <"requirements/$1.txt" | cut -c1-12)
  [[ ! -f $stamp ]] || return 0
  [[ -z ${TUTTI_NO_INSTALL:-} ]] || return 1
  python3 -m venv --clear "build/$1" || return 1
  "build/$1/bin/python" -m pip install --disable-pip-version-check --progress-bar off --no-compile --no-deps \
    -r "requirements/$1.txt" || return 1
  touch "$stamp"
}

set_up_pieces() {  # piece…
  local piece stamp all_missing failed=0
  mkdir -p build/stamps
  touch "$skips"
  if [[ -z ${TUTTI_NO_INSTALL:-} ]]; then  # one call of apt-get for all is much faster than one each
    # shellcheck disable=SC2086
    mapfile -t all_missing < <(for piece in "$@"; do [[ -f $(piece_stamp "$piece") ]] || missing_of ${piece_packages[$piece]}; done)
    ((${#all_missing[@]} == 0)) || install_packages "${all_missing[@]}" || true
    rm -f "$stage_file.notes"
  fi
  for piece in "$@"; do
    stamp=$(piece_stamp "$piece")
    [[ -z ${TUTTI_REQUIRE_ALL:-} ]] || rm -f "$stamp"
    sed -i "/^$piece\t/d" "$skips"
    if [[ ! -f $stamp ]] && (set_up_piece "$piece"); then continue; fi
    touch "$stamp"
    printf '%s\t%s could not be installed; tests that need it are skipped\n' "$piece" "$piece" >>"$skips"
    note "$piece could not be installed ($(source_of "$piece")): its tests are skipped; rm $stamp to try again"
    [[ -z ${TUTTI_REQUIRE_ALL:-} ]] || failed=1
  done
  return $failed
}

is_python_piece() { [[ " ${python_pieces[*]} " == *" $1 "* ]]; }
source_of() { if is_python_piece "$1"; then echo "[$1] in $requirements"; else echo "${piece_packages[$1]}"; fi; }

section_of() { sed -n "/^# \[$1\]/,/^\$/p" "$requirements"; }  # piece
python_stamp() { echo ".venv/stamp-$1-$({ section_of "$1"; python3 --version; } | sha256sum | cut -c1-12)"; }  # piece

# Sections are installed one by one, so that a framework that cannot be had takes no other one with it.
set_up_python() {  # piece
  [[ ! -f $(python_stamp "$1") ]] || return 0
  [[ -z ${TUTTI_NO_INSTALL:-} ]] || return 1
  if [[ $1 == python ]]; then
    [[ $(.venv/bin/python --version 2>/dev/null) == "$(python3 --version)" ]] || python3 -m venv --clear .venv || return 1
  else
    set_up_python python || return 1
  fi
  .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --no-compile \
    -r <(section_of "$1") -c "$requirements" || return 1
  # A build of torch with CUDA brings triton, whose library ends a process in which the other frameworks are loaded. Nothing here
  # compiles for a GPU through it.
  [[ $1 != torch ]] || .venv/bin/python -m pip uninstall --disable-pip-version-check --yes triton || return 1
  rm -f ".venv/stamp-$1-"*
  touch "$(python_stamp "$1")"
}

has_piece() { ! grep -qs "^$1"$'\t' "$skips"; }

# What the tests see: the reasons for skipping, and the Python that has the pinned packages.
export_skips() {
  local piece reason
  if [[ -f $skips ]]; then
    while IFS=$'\t' read -r piece reason; do
      export "TUTTI_SKIP_${piece^^}=$reason"
    done <"$skips"
  fi
  if [[ -f $(python_stamp python) ]]; then
    export TUTTI_PYTHON=$PWD/.venv/bin/python
  fi
}
