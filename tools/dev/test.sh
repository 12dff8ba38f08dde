# test.sh: the stages of ./dev test.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # the other files' variables

# A test that fails is run once more: machines that others share stall now and then. That it had to be is shown, counted, and
# from more than repeats_max on a failure of the whole run (closing_table).
run_ctest() {  # preset ctest-arguments…
  local preset=$1 status=0 report=$PWD/$stage_file.xml repeat=(--repeat until-pass:2)
  shift
  [[ " $* " != *" --repeat "* ]] || repeat=()
  rm -rf "$report" "build/$preset/gtest"
  export_skips
  fixed_addresses ctest --test-dir "build/$preset" --parallel "$jobs" --output-on-failure --no-tests=ignore \
    --output-junit "$report" "${repeat[@]}" "$@" || status=$?
  python3 tools/dev/count.py --junit "$report" --gtest "build/$preset/gtest" --notes "$stage_file.notes" \
    --log "$stage_file.log" >>"$stage_file.counts"
  if ((status == 0)) && [[ $(cat "$stage_file.counts") == "0 0 0 0" ]]; then
    note "this checkout has no such tests"
    return "$nothing_to_do"
  fi
  return "$status"
}

# Configures and builds once per run of this script, however many stages need it. A failure is shown once, too.
declare -A configured=() built=()
ensure_configured() {  # preset
  [[ -n ${configured[$1]:-} ]] || { if stage "configure $1" configure "$1"; then configured[$1]=ok; else configured[$1]=failed; fi; }
  [[ ${configured[$1]} == ok ]]
}

ensure_built() {  # preset stage [target]
  local what=$1${3:+ $3}
  if [[ -z ${built[$what]:-} ]]; then
    built[$what]=failed
    if ensure_configured "$1" && stage "build $what" build_target "$1" "${3:-all}"; then built[$what]=ok; fi
  fi
  [[ ${built[$what]} == ok ]] || { stage_not_run "$2" "the $what build failed"; return 1; }
}

test_cpp() {
  ensure_built release cpp || return 0
  begin_builds_beside
  stage cpp run_ctest release -LE "$labels_apart"
}

test_labelled() { ! ensure_built release "$1" || stage "$1" run_ctest release -L "^$1\$"; }

test_layer() {  # layer
  stage "configure release" configure release
  has_target release "check_$1" || give_up "this checkout has no layer $1"
  ! stage "build check_$1" build_target release "check_$1" || stage "$1" run_ctest release -R "^$1: "
}

# In a run of everything the sanitizers' builds begin when the release build is there, and get what the stages until their own leave
# of the processors. What is not there by then, or has failed, is built as in other runs, where it is shown.
builds_beside=''
begin_builds_beside() {
  [[ -n ${runs_everything:-} ]] || return 0
  set -m  # in a process group of its own, which is ended as a whole
  chrt --idle 0 ./dev --stage build_sanitized </dev/null >build/log/builds-beside.log 2>&1 &
  set +m
  builds_beside=$!
  trap end_builds_beside EXIT
}

end_builds_beside() {
  [[ -n $builds_beside ]] || return 0
  kill -- "-$builds_beside" 2>/dev/null || true
  wait "$builds_beside" || true
  builds_beside=''
}

build_sanitized() {
  trap 'exit 1' TERM  # only when ninja has ended, too: two of them must not work in one folder
  if has_piece clang; then configure asan && build_target asan "label_$labels_sanitized" label_fuzz || true; fi
  configure tsan && build_target tsan "label_$labels_sanitized"
}

test_sanitize() {
  local sanitizer
  end_builds_beside
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
  export UBSAN_OPTIONS=print_stacktrace=1
  export TSAN_OPTIONS=second_deadlock_stack=1
  for sanitizer in asan tsan; do
    if [[ $sanitizer == asan ]] && ! has_piece clang; then stage asan skip_stage clang; continue; fi
    ! ensure_built "$sanitizer" "$sanitizer" "label_$labels_sanitized" ||
      stage "$sanitizer" run_ctest "$sanitizer" -L "^$labels_sanitized\$" -LE "$labels_apart" || true
  done
}

run_one_fuzzer() {  # seconds program corpus
  local name work
  name=$(basename "$2")
  work=build/fuzz/corpus/$name
  mkdir -p "$work" build/fuzz/artifacts
  [[ ! -d $3 ]] || set -- "$@" "$3"
  echo "== $name"
  "$2" -max_total_time="$1" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/artifacts/$name-" "$work" "${@:4}"
}

# Waits for one of those that run side by side, one per core, and shows what it said.
end_a_fuzzer() {
  local ended status=0
  wait -n -p ended "${!running[@]}" || status=$?
  cat "build/fuzz/$(basename "${running[$ended]}").log"
  if ((status == 0)); then
    ((passed += 1))
  else
    ((failed += 1))
    note "$(basename "${running[$ended]}") failed: its input is in build/fuzz/artifacts"
  fi
  unset "running[$ended]"
}

