# doctor.sh: one page, one JSON object, and a status that says whether init would work.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

expect_status 0 doctor
expect_quiet
for part in 'Tutti 0.' 'vectors' 'caches' 'limits' 'memfd' 'peer memory' 'clock' 'used between hosts' 'native' 'NumPy' 'alone: rank 0 of 1' \
  'built-in cost model' 'Nothing stands in the way'; do
  expect_out "$part"
done
[ "$(wc -l <"$folder/out")" -le 45 ] || fail 'more than a screen'
[ ! -e "$HOME/.config" ] || fail 'a doctor makes no key file'
grep -q "$(printf '\033')" "$folder/out" && fail 'colour, though NO_COLOR is set'

expect_status 0 doctor --json
python3 -c 'import json, sys; facts = json.load(open(sys.argv[1])); assert facts["machine"]["threads"] > 0 and not facts["problems"]' \
  "$folder/out" || fail 'not the JSON that was expected'

NO_COLOR= FORCE_COLOR=1 expect_status 0 doctor
grep -q "$(printf '\033')" "$folder/out" || fail 'no colour, though FORCE_COLOR is set'

# What would make init fail.
RANK=1 expect_status 1 doctor
expect_out '✗ launcher'
expect_out 'WORLD_SIZE'
TUTTI_TABLE=$folder/none expect_status 1 doctor
expect_out "✗ table        TUTTI_TABLE=$folder/none: the file cannot be read"
TUTTI_INTERFACE=nosuch9 expect_status 1 doctor
expect_out "TUTTI_INTERFACE='nosuch9'"

# A job as a launcher would describe it; the secret is named and not shown.
secret=$(printf 'ab%.0s' {1..32})
RANK=2 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=2345 TUTTI_SECRET=$secret expect_status 0 doctor
expect_out 'by hand: rank 2 of 4'
expect_out 'rank 0 listens at 127.0.0.1:2345'
grep -q "$secret" "$folder/out" && fail 'the secret was printed'
exit 0
