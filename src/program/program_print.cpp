#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>

#include "program/program.h"

namespace skillet::npu {
namespace {

constexpr std::array<std::string_view, 5> kRoleNames = {"constant", "commands", "input", "output", "scratch"};
constexpr size_t kWordsPerLine = 8;

template <typename... Args>
void add(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void print_relocations(std::string& out, const std::vector<Relocation>& relocations) {
  for (const Relocation& one : relocations) {
    add(out, "  reloc {:#06x} [{}:{}] = (buffer {} + {:#x}) >> {}\n", one.at_byte, one.lsb + one.width_bits - 1,
        one.lsb, one.target, one.target_offset_bytes, one.shift);
  }
}

void print_buffers(std::string& out, const Program& program) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    add(out, "buffer {} {} {} bytes \"{}\"", i, kRoleNames[static_cast<size_t>(buffer.role)], buffer.size_bytes,
        buffer.name);
    if (!buffer.contents.empty())
      add(out, " contents {} bytes {:016x}", buffer.contents.size(),
          XXH64(buffer.contents.data(), buffer.contents.size(), 0));
    out += '\n';
    print_relocations(out, buffer.relocations);
  }
}

// As 32-bit words, before relocation.
void print_commands(std::string& out, const Program& program, const ByteRange& range) {
  add(out, "  commands buffer {} + {:#x}, {} bytes\n", range.buffer, range.offset_bytes, range.size_bytes);
  const std::span<const uint8_t> bytes = bytes_of(program, range);
  for (size_t i = 0; i * 4 < bytes.size(); ++i) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + i * 4, std::min<size_t>(4, bytes.size() - i * 4));
    if (i % kWordsPerLine == 0) add(out, "  {:04x}:", i * 4);
    add(out, " {:08x}", word);
    if (i % kWordsPerLine == kWordsPerLine - 1 || (i + 1) * 4 >= bytes.size()) out += '\n';
  }
}

void print_job(std::string& out, std::string_view kind, const Program& program, const Job& job) {
  add(out, "{} \"{}\" uses", kind, job.name);
  for (const BufferUse& use : job.uses) {
    add(out, " {}:{}{}", use.buffer, use.read ? "r" : "", use.write ? "w" : "");
    if (use.slot != 0) add(out, " in slot {}", use.slot);
  }
  if (job.witness.size_bytes != 0)
    add(out, ", witness buffer {} + {:#x}, {} bytes", job.witness.buffer, job.witness.offset_bytes,
        job.witness.size_bytes);
  if (job.sram_bytes != 0) add(out, ", {} bytes on chip", job.sram_bytes);
  if (job.core != 0) add(out, ", core {}", job.core);
  if (!job.after.empty()) add(out, ", after {}", fmt::join(job.after, " "));
  out += '\n';
  for (const ByteRange& range : job.commands) print_commands(out, program, range);
}

void print_bindings(std::string& out, std::string_view kind, const std::vector<TensorBinding>& bindings) {
  for (const TensorBinding& one : bindings)
    add(out, "{} tensor {} = buffer {} + {:#x}, {}\n", kind, one.tensor, one.buffer, one.offset_bytes,
        print(one.layout));
}

}  // namespace

std::span<const uint8_t> bytes_of(const Program& program, const ByteRange& range) {
  const std::span<const uint8_t> all = program.buffers[range.buffer].contents;
  return all.subspan(range.offset_bytes, range.size_bytes);
}

std::string print(const Program& program) {
  std::string out = fmt::format("program for {}\n", program.chip);
  print_buffers(out, program);
  print_bindings(out, "input", program.inputs);
  print_bindings(out, "output", program.outputs);
  print_bindings(out, "intermediate", program.intermediates);
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const OperationInfo& operation = program.operations[i];
    add(out, "operation {} op {} {}, {} MACs\n", i, operation.op, operation.kind, operation.macs);
  }
  for (const Job& job : program.init_jobs) print_job(out, "init job", program, job);
  for (const Job& job : program.jobs) print_job(out, "job", program, job);
  return out;
}

}  // namespace skillet::npu
