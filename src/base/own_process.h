// OwnProcess: which process something belongs to. After fork() the child has a copy of everything, but files, mappings
// and what a kernel knows of them are its parent's still, and threads and the locks that they held are not there.
// Called by what is of one process only: open devices.
// Must not know: what that is.
#pragma once

#include <cstdint>

namespace skillet {

class OwnProcess {
 public:
  OwnProcess() : number_(number()) {}  // this one
  // False in a child that was forked since.
  bool is_here() const { return number_ == number(); }
  // Of this process: neither 0 nor that of a process that it descends from. No system call, where the kernel can clear
  // a page for a child (Linux 4.14); no handler of fork() is installed.
  static uint64_t number();

 private:
  uint64_t number_;
};

}  // namespace skillet
