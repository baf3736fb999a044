// Notes about the lists of buffers of each job in a submission, for kernel drivers with such lists.
// Called by code that builds such submissions: the recorder and the reader of recorded folders.
// Must not know: what is in the buffers.
#pragma once

#include "capture/capture.h"

namespace skillet::capture {

// A submission has one list of all its buffers, which hides that a job's list is empty. No plain submission has such a
// job.
inline void note_list(Submission& submission, size_t job, const char* list, size_t buffers) {
  if (buffers == 0) submission.parameters.push_back({fmt::format("{} of job {}", list, job), 0});
}

}  // namespace skillet::capture
