#include "runtime/band_group.h"

#include <algorithm>
#include <functional>

namespace skillet::runtime {
namespace {

// Rows of an NHWC image are contiguous.
std::span<uint8_t> rows_of(std::span<uint8_t> image, size_t row_bytes, int32_t first, int32_t count) {
  return image.subspan(static_cast<size_t>(first) * row_bytes, static_cast<size_t>(count) * row_bytes);
}
size_t row_bytes(const ir::Tensor& tensor) {
  return static_cast<size_t>(tensor.bytes()) / static_cast<size_t>(tensor.shape[1]);
}

// All code that takes several locks takes them in this order.
class Locks {
 public:
  explicit Locks(const std::vector<std::shared_ptr<DeviceContext>>& contexts) : contexts_(contexts) {
    for (const auto& context : contexts_) context->mutex.lock();
  }
  ~Locks() {
    for (const auto& context : contexts_) context->mutex.unlock();
  }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;

 private:
  const std::vector<std::shared_ptr<DeviceContext>>& contexts_;
};

}  // namespace

Result<std::unique_ptr<BandGroup>> BandGroup::load(const std::vector<std::shared_ptr<DeviceContext>>& contexts,
                                                   std::vector<compile::Band> bands, std::chrono::nanoseconds timeout) {
  std::unique_ptr<BandGroup> group(new BandGroup);
  for (size_t i = 0; i < bands.size(); ++i) {
    Member& member = group->members_.emplace_back();
    member.band = std::move(bands[i].rows);
    const ir::Graph& graph = member.band.graph;
    SK_TRY_ASSIGN(member.loaded,
                  LoadedProgram::load(contexts[i % contexts.size()], std::move(bands[i].program), graph, timeout));
    for (size_t o = 0; o < graph.outputs.size(); ++o) {
      const ir::TensorId id = graph.outputs[o];
      const bool all = member.band.rows[static_cast<size_t>(id)] == member.band.gives[o];
      member.whole.emplace_back(all ? 0 : static_cast<size_t>(graph.tensor(id).bytes()));
    }
  }
  group->contexts_ = contexts;
  const auto by_address = [](const auto& a, const auto& b) {
    return std::less<const DeviceContext*>()(a.get(), b.get());
  };
  std::ranges::sort(group->contexts_, by_address);
  return group;
}

std::span<uint8_t> BandGroup::bytes_of_band(Member& member, ir::TensorId id, const HostBytes& bytes_of) {
  const ir::Graph& graph = member.band.graph;
  const auto output = std::ranges::find(graph.outputs, id) - graph.outputs.begin();
  const auto o = static_cast<size_t>(output);
  if (o < member.whole.size() && !member.whole[o].empty()) return member.whole[o];
  const passes::Rows& rows = member.band.rows[static_cast<size_t>(id)];
  return rows_of(bytes_of(id), row_bytes(graph.tensor(id)), rows.begin, rows.count());
}

void BandGroup::give(Member& member, const HostBytes& bytes_of) {
  const ir::Graph& graph = member.band.graph;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    if (member.whole[o].empty()) continue;
    const ir::TensorId id = graph.outputs[o];
    const passes::Rows &all = member.band.rows[static_cast<size_t>(id)], &gives = member.band.gives[o];
    const size_t bytes = row_bytes(graph.tensor(id));
    const auto from = rows_of(member.whole[o], bytes, gives.begin - all.begin, gives.count());
    std::ranges::copy(from, rows_of(bytes_of(id), bytes, gives.begin, gives.count()).begin());
  }
}

// Waits for everything that was started, even if other bands failed: its buffers are in use.
Result<void> BandGroup::run(const HostBytes& bytes_of) {
  for (const auto& context : contexts_) SK_TRY(context->check_process());
  const Locks locks(contexts_);
  Result<void> result;
  size_t started = 0;
  for (Member& member : members_) {
    const auto bytes = [&](ir::TensorId id) { return bytes_of_band(member, id, bytes_of); };
    result = member.loaded->start(std::ref(bytes));  // by reference: no allocation
    if (!result.ok()) break;
    ++started;
  }
  for (size_t i = 0; i < started; ++i) {
    Member& member = members_[i];
    const auto bytes = [&](ir::TensorId id) { return bytes_of_band(member, id, bytes_of); };
    auto done = member.loaded->finish(std::ref(bytes));
    if (done.ok()) give(member, bytes_of);
    if (result.ok()) result = std::move(done);
  }
  return result;
}

std::vector<const npu::Program*> BandGroup::programs() const {
  std::vector<const npu::Program*> out;
  for (const Member& member : members_) out.push_back(&member.loaded->program());
  return out;
}

uint64_t BandGroup::copied_bytes() const {
  uint64_t sum = 0;
  for (const Member& member : members_) sum += member.loaded->copied_bytes();
  return sum;
}

}  // namespace skillet::runtime
