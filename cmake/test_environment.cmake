# Environment of every test. Read by CTest itself.
# Emulated kernel drivers end a process after a call that a stock kernel does not survive.
if(NOT DEFINED ENV{SKILLET_VIRTUAL_MISUSE})
  set(ENV{SKILLET_VIRTUAL_MISUSE} abort)
endif()
# Most tests need the NPU, but their networks are too small for the prediction to prefer it.
if(NOT DEFINED ENV{SKILLET_PARTITION})
  set(ENV{SKILLET_PARTITION} all)
endif()
# By default ThreadSanitizer sleeps for a second at the end of each process, and a test measures how long that takes.
if(NOT DEFINED ENV{TSAN_OPTIONS})
  set(ENV{TSAN_OPTIONS} atexit_sleep_ms=0)
endif()
