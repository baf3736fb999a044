// The table of device memory in docs/memory.md: skillet_memory_bench MODEL.tflite...
// For each chip and model that ../shared/golden has recorded jobs of: what the recorded driver took and what ours take,
// in whole pages; what a second session of the same model in the process adds; the encoded constants and the most that
// inputs, outputs and intermediates need at one time, which no plan can go below; and all that we take over their sum.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/int_math.h"
#include "capture/capture.h"
#include "compile/compile.h"
#include "driver/memory_plan.h"
#include "frontend/tflite/import.h"
#include "runtime/shared_constants.h"

namespace skillet {
namespace {

constexpr uint64_t kPageBytes = 4096;

struct Memory {
  uint64_t all = 0, shared = 0;  // in whole pages; of it what a second session uses too
  uint64_t constants = 0;        // bytes, as encoded, with commands
  uint64_t host_tensors = 0;     // inputs and outputs
};

// The operation that a word of a buffer belongs to.
std::optional<uint32_t> operation_at(const driver::Program& program, driver::BufferId buffer, uint64_t at_byte) {
  for (const driver::DebugEntry& one : program.debug_map) {
    if (one.buffer == buffer && one.operation >= 0 && at_byte >= one.offset_bytes &&
        at_byte - one.offset_bytes < one.size_bytes)
      return static_cast<uint32_t>(one.operation);
  }
  return std::nullopt;
}

// An intermediate tensor, or a buffer of scratch that is none.
struct Piece {
  driver::BufferId buffer = 0;
  uint64_t offset = 0;
  driver::Lifetime lifetime;
  bool used = false;

  bool holds(const driver::Relocation& r) const {
    return r.target == buffer && r.target_offset_bytes >= offset &&
           r.target_offset_bytes - offset < lifetime.size_bytes;
  }
};

std::vector<Piece> pieces_of(const driver::Program& program) {
  std::vector<Piece> pieces;
  for (const driver::TensorBinding& one : program.intermediates)
    pieces.push_back({one.buffer, one.offset_bytes, {one.layout.size_bytes}});
  for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
    const driver::Buffer& buffer = program.buffers[id];
    if (buffer.role == driver::BufferRole::scratch && std::ranges::count(pieces, id, &Piece::buffer) == 0)
      pieces.push_back({id, 0, {buffer.size_bytes}});
  }
  return pieces;
}

// `program` keeps its intermediates.
std::vector<driver::Lifetime> lifetimes_of(const driver::Program& program) {
  std::vector<Piece> pieces = pieces_of(program);
  for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
    for (const driver::Relocation& r : program.buffers[id].relocations) {
      const auto operation = operation_at(program, id, r.at_byte);
      const auto piece = std::ranges::find_if(pieces, [&](const Piece& one) { return one.holds(r); });
      if (!operation || piece == pieces.end()) continue;
      driver::Lifetime& lifetime = piece->lifetime;
      lifetime.first = piece->used ? std::min(lifetime.first, *operation) : *operation;
      lifetime.last = piece->used ? std::max(lifetime.last, *operation) : *operation;
      piece->used = true;
    }
  }
  std::vector<driver::Lifetime> lifetimes;
  for (const Piece& one : pieces) {
    if (one.used) lifetimes.push_back(one.lifetime);
  }
  return lifetimes;
}

Memory memory_of(const driver::Program& program) {
  Memory out;
  const runtime::ConstantLayout block = runtime::lay_out_constants(program);
  out.all = out.shared = align_up(block.size_bytes, kPageBytes);
  for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
    const driver::Buffer& buffer = program.buffers[id];
    if (buffer.is_constant()) out.constants += buffer.size_bytes;
    if (buffer.role == driver::BufferRole::input || buffer.role == driver::BufferRole::output)
      out.host_tensors += buffer.size_bytes;
    if (std::ranges::count(block.buffers, id) == 0) out.all += align_up(buffer.size_bytes, kPageBytes);
  }
  return out;
}

Result<std::vector<driver::Program>> compile_all(const ir::Graph& graph, const compile::Target& target,
                                                 const driver::CompileOptions& options) {
  SK_TRY_ASSIGN(compile::Compiled compiled, compile::compile(graph, target, {.driver = options}));
  std::vector<driver::Program> programs;
  for (compile::Part& part : compiled.parts) {
    if (part.program) programs.push_back(std::move(*part.program));
  }
  return programs;
}

Memory sum_of(const std::vector<driver::Program>& programs) {
  Memory sum;
  for (const driver::Program& program : programs) {
    const Memory one = memory_of(program);
    sum.all += one.all;
    sum.shared += one.shared;
    sum.constants += one.constants;
    sum.host_tensors += one.host_tensors;
  }
  return sum;
}

double mb(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// All buffers that the recorded driver had; none where nothing was recorded.
Result<std::optional<uint64_t>> recorded_bytes(const std::string& chip, const std::string& model) {
  const std::string folder = fmt::format("../shared/golden/{}/coral/{}", chip, model);
  if (!std::filesystem::exists(folder)) return std::optional<uint64_t>();
  SK_TRY_ASSIGN(const capture::Capture capture, capture::read(folder));
  std::map<uint32_t, uint64_t> sizes;
  for (const capture::Submission& submission : capture.submissions) {
    for (const capture::BufferSnapshot& buffer : submission.buffers) sizes[buffer.handle] = buffer.size_bytes;
  }
  uint64_t sum = 0;
  for (const auto& [handle, size] : sizes) sum += align_up(size, kPageBytes);
  return std::optional(sum);
}

Result<void> print_row(const std::string& model, const ir::Graph& graph, const compile::Target& target) {
  SK_TRY_ASSIGN(const auto recorded, recorded_bytes(target.chip.name, model));
  if (!recorded) return {};
  SK_TRY_ASSIGN(const auto ours, compile_all(graph, target, {.allow_unproven = true}));
  SK_TRY_ASSIGN(const auto kept, compile_all(graph, target, {.keep_intermediates = true, .allow_unproven = true}));
  if (ours.empty()) return {};
  const Memory now = sum_of(ours);
  uint64_t at_once = now.host_tensors;
  for (const driver::Program& program : kept) at_once += driver::least_memory(lifetimes_of(program), 1);
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", target.chip.name, model,
             mb(*recorded), mb(now.all), mb(now.all) / mb(*recorded), mb(now.all - now.shared), mb(now.constants),
             mb(at_once), mb(now.all) / mb(now.constants + at_once));
  return {};
}

int run(int argc, char** argv) {
  fmt::print(
      "| chip | model | recorded, MB | ours | ours / recorded | each more session | constants | at one time | ours / "
      "sum |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (int i = 1; i < argc; ++i) {
    auto graph = tflite::import_file(argv[i]);
    if (!graph.ok()) {
      fmt::print(stderr, "{}: {}\n", argv[i], graph.error().message);
      return 2;
    }
    for (const driver::Driver* driver : driver::drivers()) {
      for (const driver::Chip& chip : driver->chips()) {
        const auto done = print_row(std::filesystem::path(argv[i]).stem().string(), *graph, {driver, chip});
        if (!done.ok()) fmt::print(stderr, "{} {}: {}\n", chip.name, argv[i], done.error().message);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace skillet

int main(int argc, char** argv) { return skillet::run(argc, argv); }
