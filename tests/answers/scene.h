// Scene: a simulated chip that runs recorded submissions.
// Called by jobs_test.cpp and programs_test.cpp.
// Must not know: what the programs compute.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "answers/lines.h"
#include "capture/capture.h"
#include "sim/sim.h"

namespace skillet::answers {

// A simulated chip that maps the buffers of a submission as the kernel does.
class Scene {
 public:
  explicit Scene(const std::string& chip) : device_(sim::create(chip).value()) {}

  // Hashes the errors, and then the contents of the buffers.
  void run(const capture::Submission& submission, Hash& to) {
    sim::Memory memory;
    std::array<uint64_t, 8> slots{};
    for (const capture::BufferSnapshot& one : submission.buffers) {
      if (!one.listed || one.size_bytes > kBytesMax) continue;
      Bytes& bytes = buffers_[one.handle];
      if (one.content != capture::Content::unknown) bytes.assign(one.bytes.begin(), one.bytes.end());
      bytes.resize(one.size_bytes);
      if (!memory.map(one.address, bytes, "a buffer").ok()) to.add("not mapped");
      if (const uint64_t slot = one.address >> 36; slot > 0 && slot <= slots.size()) slots[slot - 1] = one.address;
    }
    for (const capture::Job& job : submission.jobs) {
      const auto ran = run(job, submission, slots, memory);
      to.add(ran.ok() ? "fine" : ran.error().message);
    }
    for (const auto& [handle, bytes] : buffers_) to.add(std::span<const uint8_t>(bytes));
  }

 private:
  static constexpr uint64_t kBytesMax = 1 << 22;
  Result<void> run(const capture::Job& job, const capture::Submission& submission, std::span<const uint64_t> slots,
                   const sim::Memory& memory) {
    std::vector<sim::Commands> commands;
    for (const capture::Commands& one : job.commands)
      commands.push_back({.bytes = {reinterpret_cast<const uint8_t*>(one.words.data()), one.words.size() * 4},
                          .address = one.address,
                          .size_bytes = one.size_bytes});
    uint64_t sram = 0;
    for (const capture::Parameter& one : submission.parameters)
      if (one.name.find("sram") != std::string::npos) sram = one.value;
    return device_->run({.commands = commands, .slots = slots, .sram_bytes = sram}, memory);
  }

  std::unique_ptr<sim::Device> device_;
  std::map<uint32_t, Bytes> buffers_;
};

}  // namespace skillet::answers
