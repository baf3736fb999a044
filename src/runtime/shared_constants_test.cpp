// Sessions with the same constants share them on the device, and each computes the same as alone. The buffers and
// prepared jobs of a session are freed with it.
#include "runtime/shared_constants.h"

#include <map>
#include <set>

#include "kernels/api/forwarding_device.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

// Tracks existing buffers and prepared jobs; one call, after `calls_to_failure` more, fails.
class CountingDevice : public kernels::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  Result<kernels::Handle> alloc(uint64_t size_bytes) override {
    if (calls_to_failure-- == 0) return error(ErrorCode::out_of_range, "no memory");
    SK_TRY_ASSIGN(const kernels::Handle handle, ForwardingDevice::alloc(size_bytes));
    sizes[handle] = size_bytes;
    return handle;
  }
  Result<void> free(kernels::Handle handle) override {
    EXPECT_EQ(sizes.count(handle) + commands.count(handle), 1U) << "freed twice, or never made";
    sizes.erase(handle);
    commands.erase(handle);
    return ForwardingDevice::free(handle);
  }
  Result<kernels::Handle> alloc_commands(uint64_t size_bytes) override {
    if (calls_to_failure-- == 0) return error(ErrorCode::out_of_range, "no memory");
    SK_TRY_ASSIGN(const kernels::Handle handle, ForwardingDevice::alloc_commands(size_bytes));
    commands[handle] = size_bytes;
    return handle;
  }
  Result<std::span<uint8_t>> map(kernels::Handle handle) override {
    if (calls_to_failure-- == 0) return error(ErrorCode::io, "no mapping");
    return ForwardingDevice::map(handle);
  }
  Result<kernels::JobId> prepare(const kernels::Job& job) override {
    if (calls_to_failure-- == 0) return error(ErrorCode::out_of_range, "no memory");
    SK_TRY_ASSIGN(const kernels::JobId id, ForwardingDevice::prepare(job));
    jobs.insert(id);
    return id;
  }
  void release(kernels::JobId id) override {
    EXPECT_EQ(jobs.erase(id), 1U) << "released twice, or never prepared";
    ForwardingDevice::release(id);
  }

  std::map<kernels::Handle, uint64_t> sizes, commands;
  std::set<kernels::JobId> jobs;
  int calls_to_failure = -1;
};

class SharedConstantsOfSessions : public ToySession {
 protected:
  CountingDevice& device() {
    if (device_ == nullptr) {
      auto counting = std::make_unique<CountingDevice>(std::move(target().context->device));
      device_ = counting.get();
      target_.context->device = std::move(counting);
    }
    return *device_;
  }
  size_t buffers() { return device().sizes.size(); }

  CountingDevice* device_ = nullptr;
};

ir::Graph with_other_constant(uint8_t value) {
  ir::Graph graph = chain();
  ir::set_constant(graph.tensor(6), Bytes(kElems, value));
  return graph;
}

TEST_F(SharedConstantsOfSessions, AreOneBufferThatGoesWithTheLastSession) {
  ASSERT_EQ(buffers(), 0U);
  auto first = open();
  const size_t alone = buffers();
  auto second = open();
  EXPECT_EQ(buffers(), 2 * alone - 1) << "one less: the constant";
  auto other = open(with_other_constant(140), target());
  EXPECT_EQ(buffers(), 3 * alone - 1) << "another constant";
  EXPECT_EQ(run(*first, Inputs(1)), Inputs(1).expected());
  EXPECT_EQ(run(*other, Inputs(2))[1], Inputs(2).expected_at_least(140));
  first.reset();
  EXPECT_EQ(run(*second, Inputs(3)), Inputs(3).expected());
  second.reset();
  EXPECT_EQ(buffers(), alone);
  auto third = open();
  EXPECT_EQ(buffers(), 2 * alone);
  EXPECT_EQ(run(*third, Inputs(4)), Inputs(4).expected());
  EXPECT_EQ(device().jobs.size(), 10U) << "of each session three jobs, and the initialisation of two programs";
  third.reset(), other.reset();
  EXPECT_EQ(buffers(), 0U);
  EXPECT_TRUE(device().jobs.empty());
}

