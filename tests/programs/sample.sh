# sample.sh: random programs of correct calls: sample.sh TUTTIRUN PROGRAMS "SIZES" "BACKENDS" [FIRST]
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
if [ -n "${TUTTI_SKIP_PYTHON:-}" ]; then echo "SKIPPED: $TUTTI_SKIP_PYTHON"; exit 77; fi
tuttirun=$1 programs=$2 sizes=$3 backends=$4 first=${5:-1}
for backend in $backends; do
  for size in $sizes; do
    "$tuttirun" -B "$backend" -n "$size" --timeout 1200s "${TUTTI_PYTHON:-$here/../../.venv/bin/python}" "$here/rank.py" \
      --programs "$programs" --first "$first"
  done
done
