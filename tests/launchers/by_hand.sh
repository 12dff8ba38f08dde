# by_hand.sh: ranks started in two shells, with and without a secret, by env://, tcp:// and file://.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

# two NAME ARGUMENTS…: rank 1 in the background, rank 0 in front, in the environment as it is.
two() {
  local name=$1
  shift
  RANK=1 WORLD_SIZE=2 "$where_am_i" --timeout 30 "$@" >"$folder/$name.1.out" 2>"$folder/$name.1.err" &
  local other=$!
  started+=("$other")
  RANK=0 WORLD_SIZE=2 "$where_am_i" --timeout 30 "$@" >"$folder/$name.out" 2>"$folder/$name.err" || fail "$name: rank 0"
  wait "$other" || fail "$name: rank 1"
  cat "$folder/$name.1.out" >>"$folder/$name.out"
}

export MASTER_ADDR=127.0.0.1 MASTER_PORT
MASTER_PORT=$(free_port)
two env
expect_world env 2 "by hand: met at rank 0's store at 127.0.0.1:$MASTER_PORT; secret from the key file $HOME/.config/tutti/key"
[ "$(stat -c %a "$HOME/.config/tutti/key")" = 600 ] || fail "the key file is not private"

two again --times 3   # the port is free again at once
expect again 6 '^rank'

MASTER_ADDR=localhost two name
expect_world name 2 'by hand: '

TUTTI_SECRET=$(python3 -c 'import secrets; print(secrets.token_hex(32))') two secret
expect_world secret 2 'secret from TUTTI_SECRET'

two tcp --method "tcp://127.0.0.1:$(free_port)"
expect_world tcp 2 "met at rank 0's store"

two file --method "file://$folder/meeting"
expect_world file 2 "found by a record in $folder/meeting"
[ ! -e "$folder/meeting" ] || fail "the record was left"

# A job that was killed leaves its record; the next one does not mind, even if its rank 1 comes first.
"$where_am_i" --method "file://$folder/meeting" --rank 0 --size 2 >/dev/null 2>&1 &
killed=$!
started+=("$killed")
for _ in $(seq 100); do [ -e "$folder/meeting" ] && break; sleep 0.05; done
kill -9 "$killed"
wait "$killed" 2>/dev/null || true
[ -e "$folder/meeting" ] || fail "there is no stale record to try"
two stale --method "file://$folder/meeting"
expect_world stale 2 'found by a record'

# A full disk, where this user may mount one.
mkdir "$folder/small"
full='mount -t tmpfs -o size=4k,nr_inodes=8 small "$1" && head -c 8192 /dev/zero >"$1/filler" 2>/dev/null
  "$2" --method "file://$1/meeting" --rank 0 --size 2 --timeout 5'
if unshare -rm true 2>/dev/null; then
  if unshare -rm sh -c "$full" sh "$folder/small" "$where_am_i" 2>"$folder/full.err"; then fail "a full disk was not noticed"; fi
  expect_error full 'cannot (make|write) the meeting file .*: No space left on device'
fi
