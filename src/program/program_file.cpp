// Program files: a header of 64 bytes, then a FlatBuffers table (program.fbs), compressed by zstd or not. Without
// compression, constants are at multiples of 64 bytes, so that they are used in place.
#include <xxhash.h>

#include <algorithm>

#include "base/file_limits.h"
#include "base/zstd_frame.h"
#include "program/program.h"
#include "program_generated.h"

namespace skillet::npu {
namespace {

constexpr uint64_t kLimitBytes = 1ULL << 30;  // limit for a table; FlatBuffers end at 2 GiB
constexpr size_t kContentsAlignment = 64;
constexpr uint32_t kMaxTables = 1 << 20, kMaxDepth = 8;  // for the verifier
constexpr uint64_t kTableBytes = 8;                      // minimum size of a table and its entry in a list

struct Header {
  std::array<char, 8> magic = {'S', 'K', 'I', 'L', 'P', 'R', 'G', '\n'};
  uint32_t version = 3;
  uint32_t packed = 0;        // 1: the table is one zstd frame
  uint64_t table_bytes = 0;   // unpacked
  uint64_t stored_bytes = 0;  // after the header, up to the end of the file
  uint64_t checksum = 0;      // XXH3 of the stored bytes, seeded with XXH3 (seed 0) of the fields above
  std::array<uint8_t, 24> reserved{};
};
static_assert(sizeof(Header) == kContentsAlignment);

uint64_t checksum_of(const Header& header, std::span<const uint8_t> stored) {
  return XXH3_64bits_withSeed(stored.data(), stored.size(), XXH3_64bits(&header, offsetof(Header, checksum)));
}

// ---- writing ----

using Builder = flatbuffers::FlatBufferBuilder;
template <typename T>
using Offset = flatbuffers::Offset<T>;

fb::ByteRange pack(const ByteRange& r) { return {r.buffer, r.offset_bytes, r.size_bytes}; }
fb::BufferUse pack(const BufferUse& u) { return {u.buffer, u.slot, u.read, u.write}; }
fb::Relocation pack(const Relocation& r) {
  return {r.at_byte, r.target_offset_bytes, r.target, r.lsb, r.width_bits, r.shift};
}
fb::Binding pack(const TensorBinding& b) {
  const TensorLayout& l = b.layout;
  const ImageShape& s = b.shape;
  return {fb::ImageShape(s.images, s.height, s.width, s.channels, s.elem_bytes),
          fb::TensorLayout(l.elem, l.px, l.row, l.block_stride, l.image, l.size_bytes, l.block, l.xor_byte, l.pad_byte),
          b.offset_bytes, b.tensor, b.buffer};
}

template <typename T>
auto pack_structs(Builder& to, const std::vector<T>& items) {
  std::vector<decltype(pack(items[0]))> packed;
  for (const T& item : items) packed.push_back(pack(item));
  return to.CreateVectorOfStructs(packed);
}
template <typename T, typename Pack>
auto pack_tables(Builder& to, const std::vector<T>& items, Pack pack_one) {
  std::vector<decltype(pack_one(to, items[0]))> packed;
  for (const T& item : items) packed.push_back(pack_one(to, item));
  return to.CreateVector(packed);
}

// ForceVectorAlignment() accepts at most FLATBUFFERS_MAX_ALIGNMENT, a single constant for the whole program.
void align_contents(Builder& to, size_t bytes) {
  if (bytes == 0) return;
  to.TrackMinAlign(kContentsAlignment);
  to.Pad(flatbuffers::PaddingBytes(to.GetSize() + bytes, kContentsAlignment));
}

Offset<fb::Buffer> pack_buffer(Builder& to, const Buffer& buffer) {
  const auto name = to.CreateString(buffer.name);
  align_contents(to, buffer.contents.size());
  const auto contents = to.CreateVector(buffer.contents.data(), buffer.contents.size());
  return fb::CreateBuffer(to, name, static_cast<uint8_t>(buffer.role), buffer.size_bytes, contents,
                          pack_structs(to, buffer.relocations));
}

Offset<fb::Job> pack_job(Builder& to, const Job& job) {
  const auto name = to.CreateString(job.name);
  const auto commands = pack_structs(to, job.commands);
  const auto uses = pack_structs(to, job.uses);
  const fb::ByteRange witness = pack(job.witness);
  return fb::CreateJob(to, name, commands, uses, &witness, job.sram_bytes, job.core, to.CreateVector(job.after));
}

Offset<fb::Operation> pack_operation(Builder& to, const OperationInfo& one) {
  return fb::CreateOperation(to, one.op, to.CreateString(one.kind), one.macs, one.tasks);
}
Offset<fb::DebugEntry> pack_debug_entry(Builder& to, const DebugEntry& one) {
  return fb::CreateDebugEntry(to, one.buffer, one.offset_bytes, one.size_bytes, to.CreateString(one.what),
                              one.operation);
}

Offset<fb::Program> pack_program(Builder& to, const Program& p) {
  const auto chip = to.CreateString(p.chip);
  const auto buffers = pack_tables(to, p.buffers, pack_buffer);
  const auto init_jobs = pack_tables(to, p.init_jobs, pack_job), jobs = pack_tables(to, p.jobs, pack_job);
  const auto inputs = pack_structs(to, p.inputs), outputs = pack_structs(to, p.outputs),
             intermediates = pack_structs(to, p.intermediates);
  const auto operations = pack_tables(to, p.operations, pack_operation);
  return fb::CreateProgram(to, chip, buffers, init_jobs, jobs, inputs, outputs, intermediates, operations,
                           pack_tables(to, p.debug_map, pack_debug_entry), p.constant_align);
}

// ---- reading; the table has been verified, but strings, vectors and structs may be missing ----

using Budget = CopyBudget;

std::string unpack(const flatbuffers::String* text, Budget& budget) {
  return text == nullptr || !budget.take(text->size()) ? std::string() : text->str();
}
ByteRange unpack(const fb::ByteRange& r) { return {r.buffer(), r.offset_bytes(), r.size_bytes()}; }
BufferUse unpack(const fb::BufferUse& u) { return {u.buffer(), u.read(), u.write(), u.slot()}; }
Relocation unpack(const fb::Relocation& r) {
  return {r.at_byte(), r.target(), r.target_offset_bytes(), r.lsb(), r.width_bits(), r.shift()};
}
TensorBinding unpack(const fb::Binding& b) {
  const fb::TensorLayout& l = b.layout();
  const fb::ImageShape& s = b.shape();
  const ImageShape shape{s.images(), s.height(), s.width(), s.channels(), s.elem_bytes()};
  const TensorLayout layout{l.block(), l.elem(),     l.px(),       l.row(),       l.block_stride(),
                            l.image(), l.xor_byte(), l.pad_byte(), l.size_bytes()};
  return {b.tensor(), b.buffer(), b.offset_bytes(), shape, layout};
}
OperationInfo unpack(const fb::Operation& o, Budget& budget) {
  return {o.op(), unpack(o.kind(), budget), o.macs(), o.tasks()};
}
DebugEntry unpack(const fb::DebugEntry& d, Budget& budget) {
  return {d.buffer(), d.offset_bytes(), d.size_bytes(), unpack(d.what(), budget), d.operation()};
}

Job unpack(const fb::Job& j, Budget& budget);

// Copies a struct: the verifier does not check alignment.
template <typename T>
T copy_of(const void* at) {
  T copy;
  std::memcpy(&copy, at, sizeof copy);
  return copy;
}
template <typename T>
auto unpack_all(const flatbuffers::Vector<const T*>* items, Budget& budget) {
  std::vector<decltype(unpack(std::declval<const T&>()))> out;
  for (size_t i = 0; items != nullptr && i < items->size() && budget.take(sizeof(T)); ++i)
    out.push_back(unpack(copy_of<T>(items->Data() + i * sizeof(T))));
  return out;
}
template <typename T>
auto unpack_all(const flatbuffers::Vector<Offset<T>>* items, Budget& budget) {
  std::vector<decltype(unpack(std::declval<const T&>(), budget))> out;
  for (uint32_t i = 0; items != nullptr && i < items->size() && budget.take(kTableBytes); ++i)
    out.push_back(unpack(*items->Get(i), budget));
  return out;
}

Job unpack(const fb::Job& j, Budget& budget) {
  Job job{.name = unpack(j.name(), budget),
          .commands = unpack_all(j.commands(), budget),
          .uses = unpack_all(j.uses(), budget)};
  if (j.witness() != nullptr) job.witness = unpack(copy_of<fb::ByteRange>(j.witness()));
  job.sram_bytes = j.sram_bytes();
  job.core = j.core();
  if (j.after() != nullptr && budget.take(j.after()->size() * uint64_t{4}))
    job.after.assign(j.after()->begin(), j.after()->end());
  return job;
}

// `owner` keeps the file's bytes alive, which contents refer to.
Result<Buffer> unpack(const fb::Buffer& b, const std::shared_ptr<const void>& owner, Budget& budget) {
  Buffer buffer{.name = unpack(b.name(), budget),
                .size_bytes = b.size_bytes(),
                .relocations = unpack_all(b.relocations(), budget)};
  if (b.role() > static_cast<uint8_t>(BufferRole::scratch))
    return error(ErrorCode::malformed, "buffer '{}': role {} is not known", buffer.name, b.role());
  buffer.role = static_cast<BufferRole>(b.role());
  if (b.contents() != nullptr) buffer.contents = {owner, {b.contents()->data(), b.contents()->size()}};
  return buffer;
}

// `budget`: a table may refer to one piece a million times; at most the table's size is copied.
Result<Program> unpack(const fb::Program& p, const std::shared_ptr<const void>& owner, Budget& budget) {
  Program program{.chip = unpack(p.chip(), budget)};
  if (p.buffers() != nullptr) {
    for (const fb::Buffer* one : *p.buffers()) {
      if (!budget.take(kTableBytes)) break;
      SK_TRY_INTO(program.buffers.emplace_back(), unpack(*one, owner, budget));
    }
  }
  program.init_jobs = unpack_all(p.init_jobs(), budget);
  program.jobs = unpack_all(p.jobs(), budget);
  program.inputs = unpack_all(p.inputs(), budget);
  program.outputs = unpack_all(p.outputs(), budget);
  program.intermediates = unpack_all(p.intermediates(), budget);
  program.operations = unpack_all(p.operations(), budget);
  program.debug_map = unpack_all(p.debug_map(), budget);
  program.constant_align = p.constant_align();
  if (budget.is_spent()) return error(ErrorCode::malformed, "the program file refers to the same bytes too often");
  return program;
}

Result<Header> begin_header(std::span<const uint8_t> file) {
  Header header;
  const Header known;
  const size_t magic_bytes = known.magic.size();
  if (file.size() < magic_bytes || !std::equal(known.magic.begin(), known.magic.end(), file.begin()))
    return error(ErrorCode::malformed, "not a skillet program file");
  if (file.size() < magic_bytes + 4) return error(ErrorCode::malformed, "truncated program file");
  if (const auto version = load_le<uint32_t>(file.data() + magic_bytes); version != known.version)
    return error(ErrorCode::unsupported, "program file of version {}; this build reads version {}: compile it again",
                 version, known.version);
  if (file.size() < sizeof header) return error(ErrorCode::malformed, "truncated program file");
  std::memcpy(&header, file.data(), sizeof header);
  if (header.stored_bytes != file.size() - sizeof header)
    return error(ErrorCode::malformed, "{} bytes after the header, which announces {}", file.size() - sizeof header,
                 header.stored_bytes);
  return header;
}

Result<Header> read_header(std::span<const uint8_t> file, bool is_whole) {
  SK_TRY_ASSIGN(const Header header, begin_header(file));
  const Header known;
  const std::span<const uint8_t> stored = file.subspan(sizeof header);
  if (header.packed > 1 || header.table_bytes > std::min(kLimitBytes, expansion_limit(file.size())))
    return error(ErrorCode::malformed, "unpacks to {} bytes, more than the limit", header.table_bytes);
  if (!is_whole && checksum_of(header, stored) != header.checksum)
    return error(ErrorCode::malformed, "checksum mismatch");
  if (header.reserved != known.reserved) return error(ErrorCode::malformed, "the end of the header is not 0");
  return header;
}

// Counts the zeros that are not stored, too.
Result<void> check_constants(const Program& program) {
  uint64_t total = 0;
  for (const Buffer& buffer : program.buffers) {
    if (!buffer.is_constant()) continue;
    if (buffer.size_bytes > kLimitBytes - total)
      return error(ErrorCode::out_of_range,
                   "buffer '{}' has {} bytes; a program file's constants have at most {}, zeros included", buffer.name,
                   buffer.size_bytes, kLimitBytes);
    total += buffer.size_bytes;
  }
  return {};
}

}  // namespace

Result<Bytes> serialise(const Program& program, bool packed) {
  uint64_t total = 0;
  for (const Buffer& buffer : program.buffers) total += buffer.contents.size();
  if (total > kLimitBytes / 2)
    return error(ErrorCode::out_of_range, "a program file holds at most {} bytes of constants", kLimitBytes / 2);
  SK_TRY(check_constants(program));
  Builder builder(total + (1 << 16));
  fb::FinishProgramBuffer(builder, pack_program(builder, program));
  std::span<const uint8_t> stored{builder.GetBufferPointer(), builder.GetSize()};
  Header header{.packed = packed, .table_bytes = stored.size()};
  Bytes frame;
  if (packed) {
    SK_TRY_ASSIGN(frame, pack_zstd(stored));
    header.packed = stored.size() <= expansion_limit(sizeof header + frame.size());
    if (header.packed != 0) stored = frame;
  }
  header.stored_bytes = stored.size();
  header.checksum = checksum_of(header, stored);
  Bytes file(sizeof header + stored.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::ranges::copy(stored, file.begin() + sizeof header);
  return file;
}

Result<Program> deserialise(const SharedBytes& file, bool is_whole) {
  SK_TRY_ASSIGN(const Header header, read_header(file, is_whole));
  SharedBytes table = file.subspan(sizeof header);
  if (header.packed != 0) SK_TRY_INTO(table, unpack_zstd(table, header.table_bytes));
  // FlatBuffers reads numbers in place, and a file inside another may begin at any address.
  if (reinterpret_cast<uintptr_t>(table.data()) % alignof(uint64_t) != 0) table = Bytes(table.begin(), table.end());
  flatbuffers::Verifier verifier(table.data(), table.size(), kMaxDepth, kMaxTables);
  if (!fb::VerifyProgramBuffer(verifier))
    return error(ErrorCode::malformed, "the table of the program file is damaged");
  Budget budget(table.size());
  SK_TRY_ASSIGN(Program program, unpack(*fb::GetProgram(table.data()), table.owner(), budget));
  SK_TRY(verify(program));
  SK_TRY(check_constants(program));
  return program;
}

}  // namespace skillet::npu