// A tensor in the caller's memory requires a new job; the former one is released.
TEST_F(SharedConstantsOfSessions, JobsThatMoveReplaceEachOther) {
  device();
  auto session = open(chain_of_one(), target());
  const size_t prepared = device().jobs.size();
  const auto shared = target().context->shared.alloc(device(), 256).value();
  Bytes own(kElems);
  for (const uint64_t at : {uint64_t{0}, uint64_t{64}, uint64_t{128}, uint64_t{0}}) {
    const Inputs inputs(static_cast<uint8_t>(at + 1));
    const std::span<const uint8_t> in[] = {inputs.x};
    for (const std::span<uint8_t> out : {shared.bytes.subspan(at, kElems), std::span<uint8_t>(own)}) {
      const std::span<uint8_t> outs[] = {out};
      ASSERT_TRUE(session->run_on(in, outs).ok());
      for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], std::max<uint8_t>(inputs.x[i], 100));
      EXPECT_LE(device().jobs.size(), prepared);
    }
  }
  session.reset();
  EXPECT_TRUE(device().jobs.empty());
}

// A session that falls back to the CPU releases its shared constants.
TEST_F(SharedConstantsOfSessions, StayWhenAnotherSessionFails) {
  device();
  auto first = open(), second = open();
  state_.jobs_to_fault = 0;
  EXPECT_EQ(run(*first, Inputs(1)), Inputs(1).expected());
  state_.jobs_to_fault = -1;
  for (uint8_t seed = 2; seed < 5; ++seed) {
    EXPECT_EQ(run(*first, Inputs(seed)), Inputs(seed).expected());
    EXPECT_EQ(run(*second, Inputs(seed)), Inputs(seed).expected());
  }
  first.reset(), second.reset();
  EXPECT_EQ(buffers(), 0U);
  EXPECT_TRUE(device().jobs.empty());
}

// Each call in turn fails while the first or the second session loads.
TEST_F(SharedConstantsOfSessions, SurviveAFailureAtAnyCall) {
  device();
  int failures = 0;
  for (const bool in_the_second : {false, true}) {
    for (int calls = 0; calls < 40; ++calls) {
      auto good = in_the_second ? open() : nullptr;
      device().calls_to_failure = calls;
      auto bad = open();
      failures += device().calls_to_failure < 0 ? 1 : 0;
      device().calls_to_failure = -1;
      auto after = open();
      for (Session* one : {good.get(), bad.get(), after.get()}) {
        if (one != nullptr) {
          EXPECT_EQ(run(*one, Inputs(5)), Inputs(5).expected()) << calls;
        }
      }
      bad.reset();
      EXPECT_EQ(run(*after, Inputs(6)), Inputs(6).expected()) << calls;
      good.reset(), after.reset();
      EXPECT_EQ(buffers(), 0U) << calls;
      EXPECT_TRUE(device().jobs.empty()) << calls;
    }
  }
  EXPECT_GT(failures, 10);
}

TEST(LayOutConstants, TakesWhatHasNoAddresses) {
  const auto buffer = [](npu::BufferRole role, size_t size, std::vector<npu::Relocation> relocations = {}) {
    npu::Buffer one{.name = "b", .role = role, .size_bytes = size, .relocations = std::move(relocations)};
    if (role != npu::BufferRole::scratch) one.contents = Bytes(size, 1);
    return one;
  };
  npu::Program program;
  program.buffers = {buffer(npu::BufferRole::constant, 100),       buffer(npu::BufferRole::scratch, 100),
                     buffer(npu::BufferRole::constant, 100, {{}}), buffer(npu::BufferRole::commands, 100),
                     buffer(npu::BufferRole::constant, 1),         buffer(npu::BufferRole::constant, 200)};
  EXPECT_TRUE(lay_out_constants(program).buffers.empty()) << "each in a buffer of its own";
  program.constant_align = 64;
  const ConstantLayout layout = lay_out_constants(program);
  EXPECT_EQ(layout.buffers, (std::vector<npu::BufferId>{0, 4, 5}));
  EXPECT_EQ(layout.offsets, (std::vector<uint64_t>{0, 128, 192}));
  EXPECT_EQ(layout.size_bytes, 392U);
}

}  // namespace
}  // namespace skillet::runtime
