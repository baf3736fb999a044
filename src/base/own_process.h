// OwnProcess: which process something belongs to. After fork() the child has a copy of everything, but files, mappings
// and what a kernel knows of them are its parent's still, and threads and the locks that they held are not there.
// Called by what is of one process only: open devices.
// Must not know: what that is.
#pragma once

#include <cstdint>

namespace skillet {

class OwnProcess {
 public:
  OwnProcess();  // this one
  // False in a child that was forked since. Costs no system call.
  bool is_here() const;

 private:
  uint64_t forks_;
};

}  // namespace skillet
