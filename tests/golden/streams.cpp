#include "streams.h"

#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/int_math.h"

namespace skillet::golden {
namespace {

using npu::BufferId;
using npu::Program;
using npu::Relocation;
using Json = nlohmann::json;

constexpr size_t kShownBytes = 512, kChunkBytes = 4096;

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}
template <typename Items>
std::string hash(const Items& items) {
  return fmt::format("{:016x}", XXH3_64bits(items.data(), items.size() * sizeof(items[0])));
}

// Cuts our buffers into pieces, so that the view does not depend on what shares a buffer: constants at every offset
// that an address names, memory at the beginning of each group of overlapping tensors.
class Cuts {
 public:
  explicit Cuts(const Program& program) : program_(program), starts_(program.buffers.size(), {0}) {
    for (const npu::Buffer& buffer : program.buffers) add(buffer.relocations);
    for (BufferId b = 0; b < program.buffers.size(); ++b) add_tensors(b);
  }

  struct Cut {
    BufferId buffer = 0;
    uint64_t begin = 0, end = 0;
    bool operator<(const Cut& other) const { return std::tie(buffer, begin) < std::tie(other.buffer, other.begin); }
  };
  Cut at(BufferId buffer, uint64_t offset) const {
    const std::set<uint64_t>& starts = starts_[buffer];
    const auto next = starts.upper_bound(offset);
    return {buffer, *std::prev(next), next == starts.end() ? program_.buffers[buffer].size_bytes : *next};
  }

 private:
  bool is_constant(BufferId b) const { return program_.buffers[b].role == npu::BufferRole::constant; }
  void add(const std::vector<Relocation>& relocations) {
    for (const Relocation& r : relocations) {
      if (is_constant(r.target)) starts_[r.target].insert(r.target_offset_bytes);
    }
  }
  void add_tensors(BufferId buffer) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const auto* list : {&program_.inputs, &program_.outputs, &program_.intermediates}) {
      for (const npu::TensorBinding& t : *list) {
        if (t.buffer == buffer) ranges.emplace_back(t.offset_bytes, t.end());
      }
    }
    std::sort(ranges.begin(), ranges.end());
    uint64_t end = 0;
    for (const auto& [from, to] : ranges) {
      if (end != 0 && from >= end) starts_[buffer].insert(from);
      end = std::max(end, to);
    }
  }

  const Program& program_;
  std::vector<std::set<uint64_t>> starts_;  // by buffer, ascending
};

class View {
 public:
  View(const Program& program, const ir::Graph& graph) : program_(program), graph_(graph), cuts_(program) {}

  Json run() {
    Json out;
    out["jobs"] = Json::array();
    for (const npu::Job& job : program_.init_jobs) out["jobs"].push_back(view(job, "init"));
    for (const npu::Job& job : program_.jobs) out["jobs"].push_back(view(job, "job"));
    out["bindings"] = Json::array();
    for (const npu::TensorBinding& t : program_.inputs) out["bindings"].push_back(view(t, "input"));
    for (const npu::TensorBinding& t : program_.outputs) out["bindings"].push_back(view(t, "output"));
    out["constants"] = std::move(constants_);
    out["buffers"] = buffers();
    return out;
  }

 private:
  Json view(const npu::Job& job, std::string_view kind) {
    touched_.clear();
    Json commands = Json::array();
    for (const npu::ByteRange& range : job.commands) {
      const auto raw = npu::bytes_of(program_, range);
      Bytes bytes(raw.begin(), raw.end());
      Json addresses = take_addresses(bytes, range.offset_bytes, relocations_of(range.buffer));
      commands.push_back({{"bytes", hex(bytes)}, {"addresses", std::move(addresses)}});
    }
    return {{"kind", kind}, {"commands", std::move(commands)}, {"uses", uses(job)}};
  }

  // Lists how the job lists each buffer that it reaches by an address: "none" if it does not list the buffer, "unused
  // NAME" if it lists one that it does not reach. Shows constants only if listed unusually: any number may share a
  // buffer.
  Json uses(const npu::Job& job) {
    std::map<BufferId, std::string> listed;
    for (const npu::BufferUse& use : job.uses)
      listed[use.buffer] += fmt::format("{}{}", use.read ? "r" : "", use.write ? "w" : "");
    std::set<std::string> rows;
    std::set<BufferId> reached;
    for (const auto& [cut, name] : touched_) {
      reached.insert(cut.buffer);
      const std::string how = listed.contains(cut.buffer) ? listed[cut.buffer] : "none";
      if (name[0] != 'c' || how != "r") rows.insert(fmt::format("{} {}", name, how));
    }
    for (const auto& [buffer, how] : listed) {
      if (!reached.contains(buffer)) rows.insert(fmt::format("unused {} {}", name_of(cuts_.at(buffer, 0)), how));
    }
    return rows;
  }

