# completion.sh: the script for bash completes words; those for the other shells are there.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

# What bash would offer for a line whose last word is being typed.
offers() {  # words…
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "_$1"
  printf '%s\n' "${COMPREPLY[@]}" >"$folder/out"
}

expect_status 0 completion bash
cp "$folder/out" "$folder/script"
source "$folder/script" || fail 'bash does not take its script'
offers tutti expl
expect_out explain
offers tutti explain all_r
expect_out all_reduce
offers tutti explain all_reduce --by
expect_out --bytes
offers tutti explain all_reduce --algorithm ri
expect_out ring
offers tutti run --nproc
expect_out --nproc-per-node
offers tuttirun --time
expect_out --timeout

expect_status 0 completion zsh
expect_out 'compdef _tutti tutti'
expect_status 0 completion fish
expect_out 'complete -c tuttirun'
