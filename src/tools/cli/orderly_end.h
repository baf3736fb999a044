// OrderlyEnd: a verb that runs jobs ends by its normal path when a signal asks it to (Ctrl-C, SIGTERM, SIGHUP): what it
// has opened is closed in order, as kernels want it (docs/devices.md), then the signal does what it always does. A
// second one ends the program at once. Called by the verbs, around all that they do. Must not know: what a verb does.
#pragma once

namespace skillet::tools {

class OrderlyEnd {
 public:
  OrderlyEnd();
  // Does not return after a signal.
  ~OrderlyEnd();
  OrderlyEnd(const OrderlyEnd&) = delete;
};

}  // namespace skillet::tools