  // Clears the address bits of `bytes`, which begin at `begin`, and returns what they contained.
  Json take_addresses(Bytes& bytes, uint64_t begin, const std::vector<Relocation>& relocations) {
    Json out = Json::array();
    std::vector<Relocation> sorted;
    for (const Relocation& r : relocations) {
      if (r.at_byte >= begin && r.at_byte < begin + bytes.size()) sorted.push_back(r);
    }
    std::sort(sorted.begin(), sorted.end(), [](const Relocation& a, const Relocation& b) {
      return std::tie(a.at_byte, a.lsb) < std::tie(b.at_byte, b.lsb);
    });
    for (const Relocation& r : sorted) {
      const uint64_t bit = 8 * (r.at_byte - begin) + r.lsb;
      for (uint64_t i = bit; i < bit + r.width_bits; ++i) bytes[i / 8] &= static_cast<uint8_t>(~(1U << (i % 8)));
      const Cuts::Cut cut = cuts_.at(r.target, r.target_offset_bytes);
      out.push_back({bit, r.width_bits, r.shift, name_of(cut), r.target_offset_bytes - cut.begin});
    }
    return out;
  }

  std::string name_of(const Cuts::Cut& cut) {
    std::string name;
    if (program_.buffers[cut.buffer].role == npu::BufferRole::constant)
      name = constant_name(cut);
    else
      name = memory_.try_emplace(cut, fmt::format("t{}", memory_.size())).first->second;
    touched_[cut] = name;
    return name;
  }

  std::string constant_name(const Cuts::Cut& cut) {
    if (const auto known = names_.find(cut); known != names_.end()) {
      touch_targets(known->second.second);
      return known->second.first;
    }
    names_[cut] = {"self", {}};  // while naming its own addresses
    auto outer = std::exchange(touched_, {});
    Bytes bytes = contents(cut);
    Json addresses = take_addresses(bytes, cut.begin, relocations_of(cut.buffer));
    while (!bytes.empty() && bytes.back() == 0) bytes.pop_back();
    Json shown{{"size", bytes.size()}, {"addresses", std::move(addresses)}};
    if (bytes.size() <= kShownBytes) {
      shown["bytes"] = hex(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); i += kChunkBytes)
        shown["hashes"].push_back(hash(std::span(bytes).subspan(i, std::min(kChunkBytes, bytes.size() - i))));
    }
    const std::string text = shown.dump();
    const std::string name = "c" + hash(text);
    constants_[name] = std::move(shown);
    names_[cut] = {name, touched_};
    outer.merge(touched_);
    touched_ = std::move(outer);
    return name;
  }
  void touch_targets(const std::map<Cuts::Cut, std::string>& targets) {
    touched_.insert(targets.begin(), targets.end());
  }

  Bytes contents(const Cuts::Cut& cut) const {
    const std::span<const uint8_t> all = program_.buffers[cut.buffer].contents;
    const size_t from = std::min<size_t>(cut.begin, all.size()), to = std::min<size_t>(cut.end, all.size());
    Bytes bytes(all.begin() + static_cast<ptrdiff_t>(from), all.begin() + static_cast<ptrdiff_t>(to));
    for (const Relocation& r : relocations_of(cut.buffer)) {  // keeps words that are addresses, zero or not
      if (r.at_byte >= cut.begin && r.at_byte < cut.end)
        bytes.resize(std::max<size_t>(bytes.size(), r.at_byte - cut.begin + r.bytes()));
    }
    return bytes;
  }

  const std::vector<Relocation>& relocations_of(BufferId buffer) const { return program_.buffers[buffer].relocations; }

  Json view(const npu::TensorBinding& t, std::string_view kind) {
    const Cuts::Cut cut = cuts_.at(t.buffer, t.offset_bytes);
    return {kind, name_of(cut), t.offset_bytes - cut.begin, t.layout.xor_byte, element_places(t)};
  }

  // Hash of the byte offsets, from the binding's begin, of all elements in the graph's order.
  std::string element_places(const npu::TensorBinding& t) const {
    const npu::ImageShape s = npu::image_shape(graph_.tensor(t.tensor));
    std::vector<uint64_t> places;
    for (int64_t row = 0; row < s.images * s.height; ++row) {
      for (int64_t i = 0; i < s.width * s.channels; ++i)
        places.push_back(place(t.layout, row / s.height, row % s.height, i / s.channels, i % s.channels));
    }
    return hash(places);
  }

  static uint64_t place(const npu::TensorLayout& l, int64_t n, int64_t y, int64_t x, int64_t c) {
    const auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
    return u(n) * l.image + u(y) * l.row + u(x) * l.px + u(c / l.block) * l.block_stride + u(c % l.block) * l.elem;
  }

  Json buffers() const {
    static constexpr std::string_view kRoles[] = {"constant", "commands", "input", "output", "scratch"};
    Json out;
    for (const npu::Buffer& buffer : program_.buffers) {
      Json& row = out[std::string(kRoles[static_cast<size_t>(buffer.role)])];
      if (row.is_null()) row = {0, 0};
      row[0] = row[0].get<uint64_t>() + 1;
      row[1] = row[1].get<uint64_t>() + buffer.size_bytes;
    }
    return out;
  }

  const Program& program_;
  const ir::Graph& graph_;
  Cuts cuts_;
  std::map<Cuts::Cut, std::string> memory_;   // names of memory
  std::map<Cuts::Cut, std::string> touched_;  // what the job being viewed reaches
  std::map<Cuts::Cut, std::pair<std::string, std::map<Cuts::Cut, std::string>>> names_;  // of constants; their targets
  Json constants_ = Json::object();
};

}  // namespace

Json device_view(const Program& program, const ir::Graph& graph) { return View(program, graph).run(); }

}  // namespace skillet::golden
