# log_lines.sh: what TUTTI_LOG=info and debug tell about rendezvous, links, backends and choices, each with its reason.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"
tuttirun=$(realpath "$2")

# told NAME PATTERN: some rank says so.
told() { grep -qE "$2" "$folder/$1.err" || fail "$1: no line like '$2' in: $(cat "$folder/$1.err")"; }
TUTTI_LOG=info run info "$tuttirun" -n 2 "$where_am_i" refuse shm
told info '\[0\].* info: all 2 ranks met at '
told info 'info: 2 ranks of this host share memory, messages between them go through rings'
told info 'info: messages do not go over ucx, because there is one host only'
told info 'info: the world: backend shm, because all members share the memory of one host'
! grep -q ' debug: ' "$folder/info.err" || fail "info tells what debug asks for"

TUTTI_LOG=debug run debug "$tuttirun" -n 2 "$where_am_i" refuse shm
told debug 'debug: the world: all_reduce of float32 × 501 goes by backend shm, .* over shared memory'
TUTTI_LOG=debug TUTTI_BACKEND=native run native "$tuttirun" -n 2 "$where_am_i" refuse native
told native 'info: the world: backend native, because the job asks for it'
told native 'debug: the world: all_reduce of float32 × 501 goes by backend native, [a-z_]+ over tcp: the cheapest by the cost model'
TUTTI_LOG=warn run warn "$tuttirun" -n 2 "$where_am_i" refuse shm
! grep -qE ' (info|debug): ' "$folder/warn.err" || fail "warn tells more than warnings"
