// with_fault(): runs code in which one call that reads, writes or changes a file fails. Replaces these calls in the
// program: link file_faults.cpp. Called by tests, in one thread. Must not know: which code makes the calls.
#pragma once

#include <functional>
#include <string>

namespace skillet::testing {

enum class FileFault {
  interrupted,  // a read or write returns EINTR; nothing is done
  one_byte,     // a read or write transfers one byte
  end_of_file,  // a read returns nothing
  fails,        // any call returns EIO; nothing is done
};

// Faults call number `at`, counted from 0, among those that the fault applies to. Returns its name; empty: there were
// fewer calls.
std::string with_fault(int at, FileFault fault, const std::function<void()>& work);

}  // namespace skillet::testing
