# frameworks.sh: the tests of PyTorch, torch.distributed, JAX and TensorFlow on the backend mpi, with 2 ranks.
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
