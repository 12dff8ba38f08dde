# status.sh: help is help, and every mistake has a clear message and status 2.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

expect_status 0 --help
expect_out 'explain'
expect_out 'tutti doctor'
expect_quiet
expect_status 0 --version
expect_out 'tutti 0.'
for command in doctor explain sim completion run; do
  expect_status 0 $command --help
  expect_out 'Examples'
done

expect_refusal 'a command is needed: run, doctor, explain'
expect_refusal 'no command exlpain; did you mean explain?' exlpain
expect_refusal 'no command frobnicate' frobnicate
expect_refusal 'no option --hepl; did you mean --help?' --hepl
expect_refusal 'no option --jsn; did you mean --json?' doctor --jsn
expect_refusal 'no option --bites; did you mean --bytes?' explain all_reduce --bites 3
expect_refusal 'one word too many: twice' doctor twice
expect_refusal 'there is no completion for tcsh' completion tcsh
