// Program files: one record with everything, in the shell that capture files use (capture/format.md).
#include "capture/archive.h"
#include "capture/packed_file.h"
#include "driver/program.h"

namespace skillet::driver {
namespace {

constexpr capture::PackedFormat kProgramFormat{
    .magic = {'S', 'K', 'I', 'L', 'P', 'R', 'G', '\n'}, .version = 2, .what = "program", .limit_bytes = 1ULL << 30};
constexpr uint32_t kProgramRecord = 1;

// `archive` is a reader or a writer; the order of the fields is the file format.
void visit_relocation(auto& archive, auto& relocation) {
  archive.number("word_offset_bytes", relocation.word_offset_bytes);
  archive.number("target", relocation.target);
  archive.number("target_offset_bytes", relocation.target_offset_bytes);
  archive.number("lsb", relocation.lsb);
  archive.number("width", relocation.width);
  archive.number("shift", relocation.shift);
}

void visit_relocations(auto& archive, auto& relocations) {
  archive.list("relocations", relocations, [](auto& a, auto& item) { visit_relocation(a, item); });
}

void visit_buffer(auto& archive, auto& buffer) {
  archive.text("name", buffer.name);
  archive.choice("role", buffer.role, BufferRole::scratch);
  archive.number("size_bytes", buffer.size_bytes);
  archive.blob("contents", buffer.contents);
}

void visit_job(auto& archive, auto& job) {
  archive.text("name", job.name);
  archive.words("stream", job.stream);
  visit_relocations(archive, job.relocations);
  archive.list("buffers", job.buffers, [](auto& a, auto& use) {
    a.number("buffer", use.buffer);
    a.flag("read", use.read);
    a.flag("write", use.write);
  });
  archive.number("witness.buffer", job.witness.buffer);
  archive.number("witness.offset_bytes", job.witness.offset_bytes);
  archive.number("witness.size_bytes", job.witness.size_bytes);
}

void visit_binding(auto& archive, auto& binding) {
  archive.number("tensor", binding.tensor);
  archive.number("buffer", binding.buffer);
  archive.number("offset_bytes", binding.offset_bytes);
  archive.number("size_bytes", binding.size_bytes);
  archive.number("xor_byte", binding.xor_byte);
  archive.choice("layout", binding.layout, Layout::nchw_planar);
}

void visit_operation(auto& archive, auto& operation) {
  archive.number("op", operation.op);
  archive.text("kind", operation.kind);
  archive.number("macs", operation.macs);
}

void visit_debug_entry(auto& archive, auto& entry) {
  archive.number("buffer", entry.buffer);
  archive.number("offset_bytes", entry.offset_bytes);
  archive.number("size_bytes", entry.size_bytes);
  archive.text("what", entry.what);
  archive.number("operation", entry.operation);
}

void visit_program(auto& archive, auto& program) {
  const auto binding = [](auto& a, auto& item) { visit_binding(a, item); };
  const auto job = [](auto& a, auto& item) { visit_job(a, item); };
  archive.text("chip", program.chip);
  archive.list("buffers", program.buffers, [](auto& a, auto& item) { visit_buffer(a, item); });
  archive.list("buffer_relocations", program.buffer_relocations, [](auto& a, auto& item) {
    a.number("buffer", item.buffer);
    visit_relocations(a, item.relocations);
  });
  archive.list("init_jobs", program.init_jobs, job);
  archive.list("jobs", program.jobs, job);
  archive.list("inputs", program.inputs, binding);
  archive.list("outputs", program.outputs, binding);
  archive.list("intermediates", program.intermediates, binding);
  archive.list("operations", program.operations, [](auto& a, auto& item) { visit_operation(a, item); });
  archive.list("debug_map", program.debug_map, [](auto& a, auto& item) { visit_debug_entry(a, item); });
}

}  // namespace

Result<Bytes> serialise(const Program& program) {
  capture::ArchiveWriter writer;
  visit_program(writer, program);
  const capture::PackedRecord record{kProgramRecord, writer.take()};
  return capture::pack_records(kProgramFormat, {&record, 1});
}

Result<Program> deserialise(std::span<const uint8_t> file) {
  SK_TRY_ASSIGN(const std::vector<capture::PackedRecord> records, capture::unpack_records(kProgramFormat, file));
  if (records.size() != 1 || records[0].kind != kProgramRecord)
    return error(ErrorCode::malformed, "program file: expected one program record");
  Program program;
  capture::ArchiveReader reader(records[0].bytes);
  visit_program(reader, program);
  SK_TRY(reader.finish().with_context("program file"));
  SK_TRY(verify(program));
  return program;
}

}  // namespace skillet::driver
