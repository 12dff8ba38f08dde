// sanitizers.hpp: which sanitizer this is compiled with; gcc and clang say it in different ways.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__has_feature)
#define TUTTI_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#define TUTTI_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#if defined(__SANITIZE_ADDRESS__)
#define TUTTI_ADDRESS_SANITIZER 1
#else
#define TUTTI_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__)
#define TUTTI_THREAD_SANITIZER 1
#else
#define TUTTI_THREAD_SANITIZER 0
#endif
#endif
