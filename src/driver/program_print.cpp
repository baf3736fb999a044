#include <xxhash.h>

#include <array>

#include "driver/program.h"

namespace skillet::driver {
namespace {

constexpr std::array<std::string_view, 4> kRoleNames = {"constant", "input", "output", "scratch"};
constexpr std::array<std::string_view, 2> kLayoutNames = {"nhwc", "nchw_planar"};
constexpr size_t kWordsPerLine = 8;

template <typename... Args>
void add(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void print_relocations(std::string& out, const std::vector<Relocation>& relocations) {
  for (const Relocation& one : relocations) {
    add(out, "  reloc {:#06x} [{}:{}] = (buffer {} + {:#x}) >> {}\n", one.word_offset_bytes, one.lsb + one.width - 1,
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
    for (const BufferRelocations& list : program.buffer_relocations) {
      if (list.buffer == i) print_relocations(out, list.relocations);
    }
  }
}

void print_job(std::string& out, std::string_view kind, const Job& job) {
  add(out, "{} \"{}\" {} words, buffers", kind, job.name, job.stream.size());
  for (const BufferUse& use : job.buffers) add(out, " {}:{}{}", use.buffer, use.read ? "r" : "", use.write ? "w" : "");
  if (job.witness.size_bytes != 0)
    add(out, ", witness buffer {} + {:#x}, {} bytes", job.witness.buffer, job.witness.offset_bytes,
        job.witness.size_bytes);
  out += '\n';
  for (size_t i = 0; i < job.stream.size(); ++i) {
    if (i % kWordsPerLine == 0) add(out, "  {:04x}:", i * 4);
    add(out, " {:08x}", job.stream[i]);
    if (i % kWordsPerLine == kWordsPerLine - 1 || i + 1 == job.stream.size()) out += '\n';
  }
  print_relocations(out, job.relocations);
}

void print_bindings(std::string& out, std::string_view kind, const std::vector<TensorBinding>& bindings) {
  for (const TensorBinding& one : bindings) {
    add(out, "{} tensor {} = buffer {} + {:#x}, {} bytes {}", kind, one.tensor, one.buffer, one.offset_bytes,
        one.size_bytes, kLayoutNames[static_cast<size_t>(one.layout)]);
    if (one.xor_byte != 0) add(out, " xor {:#04x}", one.xor_byte);
    out += '\n';
  }
}

}  // namespace

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
  for (const Job& job : program.init_jobs) print_job(out, "init job", job);
  for (const Job& job : program.jobs) print_job(out, "job", job);
  return out;
}

}  // namespace skillet::driver
