// main.cpp: tuttirun.
// SPDX-License-Identifier: Apache-2.0
#include "launch/run.hpp"

int main(int count, char** texts) {
  return tutti::launch::run_main("tuttirun", {texts + (count > 0 ? 1 : 0), texts + count});
}
