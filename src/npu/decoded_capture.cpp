#include "npu/decoded_capture.h"

namespace skillet::npu {

std::optional<BufferPlace> find_place(const capture::Submission& submission, uint64_t address) {
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (address < buffer.address || address - buffer.address >= buffer.size_bytes) continue;
    if (!capture::is_placed(submission, buffer)) continue;
    const uint64_t offset = address - buffer.address;
    return BufferPlace{&buffer, offset, buffer.size_bytes - offset};
  }
  return std::nullopt;
}

std::optional<BufferPlace> find_place(const capture::Submission& submission, const AnnotatedField& field) {
  if (field.unused && field.address == 0) return std::nullopt;
  return find_place(submission, field.address);
}

Result<Outline> outline_of(const Driver& driver, const Chip& chip, capture::Reader& reader) {
  Outline out;
  while (true) {
    SK_TRY_ASSIGN(const std::optional<capture::Submission> one, reader.next());
    if (!one) return out;
    auto decoded = driver.decode(chip, *one);
    if (!decoded.ok()) return std::move(decoded).error().with_context(fmt::format("submission {}", reader.index()));
    for (const AnnotatedField& field : decoded->fields) {
      if (field.kind != FieldKind::commands && field.kind != FieldKind::constant) continue;
      if (const auto place = find_place(*one, field)) out.constants[place->buffer->handle].insert(place->offset);
    }
    out.operations.push_back(std::move(decoded->operations));
  }
}

}  // namespace skillet::npu
