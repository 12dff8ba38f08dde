# stages.sh: one line per stage with its time, its log on failure, and the table at the end.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# A stage is a function. It runs in a process of its own, because `set -e` does nothing in a function that is called in
# a condition; its output goes to build/log/STAGE.log. It may say how many tests it ran (count_tests) and why there was
# nothing to do (note). Exit status 77 means: nothing to do.

stage_names=() stage_times=() stage_results=()
total_passed=0 total_failed=0 total_skipped=0 total_repeated=0
repeats_max=2  # more tests than this that pass only when run again are a failure
nothing_to_do=77
stage_file=${TUTTI_STAGE_FILE:-build/log/dev}

give_up() {
  echo "dev: $*" >&2
  exit 1
}

now_ms() { echo "$((${EPOCHREALTIME//[.,]/} / 1000))"; }

seconds() { printf '%d.%d s' "$(($1 / 1000))" "$(($1 % 1000 / 100))"; }

# For the functions that run inside a stage.
count_tests() { echo "$1 $2 $3 ${4:-0}" >>"$stage_file.counts"; }  # passed failed skipped [repeated]
note() { echo "$*" >>"$stage_file.notes"; }

stage() {  # name function arguments…
  local name=$1 begin status passed=0 failed=0 skipped=0 repeated=0 result p f s r
  shift
  stage_file=build/log/${name// /-}
  rm -f "$stage_file".{counts,notes}
  printf '%-34s' "$name"
  begin=$(now_ms)
  status=0
  TUTTI_STAGE_FILE=$stage_file ./dev --stage "$@" </dev/null >"$stage_file.log" 2>&1 || status=$?

  if [[ -f $stage_file.counts ]]; then
    while read -r p f s r; do ((passed += p, failed += f, skipped += s, repeated += r)) || true; done <"$stage_file.counts"
  fi
  if ((status != 0 && status != nothing_to_do && failed == 0)); then failed=1; fi
  case $status in
    0) result=ok ;;
    "$nothing_to_do") result=none ;;
    *) result=FAILED ;;
  esac
  ((total_passed += passed, total_failed += failed, total_skipped += skipped, total_repeated += repeated)) || true
  stage_names+=("$name")
  stage_times+=("$(seconds $(($(now_ms) - begin)))")
  ((passed + failed + skipped == 0)) || result+=$(printf '   %d passed, %d failed, %d skipped' "$passed" "$failed" "$skipped")
  ((repeated == 0)) || result+=", $repeated of them only when run again"
  stage_results+=("$result")
  printf '%10s   %s\n' "${stage_times[-1]}" "$result"
  [[ ! -f $stage_file.notes ]] || sed 's/^/    /' "$stage_file.notes"
  ((status != 0 && status != nothing_to_do)) || return 0
  grep -E '(^|[^a-z])(error|Error|undefined reference)[: ]' "$stage_file.log" | head -n 20 || true
  echo "---- the end of $stage_file.log"
  tail -n "${TUTTI_LOG_LINES:-40}" "$stage_file.log"
  echo "----"
  return 1
}

# A stage that could not run because what it needs failed.
stage_not_run() {  # name reason
  printf '%-34s%10s   FAILED   not run: %s\n' "$1" - "$2"
  stage_names+=("$1")
  stage_times+=(-)
  stage_results+=("FAILED   not run: $2")
  ((total_failed += 1))
}

closing_table() {
  local i
  printf '\n%-34s%10s   %s\n' stage time result
  for i in "${!stage_names[@]}"; do
    printf '%-34s%10s   %s\n' "${stage_names[i]}" "${stage_times[i]}" "${stage_results[i]}"
  done
  printf '%-34s%10s\n\n' total "$(seconds $((SECONDS * 1000)))"
  if ((total_skipped > 0)) && [[ -n ${TUTTI_REQUIRE_ALL:-} ]]; then
    echo "TUTTI_REQUIRE_ALL is set: the skipped tests count as a failure"
    ((total_failed += 1))
  fi
  ((total_repeated == 0)) || echo "$total_repeated passed only when run again"
  if ((total_repeated > repeats_max)); then
    echo "more than $repeats_max tests had to be run again: that counts as a failure"
    ((total_failed += 1))
  fi
  echo "$total_passed passed, $total_failed failed, $total_skipped skipped"
  ((total_failed == 0))
}
