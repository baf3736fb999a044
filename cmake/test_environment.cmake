# What every test runs with. Read by CTest itself.
# Emulated kernel drivers end a process that does what a stock kernel does not survive.
if(NOT DEFINED ENV{SKILLET_VIRTUAL_MISUSE})
  set(ENV{SKILLET_VIRTUAL_MISUSE} abort)
endif()
# Most tests want to see the NPU: their networks are too small for one to be predicted to be faster.
if(NOT DEFINED ENV{SKILLET_PARTITION})
  set(ENV{SKILLET_PARTITION} all)
endif()
# ThreadSanitizer sleeps for a second at the end of each process; a test measures how long that takes.
if(NOT DEFINED ENV{TSAN_OPTIONS})
  set(ENV{TSAN_OPTIONS} atexit_sleep_ms=0)
endif()
