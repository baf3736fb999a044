// Whether a child of fork() may start threads.
// Called by tests with such threads.
// Must not know: what they do.
#pragma once

#ifdef __has_feature
#define SK_HAS_FEATURE __has_feature
#else
#define SK_HAS_FEATURE(name) 0
#endif

namespace skillet::testing {

// ThreadSanitizer ends such a process; with AddressSanitizer it may wait for memory that a thread of the parent had
// locked.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || SK_HAS_FEATURE(thread_sanitizer) || \
    SK_HAS_FEATURE(address_sanitizer)
constexpr bool kChildrenMayHaveThreads = false;
#else
constexpr bool kChildrenMayHaveThreads = true;
#endif

}  // namespace skillet::testing
