# frameworks.sh: JAX, TensorFlow and PyTorch on the backend mpi, with 2 ranks; random programs of all verbs and messages, with 3.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/mpi_common.sh"

[ -z "${TUTTI_SKIP_PYTHON:-}" ] || skip "$TUTTI_SKIP_PYTHON"
python=${TUTTI_PYTHON:-$source_folder/.venv/bin/python}
ls "$source_folder"/python/tutti/_native*.so >/dev/null 2>&1 || skip "the Python module is not built"
export PYTHONPATH=$source_folder/python OMP_NUM_THREADS=1
files=(test_torch test_torch_distributed test_jax_jit test_jax_gradients test_tensorflow_function test_tensorflow_gradients)
if [ -n "${TUTTI_FILES:-}" ]; then read -ra files <<<"$TUTTI_FILES"; fi
paths=()
for file in "${files[@]}"; do paths+=("tests/python/$file.py"); done
cd "$source_folder"
# The ranks tell each other how each test went, by these variables.
as_rank='RANK=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} WORLD_SIZE=${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE} exec "$@"'
run frameworks "${launch[@]}" -n 2 bash -c "$as_rank" rank "$python" -m pytest -q -p no:cacheprovider "${paths[@]}"

programs=5
if [ "${TUTTI_SOAK:-0}" = 1 ]; then programs=500; fi
run programs "${launch[@]}" -n 3 "$python" tests/programs/rank.py --programs "$programs" --first "$TUTTI_SEED"