run_fuzzers() {  # seconds each
  local program corpus passed=0 failed=0
  [[ -s build/asan/fuzzers.txt ]] || { note "this checkout has no fuzzers"; return "$nothing_to_do"; }
  mkdir -p build/fuzz
  local -A running=()
  while read -r program corpus; do
    while ((${#running[@]} >= jobs)); do end_a_fuzzer; done
    run_one_fuzzer "$1" "$program" "$corpus" >"build/fuzz/$(basename "$program").log" 2>&1 &
    running[$!]=$program
  done <build/asan/fuzzers.txt
  while ((${#running[@]} > 0)); do end_a_fuzzer; done
  count_tests "$passed" "$failed" 0
  ((failed == 0))
}

test_fuzz() {
  end_builds_beside
  if has_piece clang; then
    ! ensure_built asan fuzz label_fuzz || stage fuzz run_fuzzers "${1:-$fuzz_seconds}"
  else
    stage fuzz skip_stage clang
  fi
}

skip_stage() {  # piece
  note "skipped: $(sed -n "s/^$1\t//p" "$skips")"
  count_tests 0 0 1
}

run_counted() {  # program arguments…
  "$@"
  note "$(tail -n 1 "$stage_file.log")"
  count_tests 1 0 0
}

test_program() {  # stage target program arguments…
  local name=$1 target=$2
  shift 2
  ensure_built release "$name" || return 0
  if has_target release "$target"; then stage "$name" run_counted "$@"; else stage "$name" no_program "$target"; fi
}

no_program() {
  note "this checkout has no target $1"
  return "$nothing_to_do"
}

check_tidy() {
  python3 tools/tidy.py --build build/release
  count_tests 1 0 0
}

check_format_counted() {
  check_format
  count_tests 1 0 0
}

run_test_stage() {
  case $1 in
    cpp) test_cpp ;;
    sanitize) test_sanitize ;;
    fuzz) test_fuzz ;;
    install | launchers | hosts) test_labelled "$1" ;;
    docs) test_labelled docs || true; verb_site ;;
    python) test_python ;;
    torch-suite) test_torch_suite ;;
    prove) test_program prove "$prove_target" "$prove_program" --quick ;;  # ./dev prove and ./dev soak prove them all
    sim) test_program sim "$sim_target" "$sim_program" --seeds "$sim_seeds_sample" --first 1 ;;
    tidy) ! ensure_built release tidy || stage tidy check_tidy ;;
    format) if has_piece clang; then stage format check_format_counted; else stage format skip_stage clang; fi ;;
    *) test_layer "$1" ;;
  esac
}

# What must be there for a stage, beyond the core.
pieces_of() {
  case $1 in
    sanitize | fuzz | format) echo clang ;;
    cpp) echo eigen openmpi mpich ucx python torch ;;  # to be measured beside
    launchers) echo openmpi mpich openmpi5 mpich5 impi ucx pmix slurm python torch ray dask cluster ;;
    hosts) echo iproute2 iperf3 sshd ;;
    python) echo openmpi chromium "${python_pieces[@]}" ;;  # chromium: pages are looked at in it
    torch-suite) echo python torch ;;
  esac
}

verb_test() {
  local stages=("$@") wanted name
  ((${#stages[@]} > 0)) || { stages=("${test_stages[@]}"); runs_everything=1; }
  for name in "${stages[@]}"; do
    [[ " ${test_stages[*]} torch-suite " == *" $name "* ]] || grep -qxE "$name( (program|checks))?" cmake/layers.txt ||
      give_up "no test stage $name; there are: ${test_stages[*]}, torch-suite, and the layers of cmake/layers.txt"
  done
  stage "set up" set_up_core || { closing_table; return; }
  mapfile -t wanted < <(for name in "${stages[@]}"; do pieces_of "$name" | tr ' ' '\n'; done | sort -u)
  ((${#wanted[@]} == 0)) || stage "set up optional pieces" set_up_pieces "${wanted[@]}" || true
  for name in "${stages[@]}"; do run_test_stage "$name" || true; done
  closing_table
}

# All cases of the contract, and ranks killed again and again.
soak_contract() { TUTTI_SOAK=1 run_ctest release -R '^contract'; }
soak_lives() { export_skips; run_counted bash tests/lives/sample.sh 2000; }
soak_kills() { run_ctest release -R 'LostRank' --repeat until-fail:50; }

verb_soak() {
  stage "set up" set_up_core || { closing_table; return; }
  stage "set up optional pieces" set_up_pieces "${pieces[@]}" || true
  test_program prove "$prove_target" "$prove_program" || true
  test_program sim "$sim_target" "$sim_program" --seeds "$sim_seeds_all" --first 1 || true
  test_program mismatch mismatch_programs build/release/tests/mismatch/mismatch_programs --seeds 20000 --first 1 || true
  test_program messages message_programs build/release/tests/messages/message_programs --seeds 5000 --first 1 || true
  if ensure_built release contract; then
    stage contract soak_contract || true
    stage kills soak_kills || true
    ! has_piece python || stage lives soak_lives || true
  fi
  test_labelled soak || true
  TUTTI_SOAK=1 test_python || true
  test_fuzz "$fuzz_seconds_soak" || true
  closing_table
}
