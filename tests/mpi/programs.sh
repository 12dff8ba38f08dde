# programs.sh: random programs of all verbs and messages on the backend mpi, with 3 ranks, against a model.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/mpi_common.sh"

[ -z "${TUTTI_SKIP_PYTHON:-}" ] || skip "$TUTTI_SKIP_PYTHON"
ls "$source_folder"/python/tutti/_native*.so >/dev/null 2>&1 || skip "the Python module is not built"
if [ "${TUTTI_SOAK:-0}" = 1 ]; then count=500; else count=5; fi
export PYTHONPATH=$source_folder/python
run programs "${launch[@]}" -n 3 "${TUTTI_PYTHON:-$source_folder/.venv/bin/python}" "$source_folder/tests/programs/rank.py" \
  --programs "$count" --first "$TUTTI_SEED"
