# output.sh: no line is torn, lost or out of order; files, --tee, --quiet, --no-prefix, standard input. [RANKS LINES]
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

# Ranks that write as fast as they can, in writes that end anywhere: so many ranks, so many lines of about 53 bytes. The
# limit on memory is less than what 64 ranks of 10 MB write.
ranks=${2:-16} lines=${3:-20000}
ulimit -v 524288
launch many 0 -n $ranks bash -c "seq -f \"rank \$RANK line %.0f of a text of some length\" $lines"
[ "$(wc -l <"$folder/many.out")" = $((ranks * lines)) ] || fail "many: lines were lost"
# Each line has its own rank before it, and the numbers of each rank come in order.
awk -v lines=$lines '{ rank = substr($1, 2, length($1) - 2) }
  $2 != "rank" || $3 != rank || $5 != ++count[rank] || NF != 11 { print "torn or out of order: " $0; exit 1 }
  END { for (rank in count) if (count[rank] != lines) exit 1 }' "$folder/many.out" >"$folder/many.err" || fail "many: see many.err"

# A line without an end, an empty line, zero bytes in a line.
launch odd 0 -n 1 printf 'a\n\nb\0c\nno end'
[ "$(tr '\0' '0' <"$folder/odd.out")" = "$(printf '[0] a\n[0] \n[0] b0c\n[0] no end')" ] || fail "odd lines were not passed on"

# A line of 3 MiB is shown in pieces of 1 MiB, marked; the file has it in one.
launch long 0 -n 1 --log-dir "$folder/long" --tee bash -c 'head -c 3145728 /dev/zero | tr "\0" x; echo'
[ "$(tr -d 'x' <"$folder/long.out")" = "$(printf '[0] \n[0]+\n[0]+')" ] || fail "long: $(tr -d 'x' <"$folder/long.out")"
[ "$(wc -lc <"$folder/long/rank-0.log" | xargs)" = '1 3145729' ] || fail "the file has not got the line in one piece"

say='echo out $RANK; echo err $RANK >&2'
launch logged 0 -n 2 --log-dir "$folder/logs/deep" bash -c "$say"
[ ! -s "$folder/logged.out" ] && [ ! -s "$folder/logged.err" ] || fail "--log-dir alone shows nothing"
[ "$(sort "$folder/logs/deep/rank-1.log" | xargs)" = 'err 1 out 1' ] || fail "the file of rank 1 is not complete"

# A link that somebody left in the place of a log file is not followed, nor is a pipe waited for.
mkdir "$folder/trap"
echo precious >"$folder/precious"
ln -s ../precious "$folder/trap/rank-1.log"
launch link 2 -n 2 --log-dir "$folder/trap" bash -c "$say"
expect_error link 'rank-1.log: it is a symbolic link'
[ "$(cat "$folder/precious")" = precious ] || fail "--log-dir wrote through a link"
rm "$folder/trap/rank-1.log"
mkfifo "$folder/trap/rank-1.log"
launch pipe 2 -n 2 --log-dir "$folder/trap" bash -c "$say"
ln -s "$folder/logs" "$folder/own"
launch own 0 -n 2 --log-dir "$folder/own" bash -c "$say"    # a link of the user's own is
if [ "$(id -u)" = 0 ]; then
  chown -h 12345 "$folder/own"
  launch planted 2 -n 2 --log-dir "$folder/own" bash -c "$say"
  expect_error planted 'symbolic link that user 12345 made'
  launch behind 2 -n 2 --log-dir "$folder/own/new" bash -c "$say"
  [ ! -e "$folder/logs/new" ] || fail "--log-dir made a folder behind somebody's link"
fi

launch tee 0 -n 2 --log-dir "$folder/logs" --tee bash -c "$say"
expect tee 2 '^\[[01]\] out [01]$'
expect_error tee '^\[1\] err 1$'
launch quiet 3 -n 2 --quiet bash -c "$say; exit 3"
[ ! -s "$folder/quiet.out" ] || fail "--quiet is not quiet"
expect_error quiet '^\[[01]\] out [01]$'   # the last lines of the one that failed
launch bare 0 -n 2 --no-prefix bash -c "$say"
expect bare 2 '^out [01]$'

# Standard input is rank 0's; the others have none.
printf 'one\ntwo\n' | launch input 0 -n 2 cat
[ "$(cat "$folder/input.out")" = "$(printf '[0] one\n[0] two')" ] || fail "standard input did not reach rank 0, or not only"

# The reader of our output goes away: the job ends and says why.
{ timeout -k 5 60 "$tuttirun" -n 2 yes 2>"$folder/gone.err" || echo $? >"$folder/gone.status"; } | head -n 3 >"$folder/gone.out"
[ "$(cat "$folder/gone.status")" = 141 ] || fail "output that nobody reads: exit $(cat "$folder/gone.status")"
expect_last gone 'standard output cannot be written: Broken pipe'

# A disk that is full.
if [ -e /dev/full ]; then
  status=0
  timeout -k 5 60 "$tuttirun" -n 1 bash -c 'echo text; exec sleep 300' 2>"$folder/full.err" >/dev/full || status=$?
  [ "$status" = 1 ] || fail "a full disk: exit $status"
  expect_last full 'standard output cannot be written: No space left on device'
fi
