// old_nccl.cpp: a library that says it is NCCL, of the version in TUTTI_TEST_NCCL_VERSION, and has nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  const char* const text = std::getenv("TUTTI_TEST_NCCL_VERSION");  // NOLINT(concurrency-mt-unsafe): one thread
  *version = text == nullptr ? 0 : std::atoi(text);                 // NOLINT(cert-err34-c): the test's own text
  return 0;
}
