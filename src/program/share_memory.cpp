#include "program/share_memory.h"

#include <algorithm>
#include <utility>

namespace skillet::npu {
namespace {

// New place of a former buffer.
struct Place {
  BufferId buffer = 0;
  uint64_t offset_bytes = 0;
};

class Mover {
 public:
  explicit Mover(std::vector<Place> places) : places_(std::move(places)) {}

  void program(Program& p) const {
    for (Buffer& buffer : p.buffers) {
      for (Relocation& one : buffer.relocations) move(one.target, one.target_offset_bytes);
    }
    for (auto* jobs : {&p.init_jobs, &p.jobs}) {
      for (Job& one : *jobs) job(one);
    }
    for (auto* bindings : {&p.inputs, &p.outputs, &p.intermediates}) {
      for (TensorBinding& one : *bindings) move(one.buffer, one.offset_bytes);
    }
    for (DebugEntry& one : p.debug_map) move(one.buffer, one.offset_bytes);
  }

 private:
  template <typename Offset>
  void move(BufferId& buffer, Offset& offset) const {
    const Place& place = places_[buffer];
    buffer = place.buffer;
    offset += static_cast<Offset>(place.offset_bytes);
  }

  void job(Job& job) const {
    for (ByteRange& range : job.commands) move(range.buffer, range.offset_bytes);
    if (job.witness.size_bytes > 0) move(job.witness.buffer, job.witness.offset_bytes);
    for (BufferUse use : std::exchange(job.uses, {})) {
      uint64_t offset = 0;
      move(use.buffer, offset);
      add_use(job.uses, use);
    }
  }

  const std::vector<Place> places_;
};

}  // namespace

void add_use(std::vector<BufferUse>& uses, const BufferUse& use) {
  for (BufferUse& one : uses) {
    if (one.buffer != use.buffer) continue;
    one.read |= use.read;
    one.write |= use.write;
    return;
  }
  uses.push_back(use);
}

void share_memory(Program& program, std::span<const std::optional<Lifetime>> lifetimes, uint64_t align,
                  uint64_t slack_bytes) {
  std::vector<BufferId> shared;
  std::vector<Lifetime> needed;
  std::vector<Place> places;
  BufferId kept = 0;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    places.push_back({kept, 0});
    if (id >= lifetimes.size() || !lifetimes[id]) {
      ++kept;
      continue;
    }
    shared.push_back(id);
    needed.push_back({program.buffers[id].size_bytes, lifetimes[id]->first, lifetimes[id]->last});
    const auto has_witness = [&](const Job& job) { return job.witness.size_bytes > 0 && job.witness.buffer == id; };
    if (std::ranges::any_of(program.jobs, has_witness)) needed.back() = {needed.back().size_bytes, 0, UINT32_MAX};
  }
  if (shared.empty()) return;
  const MemoryPlan plan = plan_memory(needed, align);
  for (size_t i = 0; i < shared.size(); ++i) places[shared[i]] = {kept, plan.offsets[i]};
  for (size_t i = shared.size(); i-- > 0;) program.buffers.erase(program.buffers.begin() + shared[i]);
  program.buffers.push_back({.name = "intermediates", .size_bytes = plan.size_bytes + slack_bytes});
  Mover(std::move(places)).program(program);
}

}  // namespace skillet::npu
