// ProgramMaker: a Program of one job, whose tensors share an arena. Base class of the makers of programs from Vela's
// operations and of Skillet's own.
// Must not know: who compiled the commands.
#pragma once

#include "npus/ethosu/compiler/job_stream.h"
#include "npus/ethosu/compiler/program.h"

namespace skillet::npus::ethosu {

using npu::BufferId;
using npu::BufferRole;

class ProgramMaker {
 protected:
  ProgramMaker(const hw::ChipRow& chip, const ir::Graph& graph) : graph_(graph) {
    program_.chip = std::string(chip.name);
  }

  BufferId add_buffer(std::string name, BufferRole role, uint64_t size_bytes, SharedBytes contents = {}) {
    program_.buffers.push_back({.name = std::move(name),
                                .role = role,
                                .size_bytes = size_bytes,
                                .contents = std::move(contents),
                                .relocations = {}});
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  // Adds `words` as the commands of a job with the arena, and with `constants` if the commands use them. Sizes in
  // bytes.
  void add_job(std::string name, std::span<const uint32_t> words, const hw::StreamNeeds& needs, SharedBytes constants,
               uint64_t constant_bytes, uint64_t arena_bytes, uint64_t sram_bytes = 0) {
    npu::Job job{.name = std::move(name)};
    job.sram_bytes = sram_bytes;
    const auto use = [&](uint8_t region, BufferId buffer) {
      job.uses.push_back({.buffer = buffer, .read = true, .write = needs.writes[region], .slot = region});
    };
    if (needs.bytes[kConstantsRegion] != 0)
      use(kConstantsRegion, add_buffer("constants", BufferRole::constant, constant_bytes, std::move(constants)));
    arena_ = add_buffer("arena", BufferRole::scratch, arena_bytes);
    use(kArenaRegion, arena_);
    const BufferId end = add_buffer("witness", BufferRole::scratch, npu::kWitnessBytes);
    use(kWitnessRegion, end);
    job.witness = {end, 0, npu::kWitnessBytes};
    const auto bytes = as_bytes(words);
    const BufferId commands =
        add_buffer("commands", BufferRole::commands, bytes.size(), Bytes(bytes.begin(), bytes.end()));
    job.commands = {{commands, 0, bytes.size()}};
    program_.jobs.push_back(std::move(job));
  }

  npu::TensorBinding binding_at(ir::TensorId id, uint64_t offset_bytes) const {
    const npu::ImageShape shape = npu::image_shape(graph_.tensor(id));
    return {.tensor = id,
            .buffer = arena_,
            .offset_bytes = offset_bytes,
            .shape = shape,
            .layout = npu::nhwc_layout(shape)};
  }

  const ir::Graph& graph_;
  npu::Program program_;

 private:
  BufferId arena_ = 0;
};

}  // namespace skillet::npus::ethosu
