// JobStream: the commands of an operation that Vela made, as a job for Linux's driver.
// Called by support.cpp and program.cpp.
// Must not know: buffers of a program.
#pragma once

#include "graph/ir/graph.h"
#include "npus/ethosu/compiler/payload.h"
#include "npus/ethosu/hw/kernel_rules.h"

namespace skillet::npus::ethosu {

// Regions: the buffers of a job, by number.
enum : uint8_t { kConstantsRegion = 0, kArenaRegion = 1, kFastRegion = 2, kWitnessRegion = 7 };

struct JobStream {
  std::vector<uint32_t> words;
  hw::StreamNeeds needs;
  uint32_t operations = 0;  // number that the chip starts
};
// Makes three changes to Vela's stream: empty weights of the second core get a base; fast memory that is the arena is
// addressed in the arena's region, as a buffer has one region; at the end 16 bytes of the arena are copied to region 7,
// which shows that the job ran to its end. Error malformed: the kernel would refuse it.
Result<JobStream> job_stream_of(const ir::Graph& graph, const ir::Op& op);

template <typename T>
void add_command(std::vector<uint32_t>& words, const T& fields) {
  const auto packed = bits::pack(fields).value();
  words.push_back(packed[0] | T::kAddress);
  if (hw::words_of_code(T::kAddress) == 2) words.push_back(packed[1]);
}
// At the end, before the stop: the copy to region 7.
void add_witness(std::vector<uint32_t>& words);

}  // namespace skillet::npus::ethosu
