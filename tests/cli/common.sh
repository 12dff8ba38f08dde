# common.sh: running `tutti` and looking at what comes out; sourced by the tests beside it.
# SPDX-License-Identifier: Apache-2.0
set -u
tutti=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME=$folder NO_COLOR=1 FORCE_COLOR=
unset TUTTI_TABLE TUTTI_INTERFACE TUTTI_SECRET TUTTI_STORE RANK WORLD_SIZE MASTER_ADDR MASTER_PORT

fail() {
  printf 'FAILED: %s\n' "$*"
  sed 's/^/  out: /' "$folder/out"
  sed 's/^/  err: /' "$folder/err"
  exit 1
}

# Runs tutti with the arguments that follow and expects this exit status.
expect_status() {  # status arguments…
  local wanted=$1 got=0
  shift
  "$tutti" "$@" >"$folder/out" 2>"$folder/err" </dev/null || got=$?
  [ "$got" -eq "$wanted" ] || fail "tutti $*: status $got, not $wanted"
}

expect_out() { grep -qF -- "$1" "$folder/out" || fail "standard output has no: $1"; }
expect_err() { grep -qF -- "$1" "$folder/err" || fail "standard error has no: $1"; }
expect_quiet() { [ ! -s "$folder/err" ] || fail "standard error is not empty"; }

# A mistake of the caller: status 2, the reason, nothing on standard output.
expect_refusal() {  # reason arguments…
  local reason=$1
  shift
  expect_status 2 "$@"
  expect_err "$reason"
  [ ! -s "$folder/out" ] || fail "tutti $*: refused, and yet something was printed"
}
