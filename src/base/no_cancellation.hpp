// no_cancellation.hpp: a part of a thread's work that pthread_cancel does not end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace tutti {

/// A cancelled thread is unwound from the system call it is in, through destructors and handlers that must not let an exception
/// pass. Inside the library cancellation waits: it happens at the thread's next cancellation point after the call.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = 0;
};

}  // namespace tutti
