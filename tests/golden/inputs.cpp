#include "inputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sha256.h"

namespace skillet::golden {
namespace {

using capture::BufferSnapshot;

constexpr size_t kHashDigits = 32;  // the recording keeps the first 128 bits

// Returns the buffer's snapshot before each submission that lists it.
std::vector<const BufferSnapshot*> uses(const capture::Capture& capture, uint32_t handle) {
  std::vector<const BufferSnapshot*> out;
  for (const capture::Submission& submission : capture.submissions) {
    for (const BufferSnapshot& buffer : submission.buffers) {
      if (buffer.handle == handle && buffer.listed) out.push_back(&buffer);
    }
  }
  return out;
}

bool is_zero(const BufferSnapshot& buffer) {
  return buffer.content == capture::Content::zero ||
         (buffer.content == capture::Content::bytes &&
          std::ranges::all_of(buffer.bytes, [](uint8_t b) { return b == 0; }));
}

// Returns `size` bytes from `offset` (which may be negative); bytes that are not stored are 0.
Bytes bytes_from(const BufferSnapshot& buffer, int64_t offset, uint64_t size) {
  Bytes out(size);
  const std::span<const uint8_t> stored(buffer.bytes);
  const auto first = static_cast<uint64_t>(std::max<int64_t>(offset, 0));
  const auto skipped = static_cast<uint64_t>(std::max<int64_t>(-offset, 0));
  if (first >= stored.size() || skipped >= size) return out;
  const auto count = std::min<uint64_t>(stored.size() - first, size - skipped);
  std::ranges::copy(stored.subspan(first, count), out.begin() + static_cast<ptrdiff_t>(skipped));
  return out;
}

// A graph input in both captures.
class ComparedInput {
 public:
  ComparedInput(const ComparedCase& c, const GraphInput& input, npu::CaptureComparison& comparison)
      : c_(c), input_(input), comparison_(comparison) {}

  void judge(InputCounts& counts) {
    const uint32_t handle = input_.place.handle;
    const auto match = std::ranges::find(comparison_.memory, handle, &npu::MatchedMemory::handle_b);
    if (match == comparison_.memory.end()) {
      ++counts.not_found;
      return;
    }
    distance_ = match->distance;
    const auto recorded = uses(c_.recorded, match->handle_a), ours = uses(c_.ours, handle);
    InputCounts first;
    for (size_t i = 0; i < std::min(recorded.size(), ours.size()); ++i)
      judge(*recorded[i], *ours[i], i == 0 ? counts : first);
  }

 private:
  void judge(const BufferSnapshot& recorded, const BufferSnapshot& ours, InputCounts& counts) {
    const uint64_t size = recorded.size_bytes;
    const Bytes written = bytes_from(ours, -distance_, size);
    if (is_zero(recorded) && !is_zero(ours)) {
      ++counts.not_written;
    } else if (recorded.content != capture::Content::unknown) {
      ++counts.by_bytes;
      compare(bytes_from(recorded, 0, size), written);
    } else if (const BufferHash* hash = kept_hash(recorded)) {
      ++counts.by_hash;
      const std::string text = sha256_hex(written).substr(0, kHashDigits);
      if (text != hash->sha256_128) add(": hash of the bytes that the host writes", hash->sha256_128, text);
    } else if (recorded.holds_input && static_cast<int64_t>(input_.place.offset_bytes) + distance_ == 0) {
      ++counts.by_host_bytes;
      compare(std::span(input_.bytes).first(std::min<size_t>(input_.bytes.size(), size)), written);
    } else {
      ++counts.not_kept;
    }
  }

  const BufferHash* kept_hash(const BufferSnapshot& recorded) const {
    const auto found = std::ranges::find(c_.recorded_hashes, recorded.handle, &BufferHash::handle);
    return found == c_.recorded_hashes.end() ? nullptr : &*found;
  }

  void compare(std::span<const uint8_t> recorded, const Bytes& ours) {
    size_t differing = 0, first = 0;
    for (size_t i = 0; i < recorded.size(); ++i) {
      if (recorded[i] != ours[i] && differing++ == 0) first = i;
    }
    if (differing == 0) return;
    add(fmt::format(": {} of {} bytes that the host writes, the first at {}", differing, recorded.size(), first),
        fmt::format("0x{:02x}", recorded[first]), fmt::format("0x{:02x}", ours[first]));
  }
  void add(const std::string& what, std::string recorded, std::string ours) {
    comparison_.differences.push_back(
        {npu::DifferenceKind::bytes, 0, input_.place.name + what, std::move(recorded), std::move(ours)});
  }

  const ComparedCase& c_;
  const GraphInput& input_;
  npu::CaptureComparison& comparison_;
  int64_t distance_ = 0;  // offset in the recorded buffer - offset in ours
};

}  // namespace

Result<std::vector<BufferHash>> read_buffer_hashes(const std::string& folder) {
  SK_TRY_ASSIGN(const Bytes bytes, read_file(folder + "/capture.json"));
  const auto json = nlohmann::json::parse(bytes.begin(), bytes.end(), nullptr, false);
  std::vector<BufferHash> out;
  if (!json.is_object() || !json.contains("submits")) return out;
  for (const auto& submission : json["submits"]) {
    for (const auto& buffer : submission.value("buffers", nlohmann::json::array())) {
      const uint32_t handle = buffer.value("handle", 0U);
      if (buffer.contains("file") || !buffer.contains("sha256_128")) continue;
      if (std::ranges::find(out, handle, &BufferHash::handle) == out.end())
        out.push_back({handle, buffer["sha256_128"]});
    }
  }
  return out;
}

InputCounts compare_inputs(const ComparedCase& c, npu::CaptureComparison& comparison) {
  InputCounts counts{.made_by_cpu = c.inputs_made_by_cpu};
  std::set<std::pair<uint32_t, uint64_t>> done;
  for (const GraphInput& input : c.our_inputs) {
    if (done.emplace(input.place.handle, input.place.offset_bytes).second)
      ComparedInput(c, input, comparison).judge(counts);
  }
  return counts;
}

}  // namespace skillet::golden
