// What a submission says of the lists of buffers that come with each of its jobs, where the kernel has such lists.
// Called by code that makes submissions of them: the recorder and the reader of recorded folders.
// Must not know: what is in the buffers.
#pragma once

#include "capture/capture.h"

namespace skillet::capture {

// A submission has one list of its buffers, so that a job without any would not be seen. No plain one has such a job.
inline void note_list(Submission& submission, size_t job, const char* list, size_t buffers) {
  if (buffers == 0) submission.parameters.push_back({fmt::format("{} of job {}", list, job), 0});
}

}  // namespace skillet::capture
