#include "fingerprint.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>

#include "npu/decoded_capture.h"

namespace skillet::golden {
namespace {

using capture::BufferSnapshot;
using capture::Submission;
using npu::AnnotatedField;
using npu::FieldKind;

class Fingerprint {
 public:
  explicit Fingerprint(const npu::Outline& outline) : outline_(outline) {}

  void add(const Submission& submission, const npu::Annotated& decoded) {
    add("submission", fmt::format("{}", fmt::join(decoded.operations, " ")));
    std::map<std::string, uint64_t> parameters;
    for (const capture::Parameter& p : submission.parameters) parameters[p.name] = p.value;
    for (const auto& [name, value] : parameters) add(name, fmt::format("{}", value));
    named_.clear();
    for (const AnnotatedField& field : decoded.fields) {
      add(fmt::format("{} {}", field.operation, field.name), text(submission, field));
    }
    others(submission);
  }
  void add(const npu::KnownTensor& tensor) { add(tensor.name, place(tensor.handle, tensor.offset_bytes)); }
  uint64_t value() const { return hash_; }

 private:
  void add(std::string_view name, std::string_view value) {
    const std::string line = fmt::format("{} = {}", name, value);
    hash_ = XXH64(line.data(), line.size(), hash_);
  }

  std::string text(const Submission& submission, const AnnotatedField& field) {
    if (field.kind == FieldKind::value) return field.raw;
    if (field.address == 0) return "none";
    const auto at = npu::find_place(submission, field.address);
    if (!at) return fmt::format("0x{:x}, in no buffer", field.address);
    named_.insert(at->buffer->handle);
    const uint64_t covered = field.kind == FieldKind::commands ? field.extent_bytes : 0;
    return (field.kind == FieldKind::memory ? place(at->buffer->handle, at->offset)
                                            : contents(*at->buffer, at->offset, covered)) +
           use_text(*at->buffer);
  }

  std::string place(uint32_t handle, uint64_t offset) {
    const auto [known, is_new] = places_.try_emplace(handle, Place{places_.size(), offset});
    return fmt::format("memory {} + {}", known->second.rank,
                       static_cast<int64_t>(offset) - static_cast<int64_t>(known->second.first));
  }

  // Returns the stored bytes up to the next constant in the buffer; bytes that are not stored are 0.
  std::string contents(const BufferSnapshot& buffer, uint64_t from, uint64_t covered) const {
    if (buffer.content == capture::Content::unknown) return "not kept";
    uint64_t end = buffer.bytes.size();
    if (const auto starts = outline_.constants.find(buffer.handle); starts != outline_.constants.end()) {
      const auto next = starts->second.upper_bound(from);
      if (next != starts->second.end()) end = std::min<uint64_t>(end, *next);
    }
    from += covered;
    while (end > from && buffer.bytes.data()[end - 1] == 0) --end;
    return end <= from ? "zeros" : fmt::format("{:016x}", XXH64(buffer.bytes.data() + from, end - from, 0));
  }

  static std::string use_text(const BufferSnapshot& buffer) {
    return fmt::format("{}{}{}", buffer.listed ? ", listed" : "", buffer.read ? ", read" : "",
                       buffer.write ? ", written" : "");
  }
  // Adds listed buffers that no job names.
  void others(const Submission& submission) {
    std::multiset<std::string> uses;
    for (const BufferSnapshot& buffer : submission.buffers) {
      if (buffer.listed && !named_.contains(buffer.handle)) uses.insert(use_text(buffer));
    }
    add("others", fmt::format("{}", fmt::join(uses, "; ")));
  }

  struct Place {
    size_t rank;
    uint64_t first;
  };
  const npu::Outline& outline_;
  std::map<uint32_t, Place> places_;  // by handle
  std::set<uint32_t> named_;          // handles, in this submission
  uint64_t hash_ = 0;
};

}  // namespace

Result<uint64_t> fingerprint(const npu::Driver& driver, const npu::Chip& chip, npu::ComparedSide side) {
  SK_TRY_ASSIGN(const npu::Outline outline, npu::outline_of(driver, chip, side.reader));
  side.reader.rewind();
  Fingerprint out(outline);
  while (true) {
    SK_TRY_ASSIGN(const std::optional<Submission> one, side.reader.next());
    if (!one) break;
    SK_TRY_ASSIGN(const npu::Annotated decoded, driver.decode(chip, *one));
    out.add(*one, decoded);
  }
  for (const npu::KnownTensor& tensor : side.tensors) out.add(tensor);
  return out.value();
}

}  // namespace skillet::golden
