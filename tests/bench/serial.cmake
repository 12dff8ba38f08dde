# serial.cmake: the tests that were found in bench_run_test run alone.
# SPDX-License-Identifier: Apache-2.0
if(bench_run_test_TESTS)
  set_tests_properties(${bench_run_test_TESTS} PROPERTIES RUN_SERIAL TRUE)
endif()
