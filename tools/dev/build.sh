# build.sh: configuring and building the presets.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # the other files' variables

preset_names() { python3 -c '
import json
for preset in json.load(open("CMakePresets.json"))["configurePresets"]:
    if not preset.get("hidden"): print(preset["name"])'; }

# Starts afresh if the checkout was moved, if the libraries come from elsewhere than last time, or if presets changed: with
# another compiler, CMake would forget what the preset says.
configure() {  # preset
  local cache=build/$1/CMakeCache.txt prefix='' arguments=()
  if uses_carried; then prefix=$carried; fi
  if [[ -f $cache ]] && ! { [[ $cache -nt CMakePresets.json ]] && grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache" &&
                            [[ $(sed -n 's/^CMAKE_PREFIX_PATH:[A-Z]*=//p' "$cache") == "$prefix" ]]; }; then
    arguments+=(--fresh)
  fi
  [[ -z $prefix ]] || arguments+=("-DCMAKE_PREFIX_PATH=$prefix")
  if [[ $1 =~ ^(release|debug)$ && -f $(python_stamp python) ]]; then  # the module's own sanitizing would need a sanitized Python
    arguments+=(-DTUTTI_PYTHON=ON "-DPython_EXECUTABLE=$PWD/.venv/bin/python")
  fi
  cmake --preset "$1" "${arguments[@]}"
}

# The list is read to its end: a reader that stops early makes the writer fail, and the target seem not to be there.
has_target() {  # preset target
  local targets
  [[ -f build/$1/build.ninja ]] && targets=$(cmake --build "build/$1" --target help) && grep -q "^$2: phony" <<<"$targets"
}

# -k 0: one run shows every error, not only the first.
build_target() { cmake --build "build/$1" --parallel "$jobs" --target "${@:2}" -- -k 0; }  # preset target…

# The thread sanitizer of gcc 12 dies on kernels that randomise addresses more than it expects.
fixed_addresses() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

our_sources() {
  local folder folders=()
  for folder in include src tests bench examples tools python; do [[ ! -d $folder ]] || folders+=("$folder"); done
  find "${folders[@]}" -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' | sort
}

check_format() { our_sources | xargs -r clang-format --dry-run --Werror; }

verb_fmt() {
  stage "set up clang" set_up_pieces clang || exit 1
  has_piece clang || give_up "clang-format is missing"
  case ${1:-} in
    --check) stage format check_format ;;
    '') our_sources | xargs -r clang-format -i ;;
    *) give_up "fmt takes --check, or nothing" ;;
  esac
}

# clang-tidy is slow and opinionated: for a person, not for CI.
deep_tidy() {
  our_sources | grep '\.cpp$' | grep -v '^tests/install/' |
    xargs -r -n 1 -P "$jobs" clang-tidy --quiet -p build/release
}

verb_tidy() {
  stage "set up" set_up_core || exit 1
  stage "configure release" configure release || exit 1
  python3 tools/tidy.py --build build/release
  [[ ${1:-} == --deep ]] || return 0
  stage "set up clang" set_up_pieces clang || exit 1
  deep_tidy
}
