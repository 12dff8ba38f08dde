# contract.sh: every verb × dtype × reduction × shape, with 1 to 5 ranks over UCX, against the scalar reference.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/ucx_common.sh"

if [ "${TUTTI_SOAK:-0}" = 1 ]; then cases=2000; else cases=40; fi
for size in 1 2 3 4 5; do over tcp,self "tcp-$size" "$size" "$contract_ranks" rank "$cases"; done
for size in 2 5; do over posix,cma,self "memory-$size" "$size" "$contract_ranks" rank "$cases"; done

# Only the messages through UCX: collectives of one host stay in shared memory.
TUTTI_LINK=ucx run link "$tuttirun" -n 2 "$contract_ranks" rank "$cases"

# Random programs of all verbs and messages, against a model.
python=${TUTTI_PYTHON:-$source_folder/.venv/bin/python}
if [ -z "${TUTTI_SKIP_PYTHON:-}" ] && ls "$source_folder"/python/tutti/_native*.so >/dev/null 2>&1; then
  if [ "${TUTTI_SOAK:-0}" = 1 ]; then programs=500; else programs=5; fi
  for transports in tcp,self posix,cma,self; do
    over "$transports" "programs-$transports" 3 "$python" "$source_folder/tests/programs/rank.py" --programs "$programs" --first "$TUTTI_SEED"
  done
fi
