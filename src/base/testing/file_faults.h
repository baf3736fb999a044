// with_fault(): work of which one call that reads, writes or changes a file goes otherwise. Takes the place of those
// calls in the program: link file_faults.cpp. Called by tests, in one thread. Must not know: whose calls they are.
#pragma once

#include <functional>
#include <string>

namespace skillet::testing {

enum class FileFault {
  interrupted,  // EINTR of what reads or writes; nothing is done
  one_byte,     // what reads or writes does one byte
  end_of_file,  // nothing is left to read
  fails,        // EIO of any of them; nothing is done
};

// The call number `at`, counted from 0, among those that can go that way. Its name; empty: there were not so many.
std::string with_fault(int at, FileFault fault, const std::function<void()>& work);

}  // namespace skillet::testing
