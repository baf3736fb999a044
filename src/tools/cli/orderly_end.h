// OrderlyEnd: lets a verb that runs jobs end by its normal path on a signal (Ctrl-C, SIGTERM, SIGHUP). What it has
// opened is closed in order, as kernels need it (docs/devices.md); then the signal takes its usual effect. A second
// signal ends the program at once. Called by the verbs, around all their work. Must not know: what a verb does.
#pragma once

#include <functional>

#include "tools/cli/verbs.h"

namespace skillet::tools {

class OrderlyEnd {
 public:
  OrderlyEnd();
  // Does not return after a signal.
  ~OrderlyEnd();
  OrderlyEnd(const OrderlyEnd&) = delete;
};
// `work` is all that the verb does.
void runs_jobs(const Verb& verb, Outcome& outcome, std::function<Result<void>()> work);

}  // namespace skillet::tools
