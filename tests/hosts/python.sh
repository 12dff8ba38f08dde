# python.sh: the tests of Python's verbs and of torch's backend, on four hosts with two ranks each; training there loses what it loses on one.
# SPDX-License-Identifier: Apache-2.0
#
#   python.sh TUTTIRUN PYTHON [FILE…]     pytest's arguments; a sample if there are none
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
python=$2
shift 2
[ $# -gt 0 ] || set -- tests/python/test_numpy.py tests/python/test_torch_distributed.py
"$python" -c 'import torch, pytest' 2>/dev/null || skip "$python has no torch and pytest"
make_hosts a b c d
export PYTHONPATH=$source_folder/python OMP_NUM_THREADS=1 TUTTI_TESTS_MEET_AT=a:7777
cd "$source_folder"
four=a:2,b:2,c:2,d:2

losses_of() {  # NAME TUTTIRUN'S ARGUMENTS…
  local name=$1
  shift
  on_head timeout -k 5 300 "$tuttirun" --ssh "$ssh_words" "$@" --python "$python" tests/hosts/train.py >"$folder/$name.out" 2>"$folder/$name.err" </dev/null ||
    fail "$name: exit $?"
  sed -n 's/.*step \([0-9]*\) loss \(.*\)/\1 \2/p' "$folder/$name.out"
}
here=$(losses_of one -n 8)
there=$(losses_of four -H $four)
[ "$(wc -l <<<"$here")" = 20 ] || fail "one: no losses"
[ "$here" = "$there" ] || fail "the losses on four hosts are not those on one: $(diff <(echo "$here") <(echo "$there"))"
sealed=$(TUTTI_TLS=1 losses_of sealed -H $four)
[ "$there" = "$sealed" ] || fail "the losses under TLS are others"

status=0
on_head timeout -k 5 1500 "$tuttirun" --ssh "$ssh_words" --timeout 1400s -H $four --python "$python" -m pytest -q -p no:cacheprovider "$@" \
  >"$folder/tests.out" 2>"$folder/tests.err" </dev/null || status=$?
[ "$status" = 0 ] || fail "tests: status $status"
grep -a '^\[a:0\].* passed' "$folder/tests.out"
expect_hosts_empty_soon tests
echo "python: all well"
