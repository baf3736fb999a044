#include <algorithm>
#include <bit>
#include <set>

#include "program/program.h"

namespace skillet::npu {
namespace {

constexpr uint64_t kAddressSpaceBytes = 1ULL << 40;  // no known NPU addresses more
constexpr uint32_t kPageBytes = 4096;                // alignment of a device's buffers
constexpr size_t kMaxBuffers = 1 << 20;
constexpr ir::TensorId kMaxTensor = 1 << 18;  // in one part of a graph

// True if [offset, offset + size) is within `limit` bytes.
bool inside(uint64_t offset, uint64_t size, uint64_t limit) { return offset <= limit && size <= limit - offset; }

Error bad(std::string message) { return Error{ErrorCode::malformed, std::move(message)}; }

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  Result<void> run() const {
    if (const uint32_t align = program_.constant_align;
        align > kPageBytes || (align != 0 && !std::has_single_bit(align)))
      return bad(fmt::format("constants at multiples of {} bytes", align));
    SK_TRY(buffers());
    for (const Buffer& one : program_.buffers) SK_TRY(relocations(one));
    for (const auto* jobs : {&program_.init_jobs, &program_.jobs}) {
      for (size_t i = 0; i < jobs->size(); ++i)
        SK_TRY_IN_CONTEXT(job((*jobs)[i], i), fmt::format("job '{}'", (*jobs)[i].name));
    }
    for (const Job& one : program_.init_jobs) {
      if (!one.uses.empty()) return bad(fmt::format("init job '{}' lists buffers", one.name));
    }
    SK_TRY(bindings(program_.inputs, BufferRole::input, "input"));
    SK_TRY(bindings(program_.outputs, BufferRole::output, "output"));
    SK_TRY(bindings(program_.intermediates, BufferRole::scratch, "intermediate"));
    SK_TRY(witnesses());
    return debug_map();
  }

 private:
  bool exists(BufferId id) const { return id < program_.buffers.size(); }
  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }

  Result<void> buffers() const {
    if (program_.buffers.size() > kMaxBuffers) return bad("more than a million buffers");
    uint64_t total = 0;
    for (const Buffer& one : program_.buffers) {
      if (one.size_bytes == 0) return bad(fmt::format("buffer '{}': size 0", one.name));
      if (one.size_bytes > kAddressSpaceBytes - total)
        return bad(fmt::format("buffer '{}': {} bytes; all buffers together exceed 1 TiB", one.name, one.size_bytes));
      total += one.size_bytes;
      if (one.contents.size() > one.size_bytes)
        return bad(
            fmt::format("buffer '{}': contents of {} bytes in {}", one.name, one.contents.size(), one.size_bytes));
      if (!one.is_constant() && !(one.contents.empty() && one.relocations.empty()))
        return bad(fmt::format("buffer '{}': contents, but it is not constant", one.name));
      if (one.role == BufferRole::commands && one.contents.size() != one.size_bytes)
        return bad(
            fmt::format("buffer '{}': {} bytes of commands in {}", one.name, one.contents.size(), one.size_bytes));
    }
    return {};
  }

  Result<void> relocations(const Buffer& where) const {
    for (const Relocation& one : where.relocations)
      SK_TRY_IN_CONTEXT(relocation(one, where.size_bytes),
                        fmt::format("{}: relocation at byte {}", where.name, one.at_byte));
    return {};
  }

  Result<void> relocation(const Relocation& one, uint64_t size_bytes) const {
    if (one.width_bits == 0 || one.bytes() > 8) return bad("its bits are not in 1 to 8 bytes");
    if (!inside(one.at_byte, one.bytes(), size_bytes))
      return bad(fmt::format("is outside the {} bytes there", size_bytes));
    if (one.shift > 63) return bad(fmt::format("shift {}", one.shift));
    if (!exists(one.target)) return bad(fmt::format("no buffer {}", one.target));
    const Buffer& target = buffer(one.target);
    if (one.target_offset_bytes > target.size_bytes)
      return bad(fmt::format("offset {} in '{}', which has {} bytes", one.target_offset_bytes, target.name,
                             target.size_bytes));
    return {};
  }

  Result<void> job(const Job& one, size_t index) const {
    if (one.commands.empty()) return bad("no commands");
    std::set<BufferId> listed;
    for (const BufferUse& use : one.uses) {
      if (!exists(use.buffer)) return bad(fmt::format("no buffer {}", use.buffer));
      if (!listed.insert(use.buffer).second) return bad(fmt::format("lists buffer {} twice", use.buffer));
      if (use.write && buffer(use.buffer).is_constant())
        return bad(fmt::format("writes the constant buffer '{}'", buffer(use.buffer).name));
    }
    for (const ByteRange& range : one.commands) SK_TRY(commands(range, listed));
    for (const uint32_t before : one.after) {
      if (before >= index) return bad(fmt::format("comes after job {}, which is not an earlier job", before));
    }
    return {};
  }

  Result<void> commands(const ByteRange& range, const std::set<BufferId>& listed) const {
    if (!exists(range.buffer)) return bad(fmt::format("commands in buffer {}, which does not exist", range.buffer));
    const Buffer& there = buffer(range.buffer);
    if (there.role != BufferRole::commands || range.size_bytes == 0 ||
        !inside(range.offset_bytes, range.size_bytes, there.size_bytes))
      return bad(fmt::format("{} bytes of commands at {} in buffer '{}' of {} bytes", range.size_bytes,
                             range.offset_bytes, there.name, there.size_bytes));
    for (const Relocation& one : there.relocations) {
      if (one.at_byte < range.offset_bytes || one.at_byte >= range.offset_bytes + range.size_bytes) continue;
      if (!listed.contains(one.target) && buffer(one.target).role != BufferRole::commands)
        return bad(
            fmt::format("the commands point to buffer '{}', which the job does not list", buffer(one.target).name));
    }
    return {};
  }

