// The tables of docs/memory.md: skillet_memory_bench [--update docs/memory.md] MODEL.tflite...
// For each chip and model with recorded jobs in ../shared/golden: the memory of the recorded driver and of our
// programs, in whole pages; the additional memory of a second session of the model in the process; the encoded
// constants and the largest simultaneous need of inputs, outputs and intermediates, a lower bound for any plan; and our
// memory over their sum. Then the plans of intermediates over the smallest possible plans.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/bytes.h"
#include "base/int_math.h"
#include "capture/capture.h"
#include "compile/compile.h"
#include "graph/import/import.h"
#include "program/memory_plan.h"
#include "program/testing/smallest_plan.h"
#include "runtime/session.h"
#include "runtime/shared_constants.h"

namespace skillet {
namespace {

constexpr uint64_t kPageBytes = 4096;

struct Memory {
  uint64_t all = 0, shared = 0;  // in whole pages; shared: also used by a second session
  uint64_t constants = 0;        // bytes, as encoded, with commands
  uint64_t host_tensors = 0;     // inputs and outputs
};

// Returns the operation that a word of a buffer belongs to.
std::optional<uint32_t> operation_at(const npu::Program& program, npu::BufferId buffer, uint64_t at_byte) {
  for (const npu::DebugEntry& one : program.debug_map) {
    if (one.buffer == buffer && one.operation >= 0 && at_byte >= one.offset_bytes &&
        at_byte - one.offset_bytes < one.size_bytes)
      return static_cast<uint32_t>(one.operation);
  }
  return std::nullopt;
}

// An intermediate tensor, or a scratch buffer.
struct Piece {
  npu::BufferId buffer = 0;
  uint64_t offset = 0;
  npu::Lifetime lifetime;
  bool used = false;

  bool holds(const npu::Relocation& r) const {
    return r.target == buffer && r.target_offset_bytes >= offset &&
           r.target_offset_bytes - offset < lifetime.size_bytes;
  }
};

std::vector<Piece> pieces_of(const npu::Program& program) {
  std::vector<Piece> pieces;
  for (const npu::TensorBinding& one : program.intermediates)
    pieces.push_back({one.buffer, one.offset_bytes, {one.layout.size_bytes}});
  for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
    const npu::Buffer& buffer = program.buffers[id];
    if (buffer.role == npu::BufferRole::scratch && std::ranges::count(pieces, id, &Piece::buffer) == 0)
      pieces.push_back({id, 0, {buffer.size_bytes}});
  }
  return pieces;
}

// `program` keeps its intermediates.
std::vector<npu::Lifetime> lifetimes_of(const npu::Program& program) {
  std::vector<Piece> pieces = pieces_of(program);
  for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
    for (const npu::Relocation& r : program.buffers[id].relocations) {
      const auto operation = operation_at(program, id, r.at_byte);
      const auto piece = std::ranges::find_if(pieces, [&](const Piece& one) { return one.holds(r); });
      if (!operation || piece == pieces.end()) continue;
      npu::Lifetime& lifetime = piece->lifetime;
      lifetime.first = piece->used ? std::min(lifetime.first, *operation) : *operation;
      lifetime.last = piece->used ? std::max(lifetime.last, *operation) : *operation;
      piece->used = true;
    }
  }
  std::vector<npu::Lifetime> lifetimes;
  for (const Piece& one : pieces) {
    if (one.used) lifetimes.push_back(one.lifetime);
  }
  return lifetimes;
}

Memory memory_of(const npu::Program& program) {
  Memory out;
  const runtime::ConstantLayout block = runtime::lay_out_constants(program);
  out.all = out.shared = align_up(block.size_bytes, kPageBytes);
  for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
    const npu::Buffer& buffer = program.buffers[id];
    if (buffer.is_constant()) out.constants += buffer.size_bytes;
    if (buffer.role == npu::BufferRole::input || buffer.role == npu::BufferRole::output)
      out.host_tensors += buffer.size_bytes;
    if (std::ranges::count(block.buffers, id) == 0) out.all += align_up(buffer.size_bytes, kPageBytes);
  }
  return out;
}

Result<std::vector<npu::Program>> compile_all(const ir::Graph& graph, const compile::Target& target,
                                              const npu::CompileOptions& options) {
  SK_TRY_ASSIGN(compile::Compiled compiled, compile::compile(graph, target, {.driver = options}));
  std::vector<npu::Program> programs;
  for (compile::Part& part : compiled.parts) {
    if (part.program) programs.push_back(std::move(*part.program));
  }
  return programs;
}

Memory sum_of(const std::vector<npu::Program>& programs) {
  Memory sum;
  for (const npu::Program& program : programs) {
    const Memory one = memory_of(program);
    sum.all += one.all;
    sum.shared += one.shared;
    sum.constants += one.constants;
    sum.host_tensors += one.host_tensors;
  }
  return sum;
}

double mb(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// Size of all buffers of the recorded driver; none if nothing was recorded.
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

// The plan of plan_memory() for a network's intermediates, and the least memory needed at one time.
struct Planned {
  size_t tensors = 0;
  uint64_t planned = 0, least = 0;
};

struct Row {
  std::string text;
  Planned plan;
};

constexpr uint64_t kAlign = 64;

// In whole pages, with the choices that the timing model prefers.
Result<uint64_t> tuned_bytes(const ir::Graph& graph, const npu::Chip& chip) {
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(fmt::format("sim:{}", chip.name)));
  SK_TRY_ASSIGN(const compile::Compiled compiled,
                runtime::compile_for(target, graph, {.compile = {.tuning = npu::Tuning::tuned}, .cores = 1}));
  uint64_t sum = 0;
  for (const compile::Part& part : compiled.parts) {
    if (part.program) sum += memory_of(*part.program).all;
  }
  return sum;
}

