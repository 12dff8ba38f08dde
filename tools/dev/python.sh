# python.sh: the Python tests: inside 1, 2, 3 and 4 ranks, and those with processes of their own.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # the other files' variables

python_ranks=(1 2 3 4)
python_ranks_sample=(2 3)  # in a run of all stages; ./dev test python runs all
if [[ -z ${TUTTI_SOAK:-} ]]; then python_seconds=900 test_seconds=120; else python_seconds=3600 test_seconds=900; fi

run_pytest() {  # report-name launcher… (pytest's arguments come after --)
  local report=build/log/$1 launcher=() status=0
  shift
  while [[ $1 != -- ]]; do launcher+=("$1"); shift; done
  shift
  rm -f "$report"-*.xml
  export_skips
  PYTHONPATH=$PWD/python "${launcher[@]}" "$TUTTI_PYTHON" -m pytest -q -rfEs -o faulthandler_timeout="$test_seconds" \
    --junitxml="$report-{rank}.xml" "$@" || status=$?
  python3 tools/dev/count.py --junit "$report-0.xml" --notes "$stage_file.notes" >>"$stage_file.counts"
  return "$status"
}

# All files in one process per rank: most of the time would go into importing the frameworks again and again.
python_on_ranks() {  # number
  run_pytest "python-$1" build/release/src/launch/tuttirun -n "$1" --timeout "${python_seconds}s" -- \
    --ignore=tests/python/alone tests/python
}

python_alone() { run_pytest python-alone -- tests/python/alone; }

test_python() {
  local ranks
  if ! has_piece python; then
    stage python skip_stage python
    return
  fi
  ensure_built release python || return 0
  [[ -z ${runs_everything:-} ]] || python_ranks=("${python_ranks_sample[@]}")
  for ranks in "${python_ranks[@]}"; do stage "python, ranks: $ranks" python_on_ranks "$ranks" || true; done
  stage "python, processes" python_alone
}

# PyTorch's own tests of torch.distributed on our backend: long, and so only when asked for.
torch_suite_program=tests/torch_suite/run.py

test_torch_suite() {
  if [[ ! -f $torch_suite_program ]]; then stage torch-suite no_program "$torch_suite_program"; return; fi
  ! ensure_built release torch-suite || stage torch-suite run_torch_suite
}

run_torch_suite() {  # the program writes a JUnit report, and fails if a test has another outcome than docs/torch.md says
  local status=0
  export_skips
  PYTHONPATH=$PWD/python "$TUTTI_PYTHON" "$torch_suite_program" --junitxml "$stage_file.xml" || status=$?
  python3 tools/dev/count.py --junit "$stage_file.xml" --notes "$stage_file.notes" >>"$stage_file.counts"
  return "$status"
}
