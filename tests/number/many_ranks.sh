# many_ranks.sh: real processes in number, under tuttirun, again and again: none of the runs may fail.
# SPDX-License-Identifier: Apache-2.0
#
#   many_ranks.sh TUTTIRUN NUMBER_RANKS BACKEND RANKS TIMES MODE [finalize]
source "$(dirname "${BASH_SOURCE[0]}")/../launchers/common.sh"
tuttirun=$where_am_i program=$(realpath "$2") backend=$3 ranks=$4 times=$5
shift 5
unset TUTTI_BACKEND TUTTI_TIMEOUT
ulimit -n "$(ulimit -Hn)"

failed=0
for ((run = 1; run <= times; ++run)); do
  begin=$EPOCHREALTIME status=0
  timeout -k 10 300 "$tuttirun" -n "$ranks" -B "$backend" --timeout 240s "$program" "$@" \
    >"$folder/run.out" 2>"$folder/run.err" || status=$?
  took=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  lines=$(wc -l <"$folder/run.err")
  echo "run $run of $times: status $status, $took ms, $lines lines of stderr"
  # Few lines, however many ranks complain: the first and the last ones tell.
  if [ "$lines" -gt 5 ]; then sed -i -e "3,$((lines - 3))d" "$folder/run.err"; fi
  cut -c1-400 "$folder/run.err"
  if [ "$status" != 0 ]; then failed=$((failed + 1)); fi
done
echo "$ranks ranks, $backend, $*: $failed of $times runs failed"
[ "$failed" = 0 ] || exit 1
