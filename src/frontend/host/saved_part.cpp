#include "frontend/host/saved_part.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "runtime/address_check.h"
#include "runtime/loaded_program.h"
#include "runtime/program_cache.h"

namespace skillet::host {
namespace {

constexpr size_t kKeyBytes = 32;  // of runtime::cache_key()

// Then: the graph as text, without its constants; these, in order; a row for each program; the program files.
struct Header {
  std::array<char, 8> magic = {'S', 'K', 'I', 'L', 'P', 'A', 'R', 'T'};
  uint32_t version = 1;
  uint32_t programs = 0, constants = 0, reserved = 0;
  uint64_t text_bytes = 0, constant_bytes = 0;
  uint64_t stored_bytes = 0;  // after the header
  uint64_t checksum = 0;      // XXH3 of what is stored, seeded with XXH3 of the header, where this is 0
  std::array<char, 32> chip{}, build{};
};
static_assert(sizeof(Header) == 120);
struct StoredProgram {
  std::array<char, kKeyBytes> key;
  uint64_t bytes;
};

uint64_t checksum_of(Header header, std::span<const uint8_t> stored) {
  header.checksum = 0;
  return XXH3_64bits_withSeed(stored.data(), stored.size(), XXH3_64bits(&header, sizeof header));
}

void put(std::array<char, 32>& to, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), to.size()), to.begin());
}
std::string_view text_in(const std::array<char, 32>& field) {
  return {field.data(), static_cast<size_t>(std::ranges::find(field, '\0') - field.begin())};
}
Header header_for(std::string_view chip) {
  Header header;
  put(header.chip, chip);
  put(header.build, compile::build_id());
  return header;
}

template <typename T>
void append(Bytes& to, const T* from, size_t count) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  to.insert(to.end(), bytes, bytes + count * sizeof(T));
}

// Takes from the front; none: there is less.
class Rest {
 public:
  explicit Rest(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  Result<std::span<const uint8_t>> take(uint64_t count) {
    if (count > bytes_.size()) return error(ErrorCode::malformed, "its lengths contradict each other");
    const auto out = bytes_.first(static_cast<size_t>(count));
    bytes_ = bytes_.subspan(static_cast<size_t>(count));
    return out;
  }

 private:
  std::span<const uint8_t> bytes_;
};

Result<Header> read_header(std::span<const uint8_t> bytes) {
  const Header expected;
  Header header;
  if (bytes.size() < sizeof header || !std::equal(expected.magic.begin(), expected.magic.end(), bytes.begin()))
    return error(ErrorCode::malformed, "it is not a compiled part of Skillet");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != expected.version)
    return error(ErrorCode::unsupported, "it has version {}, this Skillet reads {}: compile the model again",
                 header.version, expected.version);
  const auto stored = bytes.subspan(sizeof header);
  if (header.stored_bytes != stored.size())
    return error(ErrorCode::malformed, "it has {} bytes instead of {}: it was cut off", bytes.size(),
                 sizeof header + header.stored_bytes);
  if (header.checksum != checksum_of(header, stored))
    return error(ErrorCode::malformed, "it is damaged: its checksum is another");
  return header;
}

constexpr std::string_view kConstant = " const=";  // before what the text form has of one

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
  // A few letters would be zeros of any size.
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

Result<Bytes> save_part(const std::string& chip, const ir::Graph& graph,
                        const std::map<std::string, SharedBytes>& programs) {
  Header header = header_for(chip);
  Bytes out(sizeof header);
  const std::string text = text_of(graph);
  append(out, text.data(), text.size());
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const Constant row{i, graph.tensors[i].data.size()};
    if (graph.tensors[i].data.data() == nullptr) continue;
    append(out, &row, 1);
    header.constant_bytes += row.bytes;
    ++header.constants;
  }
  for (const ir::Tensor& tensor : graph.tensors) append(out, tensor.data.data(), tensor.data.size());
  for (const auto& [key, file] : programs) {
    StoredProgram row{{}, file.size()};
    if (key.size() != row.key.size()) return error(ErrorCode::internal, "a key of {} bytes", key.size());
    std::ranges::copy(key, row.key.begin());
    append(out, &row, 1);
  }
  for (const auto& [key, file] : programs) append(out, file.data(), file.size());
  header.programs = static_cast<uint32_t>(programs.size());
  header.text_bytes = text.size();
  header.stored_bytes = out.size() - sizeof header;
  header.checksum = checksum_of(header, std::span<const uint8_t>(out).subspan(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

Result<SavedPart> read_part(const SharedBytes& bytes) {
  SK_TRY_ASSIGN(const Header header, read_header(bytes));
  Rest rest(std::span<const uint8_t>(bytes).subspan(sizeof header));
  SavedPart out{.chip = printable(text_in(header.chip)), .is_of_this_build = header.build == header_for("").build};
  SK_TRY_ASSIGN(const auto text, rest.take(header.text_bytes));
  SK_TRY_ASSIGN(const auto listed, rest.take(uint64_t{header.constants} * sizeof(Constant)));
  SK_TRY_ASSIGN(const auto constants, rest.take(header.constant_bytes));
  SK_TRY_ASSIGN(out.graph,
                read_graph({reinterpret_cast<const char*>(text.data()), text.size()}, listed, Rest(constants), bytes));
  SK_TRY_ASSIGN(const auto rows, rest.take(uint64_t{header.programs} * sizeof(StoredProgram)));
  for (size_t i = 0; i < header.programs; ++i) {
    StoredProgram row;
    std::memcpy(&row, &rows[i * sizeof row], sizeof row);
    SK_TRY_ASSIGN(const auto file, rest.take(row.bytes));
    out.programs.emplace(std::string(row.key.begin(), row.key.end()), SharedBytes(bytes.owner(), file));
  }
  return out;
}

Result<npu::Program> KeepingDriver::compile(const npu::Chip& chip, const ir::Graph& graph,
                                            const npu::CompileOptions& options) const {
  const std::string key = runtime::cache_key(chip, graph, options);
  if (const auto found = given_.find(key); found != given_.end()) {
    auto program = npu::deserialise(found->second);
    auto checked = program.ok() ? runtime::check_program(*program, chip.name, graph) : std::move(program).error();
    if (checked.ok()) checked = runtime::check_addresses(inner(), chip, *program);
    if (checked.ok()) {
      ++taken_;
      return program;
    }
    log::warning("a stored program is damaged ({}); compiling", checked.error().message);
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(key); found != kept_.end()) return found->second.program;
  }
  SK_TRY_ASSIGN(npu::Program program, inner().compile(chip, graph, options));
  const std::lock_guard lock(mutex_);
  kept_.insert_or_assign(key, Kept{runtime::graph_key(graph), program});
  return program;
}

Result<std::map<std::string, SharedBytes>> KeepingDriver::kept(compile::Compiled& compiled) const {
  std::set<std::string> used;
  for (compile::Part& part : compiled.parts)
    for (const compile::PartProgram& one : compile::programs(part)) used.insert(runtime::graph_key(*one.graph));
  std::map<std::string, SharedBytes> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, one] : kept_) {
    if (!used.contains(one.graph)) continue;
    SK_TRY_ASSIGN(Bytes file, npu::serialise(one.program, true));
    out.emplace(key, std::move(file));
  }
  return out;
}

}  // namespace skillet::host
