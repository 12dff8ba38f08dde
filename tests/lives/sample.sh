# sample.sh: random lives, with the Python that has the pinned packages: sample.sh LIVES [FIRST]
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
if [ -n "${TUTTI_SKIP_PYTHON:-}" ]; then echo "SKIPPED: $TUTTI_SKIP_PYTHON"; exit 77; fi
exec "${TUTTI_PYTHON:-$here/../../.venv/bin/python}" "$here/lives.py" --lives "$1" --first "${2:-1}"
