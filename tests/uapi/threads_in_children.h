// Whether a child of fork() may start threads.
// Called by tests of it.
// Must not know: what they do.
#pragma once

#ifdef __has_feature
#define SK_HAS_FEATURE __has_feature
#else
#define SK_HAS_FEATURE(name) 0
#endif

namespace skillet::testing {

#if defined(__SANITIZE_THREAD__) || SK_HAS_FEATURE(thread_sanitizer)
constexpr bool kChildrenMayHaveThreads = false;  // ThreadSanitizer ends them
#else
constexpr bool kChildrenMayHaveThreads = true;
#endif

}  // namespace skillet::testing
