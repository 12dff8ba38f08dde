# ucx_common.sh: ranks over UCX. Sourced, with the programs as the script's arguments.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/../launchers/common.sh"

ranks_program=$where_am_i contract_ranks=$(realpath "$2") tuttirun=$(realpath "$3") tutti=$(realpath "$4")
[ -z "${TUTTI_SKIP_UCX:-}" ] || skip "$TUTTI_SKIP_UCX"
export TUTTI_SEED=${TUTTI_SEED:-$RANDOM} UCX_NET_DEVICES=lo UCX_WARN_UNUSED_ENV_VARS=n
unset UCX_TLS TUTTI_LINK TUTTI_BACKEND

# over TRANSPORTS NAME COUNT COMMAND…: all ranks must succeed.
over() {
  local transports=$1 name=$2 count=$3
  shift 3
  UCX_TLS=$transports run "$name" "$tuttirun" -n "$count" -B ucx --timeout 100s "$@"
}
