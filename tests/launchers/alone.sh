# alone.sh: a process that nobody launched.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

run alone "$where_am_i"
expect_world alone 1 'local 0 of 1, node 0 of 1; alone: a group of one'
[ ! -e "$HOME/.config" ] || fail "a process alone needs no key file"
