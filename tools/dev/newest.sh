# newest.sh: the framework tests with the newest release of everything, in an environment that is thrown away.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # the other files' variables

# What programs install beside us, each with what its tests need. One by one: what cannot be had takes no other one with it.
newest_frameworks=(numpy torch jax tensorflow mpi4py)
declare -A newest_packages=(
  [numpy]='numpy ml-dtypes pytest scikit-learn cloudpickle safetensors' [torch]='torch expecttest' [jax]='jax optax'
  [tensorflow]='tensorflow-cpu' [mpi4py]='mpi4py')
newest_space_gib=12  # torch alone brings gigabytes of CUDA, where there is no index of CPU builds
newest_ranks=2

newest_install() {  # framework
  local index=()
  [[ $1 != torch || -z ${TUTTI_TORCH_INDEX:-} ]] || index=(--index-url "$TUTTI_TORCH_INDEX")
  # shellcheck disable=SC2086
  "$TUTTI_NEWEST/bin/python" -m pip install --disable-pip-version-check --progress-bar off --upgrade "${index[@]}" \
    ${newest_packages[$1]}
}

newest_create() {
  local free
  free=$(df --output=avail -BG "$(dirname "$TUTTI_NEWEST")" | tail -n 1 | tr -dc 0-9)
  ((free >= newest_space_gib)) || { note "needs $newest_space_gib GiB, and there are $free"; return 1; }
  # The Python that the module was built for.
  [[ -x $TUTTI_NEWEST/bin/python ]] || .venv/bin/python -m venv "$TUTTI_NEWEST"
}

# torch's builds with CUDA bring triton, whose library aborts the process when it is loaded beside the other frameworks'.
# Nothing here compiles for a GPU.
newest_without_triton() { "$TUTTI_NEWEST/bin/python" -m pip uninstall --disable-pip-version-check --yes triton; }

newest_versions() {
  "$TUTTI_NEWEST/bin/python" -m pip list --disable-pip-version-check --format freeze |
    grep -E '^(numpy|torch|jax|jaxlib|tensorflow-cpu|tensorflow_cpu|mpi4py|optax|keras)==' | tr '\n' ' '
}

newest_test() {
  local report=build/log/newest status=0
  rm -f "$report"-*.xml
  PYTHONPATH=$PWD/python build/release/src/launch/tuttirun -n "$newest_ranks" --timeout "${python_seconds}s" \
    "$TUTTI_NEWEST/bin/python" -m pytest -q -rfEs -o faulthandler_timeout="$test_seconds" \
    --junitxml="$report-{rank}.xml" --ignore=tests/python/alone tests/python || status=$?
  python3 tools/dev/count.py --junit "$report-0.xml" --notes "$stage_file.notes" >>"$stage_file.counts"
  return "$status"
}

verb_newest() {
  local framework kept=${TUTTI_NEWEST:-}
  stage "set up" set_up_core || exit 1
  stage "set up Python" set_up_pieces python jax || exit 1  # the module is built with jaxlib's headers, or without its handlers
  stage "configure release" configure release || exit 1
  stage "build the module" build_target release tutti_python tuttirun || exit 1
  export TUTTI_NEWEST=${kept:-$(mktemp -d "$PWD/build/newest.XXXXXX")}
  # shellcheck disable=SC2064  # the folder of now
  [[ -n $kept ]] || trap "rm -rf '$TUTTI_NEWEST'" EXIT
  stage "environment" newest_create || exit 1
  for framework in "${newest_frameworks[@]}"; do stage "newest $framework" newest_install "$framework" || true; done
  stage "without triton" newest_without_triton || true
  echo "installed: $(newest_versions)"
  stage "newest, ranks: $newest_ranks" newest_test || true
  closing_table
}
