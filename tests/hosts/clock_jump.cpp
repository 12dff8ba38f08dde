// clock_jump.cpp: preloaded, it puts the clock of the day an hour forward once the file that CLOCK_JUMP names is there.
// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

long seconds_ahead() {
  const char* const file = std::getenv("CLOCK_JUMP");
  return file != nullptr && access(file, F_OK) == 0 ? 3600 : 0;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += seconds_ahead();
  return result;
}

extern "C" int gettimeofday(timeval* now, void*) {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  *now = {.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
  return 0;
}

extern "C" time_t time(time_t* now) {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  if (now != nullptr) *now = time.tv_sec;
  return time.tv_sec;
}