Result<std::optional<Row>> row_of(const std::string& model, const ir::Graph& graph, const compile::Target& target) {
  SK_TRY_ASSIGN(const auto recorded, recorded_bytes(target.chip.name, model));
  if (!recorded) return std::optional<Row>();
  SK_TRY_ASSIGN(const auto ours, compile_all(graph, target, {.unproven = npu::Unproven::take}));
  SK_TRY_ASSIGN(const auto kept,
                compile_all(graph, target, {.keep_intermediates = true, .unproven = npu::Unproven::take}));
  if (ours.empty()) return std::optional<Row>();
  const Memory now = sum_of(ours);
  uint64_t at_once = now.host_tensors;
  Planned plan;
  for (const npu::Program& program : kept) {
    const std::vector<npu::Lifetime> lifetimes = lifetimes_of(program);
    at_once += npu::least_memory(lifetimes, 1);
    plan.tensors += lifetimes.size();
    plan.planned += npu::plan_memory(lifetimes, kAlign).size_bytes;
    plan.least += npu::least_memory(lifetimes, kAlign);
  }
  SK_TRY_ASSIGN(const uint64_t tuned, tuned_bytes(graph, target.chip));
  std::string text =
      fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n",
                  target.chip.name, model, mb(*recorded), mb(now.all), mb(now.all) / mb(*recorded), mb(tuned),
                  mb(tuned) / mb(*recorded), mb(now.all - now.shared), mb(now.constants), mb(at_once),
                  mb(now.all) / mb(now.constants + at_once));
  return std::optional(Row{std::move(text), plan});
}

// For sets of random lifetimes, finds the smallest plans by trying all orders.
std::string random_plans() {
  constexpr int kCases = 100;
  std::string text;
  std::mt19937 random(7);
  for (const size_t count : {5U, 6U, 7U, 8U}) {
    uint64_t planned = 0, smallest = 0;
    int exact = 0;
    double worst = 1;
    for (int i = 0; i < kCases; ++i) {
      const std::vector<npu::Lifetime> lifetimes = npu::testing::random_lifetimes(random, count);
      const uint64_t plan = npu::plan_memory(lifetimes, 1).size_bytes;
      const uint64_t best = npu::testing::smallest_memory(lifetimes);
      planned += plan, smallest += best, exact += plan == best ? 1 : 0;
      worst = std::max(worst, static_cast<double>(plan) / static_cast<double>(best));
    }
    text += fmt::format("| {} random plans of {} | {:.3f} | {:.2f} | {} of {} |\n", kCases, count,
                        static_cast<double>(planned) / static_cast<double>(smallest), worst, exact, kCases);
  }
  return text;
}

std::string plan_line(std::string_view chip, const std::string& model, const Planned& plan) {
  const double ratio = plan.least == 0 ? 1 : static_cast<double>(plan.planned) / static_cast<double>(plan.least);
  return fmt::format("| {}, {}: {} tensors | {:.3f} | {:.2f} | {} |\n", chip, model, plan.tensors, ratio, ratio,
                     plan.planned == plan.least ? "yes" : "at least within it");
}

struct Tables {
  std::string models =
      "| chip | model | recorded, MB | ours | ours / recorded | tuned | tuned / recorded | each more session | "
      "constants | "
      "at one time | ours / sum |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  std::string plans = "| plans | bytes / smallest | worst | as small as can be |\n| --- | --- | --- | --- |\n";
};

Result<Tables> tables_of(std::span<const std::string> files) {
  Tables out;
  for (const std::string& file : files) {
    SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(file).with_context(file));
    const std::string model = std::filesystem::path(file).stem().string();
    for (const npu::Driver* driver : npu::drivers()) {
      for (const npu::Chip& chip : driver->chips()) {
        SK_TRY_ASSIGN(const auto row, row_of(model, graph, {driver, chip}).with_context(chip.name));
        if (!row) continue;
        out.models += row->text;
        out.plans += plan_line(chip.name, model, row->plan);
      }
    }
  }
  out.plans += random_plans();
  return out;
}

// Replaces the table at its marker in the page.
Result<void> put(std::string& page, std::string_view name, std::string_view table) {
  const std::string begin = fmt::format("<!-- memory: {} -->\n", name);
  const size_t at = page.find(begin), end = page.find("<!-- end -->", at);
  if (at == std::string::npos || end == std::string::npos)
    return error(ErrorCode::malformed, "no place for the table '{}'", name);
  page.replace(at + begin.size(), end - at - begin.size(), table);
  return {};
}

Result<void> run(std::vector<std::string> arguments) {
  std::string page;
  if (arguments.size() >= 2 && arguments[0] == "--update") {
    page = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  SK_TRY_ASSIGN(const Tables tables, tables_of(arguments));
  if (page.empty()) {
    fmt::print("{}\n{}", tables.models, tables.plans);
    return {};
  }
  SK_TRY_ASSIGN(const Bytes bytes, read_file(page));
  std::string text(bytes.begin(), bytes.end());
  SK_TRY(put(text, "models", tables.models).with_context(page));
  SK_TRY(put(text, "plans", tables.plans).with_context(page));
  return write_file(page, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace
}  // namespace skillet

int main(int argc, char** argv) {
  const auto done = skillet::run({argv + 1, argv + argc});
  if (!done.ok()) fmt::print(stderr, "{}\n", done.error().message);
  return done.ok() ? 0 : 2;
}