  // Checks a witness by itself; witnesses() compares it with everything else.
  Result<void> witness(const Job& job) const {
    const bool writes = std::ranges::any_of(job.uses, &BufferUse::write);
    const ByteRange& range = job.witness;
    if (range.size_bytes == 0) return writes ? Result<void>(bad("writes buffers, but has no witness")) : Result<void>();
    if (!exists(range.buffer)) return bad(fmt::format("witness in buffer {}, which does not exist", range.buffer));
    const Buffer& there = buffer(range.buffer);
    if (range.size_bytes > kWitnessBytes || !inside(range.offset_bytes, range.size_bytes, there.size_bytes))
      return bad(fmt::format("witness of {} bytes at {} in buffer '{}' of {} bytes", range.size_bytes,
                             range.offset_bytes, there.name, there.size_bytes));
    if (there.is_constant()) return bad(fmt::format("witness in the constant buffer '{}'", there.name));
    const auto is_written = [&](const BufferUse& use) { return use.buffer == range.buffer && use.write; };
    if (!std::ranges::any_of(job.uses, is_written))
      return bad(fmt::format("witness in buffer '{}', which the job does not write", there.name));
    return {};
  }

  // Bytes that belong to one job or input.
  struct Owned {
    ByteRange range;
    const Job* job = nullptr;                // of a witness
    const TensorBinding* binding = nullptr;  // of an input

    uint64_t end() const { return range.offset_bytes + range.size_bytes; }
    std::string owner() const {
      return job != nullptr ? fmt::format("job '{}'", job->name) : fmt::format("input tensor {}", binding->tensor);
    }
  };

  Result<void> witnesses() const {
    std::vector<Owned> owned;
    for (const Job& one : program_.jobs) {
      SK_TRY_IN_CONTEXT(witness(one), fmt::format("job '{}'", one.name));
      if (one.witness.size_bytes != 0) owned.push_back({one.witness, &one, nullptr});
    }
    for (const TensorBinding& one : program_.inputs)
      owned.push_back({{one.buffer, one.offset_bytes, one.layout.size_bytes}, nullptr, &one});
    return disjoint(std::move(owned));
  }

  // Witnesses must not overlap anything; inputs may overlap. Sorts by address: comparing all pairs could be too slow.
  static Result<void> disjoint(std::vector<Owned> owned) {
    std::ranges::sort(owned, {}, [](const Owned& one) { return std::pair(one.range.buffer, one.range.offset_bytes); });
    const Owned *furthest = nullptr, *furthest_witness = nullptr;  // of the earlier ones: which ends last
    for (const Owned& one : owned) {
      const Owned* before = one.job != nullptr ? furthest : furthest_witness;
      if (before != nullptr && before->range.buffer == one.range.buffer && before->end() > one.range.offset_bytes)
        return bad(fmt::format("{} and {}: the witness of one overlaps the other", before->owner(), one.owner()));
      const auto keep = [&](const Owned*& last) {
        if (last == nullptr || last->range.buffer != one.range.buffer || last->end() < one.end()) last = &one;
      };
      keep(furthest);
      if (one.job != nullptr) keep(furthest_witness);
    }
    return {};
  }

  // Inputs and outputs may be in a buffer of another role: an output that is also an intermediate is scratch.
  Result<void> bindings(const std::vector<TensorBinding>& list, BufferRole role, std::string_view what) const {
    for (const TensorBinding& one : list) {
      const std::string at = fmt::format("{} tensor {}", what, one.tensor);
      if (one.tensor < 0 || one.tensor > kMaxTensor) return bad(fmt::format("{}: no tensor", at));
      if (!exists(one.buffer)) return bad(fmt::format("{}: no buffer {}", at, one.buffer));
      if (!inside(one.offset_bytes, one.layout.size_bytes, buffer(one.buffer).size_bytes))
        return bad(fmt::format("{}: {} bytes at {} are outside buffer '{}' of {} bytes", at, one.layout.size_bytes,
                               one.offset_bytes, buffer(one.buffer).name, buffer(one.buffer).size_bytes));
      SK_TRY(check(one.layout, one.shape).with_context(at));
      if (role == BufferRole::input && buffer(one.buffer).is_constant())
        return bad(fmt::format("{}: buffer '{}' is constant", at, buffer(one.buffer).name));
    }
    return {};
  }

  Result<void> debug_map() const {
    const auto operations = static_cast<int64_t>(program_.operations.size());
    for (const DebugEntry& one : program_.debug_map) {
      if (!exists(one.buffer) || !inside(one.offset_bytes, one.size_bytes, buffer(one.buffer).size_bytes))
        return bad(fmt::format("debug map: '{}' is outside its buffer", one.what));
      if (one.operation < -1 || one.operation >= operations)
        return bad(fmt::format("debug map: '{}': no operation {}", one.what, one.operation));
    }
    return {};
  }

  const Program& program_;
};

}  // namespace

Result<void> verify(const Program& program) { return Verifier(program).run().with_context("program"); }

}  // namespace skillet::npu
