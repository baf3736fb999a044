#include "runtime/compiled_model.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/text.h"
#include "compile/build_id.h"

namespace skillet::runtime {
namespace {

constexpr size_t kKeyBytes = 32;     // of cache_key()
constexpr uint64_t kAlignment = 64;  // of program files, so that constants are used in place
using Name = std::array<char, 32>;

// The header is followed by: a row for each program; the graph as text, without its constants; these, in order; the
// note; the options; the program files.
struct Header {
  std::array<char, kCompiledMark.size()> magic{};
  uint32_t version = 2;
  uint32_t programs = 0, constants = 0, note_bytes = 0;
  uint64_t text_bytes = 0, constant_bytes = 0;
  uint64_t stored_bytes = 0;  // after the header
  uint64_t checksum = 0;      // XXH3 of the stored bytes, seeded with XXH3 of the header with this field 0
  Name build{};
  uint64_t options_bytes = 0;
};
static_assert(sizeof(Header) == 96);
struct Row {
  Name key{}, chip{};
  uint64_t bytes = 0;
};

uint64_t checksum_of(Header header, std::span<const uint8_t> stored) {
  header.checksum = 0;
  return XXH3_64bits_withSeed(stored.data(), stored.size(), XXH3_64bits(&header, sizeof header));
}

Name name_of(std::string_view text) {
  Name out{};
  std::copy_n(text.begin(), std::min(text.size(), out.size()), out.begin());
  return out;
}
std::string_view text_in(const Name& field) {
  return {field.data(), static_cast<size_t>(std::ranges::find(field, '\0') - field.begin())};
}
Header new_header() {
  Header header{.build = name_of(compile::build_id())};
  std::ranges::copy(kCompiledMark, header.magic.begin());
  return header;
}

template <typename T>
void append(Bytes& to, const T* from, size_t count) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  to.insert(to.end(), bytes, bytes + count * sizeof(T));
}
constexpr uint64_t padding(uint64_t at) { return (kAlignment - at % kAlignment) % kAlignment; }

// Takes bytes from the front; none: too few are left.
class Rest {
 public:
  explicit Rest(std::span<const uint8_t> bytes) : bytes_(bytes), all_(bytes.size()) {}
  Result<std::span<const uint8_t>> take(uint64_t count) {
    if (count > bytes_.size()) return error(ErrorCode::malformed, "its lengths contradict each other");
    const auto out = bytes_.first(static_cast<size_t>(count));
    bytes_ = bytes_.subspan(static_cast<size_t>(count));
    return out;
  }
  uint64_t taken() const { return all_ - bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t all_;
};

Result<Header> begin_header(std::span<const uint8_t> start, uint64_t size_bytes) {
  const Header known = new_header();
  Header header;
  if (start.size() < sizeof header || !std::equal(known.magic.begin(), known.magic.end(), start.begin()))
    return error(ErrorCode::malformed, "it is not a compiled model of Skillet");
  std::memcpy(&header, start.data(), sizeof header);
  if (header.version != known.version)
    return error(ErrorCode::unsupported, "it has version {}, this Skillet reads {}: compile the model again",
                 header.version, known.version);
  if (header.stored_bytes != size_bytes - sizeof header)
    return error(ErrorCode::malformed, "it has {} bytes instead of {}: {}", size_bytes,
                 sizeof header + header.stored_bytes,
                 header.stored_bytes > size_bytes - sizeof header ? "it was cut off" : "others follow it");
  return header;
}

Result<Header> read_header(std::span<const uint8_t> bytes) {
  SK_TRY_ASSIGN(const Header header, begin_header(bytes, bytes.size()));
  if (header.checksum != checksum_of(header, bytes.subspan(sizeof header)))
    return error(ErrorCode::malformed, "it is damaged: its checksum does not match");
  return header;
}

constexpr std::string_view kConstant = " const=";  // precedes a constant in the text form

std::string text_of(ir::Graph graph) {
  for (ir::Tensor& tensor : graph.tensors) {
    tensor.data = {};
    if (tensor.name.find(kConstant) != std::string::npos) tensor.name.clear();
  }
  return ir::print(graph);
}

struct Constant {
  uint64_t tensor, bytes;
};

Result<ir::Graph> read_graph(std::string_view text, std::span<const uint8_t> rows, Rest constants,
                             const SharedBytes& owner) {
  // A short text could describe zeros of any size.
  if (text.find(kConstant) != std::string_view::npos)
    return error(ErrorCode::malformed, "the text of its graph has constants");
  SK_TRY_ASSIGN(ir::Graph graph, ir::parse(text));
  for (size_t at = 0; at < rows.size(); at += sizeof(Constant)) {
    Constant one;
    std::memcpy(&one, &rows[at], sizeof one);
    if (one.tensor >= graph.tensors.size())
      return error(ErrorCode::malformed, "it has a constant of tensor {} of {}", one.tensor, graph.tensors.size());
    ir::Tensor& tensor = graph.tensors[static_cast<size_t>(one.tensor)];
    SK_TRY_ASSIGN(tensor.data, constants.take(one.bytes));
    tensor.owner = owner.owner();
  }
  SK_TRY(ir::verify(graph));
  return graph;
}

}  // namespace

std::string CompiledModel::chips() const {
  std::set<std::string> names;
  for (const StoredProgram& one : programs) names.insert(printable(one.chip));
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Bytes> save_compiled(const CompiledModel& model) {
  Header header = new_header();
  Bytes out(sizeof header);
  for (const StoredProgram& one : model.programs) {
    if (one.key.size() != kKeyBytes || one.chip.size() > sizeof(Name))
      return error(ErrorCode::internal, "a key of {} bytes, a chip '{}'", one.key.size(), one.chip);
    const Row row{name_of(one.key), name_of(one.chip), one.file.size()};
    append(out, &row, 1);
  }
  const std::string text = model.graph.ops.empty() ? "" : text_of(model.graph);
  append(out, text.data(), text.size());
  for (size_t i = 0; !text.empty() && i < model.graph.tensors.size(); ++i) {
    const Constant row{i, model.graph.tensors[i].data.size()};
    if (model.graph.tensors[i].data.data() == nullptr) continue;
    append(out, &row, 1);
    header.constant_bytes += row.bytes;
    ++header.constants;
  }
  for (const ir::Tensor& tensor : model.graph.tensors)
    if (!text.empty()) append(out, tensor.data.data(), tensor.data.size());
  if (text.empty()) {
    append(out, model.constants.data(), model.constants.size());
    header.constant_bytes = model.constants.size();
  }
  append(out, model.note.data(), model.note.size());
  append(out, model.options.data(), model.options.size());
  for (const StoredProgram& one : model.programs) {
    out.resize(out.size() + padding(out.size()));
    append(out, one.file.data(), one.file.size());
  }
  header.programs = static_cast<uint32_t>(model.programs.size());
  header.note_bytes = static_cast<uint32_t>(model.note.size());
  header.text_bytes = text.size();
  header.options_bytes = model.options.size();
  header.stored_bytes = out.size() - sizeof header;
  header.checksum = checksum_of(header, std::span<const uint8_t>(out).subspan(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

Result<CompiledModel> read_compiled(const SharedBytes& bytes) {
  SK_TRY_ASSIGN(const Header header, read_header(bytes));
  Rest rest(bytes);
  SK_TRY(rest.take(sizeof header));
  CompiledModel out{.is_of_this_build = header.build == new_header().build,
                    .version = header.version,
                    .build = std::string(text_in(header.build)),
                    .checksum = header.checksum};
  SK_TRY_ASSIGN(const auto rows, rest.take(uint64_t{header.programs} * sizeof(Row)));
  SK_TRY_ASSIGN(const auto text, rest.take(header.text_bytes));
  SK_TRY_ASSIGN(const auto listed, rest.take(uint64_t{header.constants} * sizeof(Constant)));
  SK_TRY_ASSIGN(const auto constants, rest.take(header.constant_bytes));
  if (!text.empty()) {
    SK_TRY_ASSIGN(out.graph, read_graph({reinterpret_cast<const char*>(text.data()), text.size()}, listed,
                                        Rest(constants), bytes));
  } else {
    out.constants = {bytes.owner(), constants};
  }
  SK_TRY_ASSIGN(const auto note, rest.take(header.note_bytes));
  out.note.assign(note.begin(), note.end());
  SK_TRY_ASSIGN(const auto options, rest.take(header.options_bytes));
  out.options.assign(options.begin(), options.end());
  for (size_t i = 0; i < header.programs; ++i) {
    Row row;
    std::memcpy(&row, &rows[i * sizeof row], sizeof row);
    SK_TRY(rest.take(padding(rest.taken())));
    SK_TRY_ASSIGN(const auto file, rest.take(row.bytes));
    out.programs.push_back({std::string(text_in(row.key)), std::string(text_in(row.chip)), {bytes.owner(), file}});
  }
  return out;
}

Result<CompiledModel> read_runnable(const SharedBytes& bytes) {
  SK_TRY_ASSIGN(CompiledModel made, read_compiled(bytes));
  if (made.graph.ops.empty())
    return error(ErrorCode::unsupported,
                 "it has programs without their model, as in the cache; skillet compile -o writes both");
  return made;
}

bool is_compiled_model(std::span<const uint8_t> start) {
  return std::ranges::equal(start.first(std::min(start.size(), kCompiledMark.size())), kCompiledMark);
}

Result<bool> is_compiled_model(const std::string& path) {
  SK_TRY_ASSIGN(const Bytes start, read_file_start(path, kCompiledMark.size()));
  return is_compiled_model(std::span<const uint8_t>(start));
}

uint64_t stated_bytes(std::span<const uint8_t> start) {
  Header header;
  if (start.size() < sizeof header || !is_compiled_model(start)) return 0;
  std::memcpy(&header, start.data(), sizeof header);
  const uint64_t bytes = header.stored_bytes + sizeof header;
  return bytes < sizeof header ? UINT64_MAX : bytes;
}

Result<void> check_compiled_start(std::span<const uint8_t> start, uint64_t size_bytes) {
  auto header = begin_header(start, size_bytes);
  return header.ok() ? Result<void>() : std::move(header).error();
}

}  // namespace skillet::runtime
