// OwnProcess: the process that an object belongs to. After fork() the child has a copy of the memory, but files,
// mappings and kernel state still belong to its parent, and other threads do not exist, while their locks remain held.
// Called by code whose objects belong to one process: open devices.
// Must not know: what the objects are.
#pragma once

#include <cstdint>

namespace skillet {

class OwnProcess {
 public:
  OwnProcess() : number_(number()) {}  // the current one
  // False in a child that was forked later.
  bool is_here() const { return number_ == number(); }
  // Number of this process: not 0, and different from all its ancestors'. Needs no system call if the kernel can clear
  // a page for a child (Linux 4.14), and no handler of fork().
  static uint64_t number();

 private:
  uint64_t number_;
};

}  // namespace skillet
