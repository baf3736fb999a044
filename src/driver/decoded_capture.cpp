#include "driver/decoded_capture.h"

namespace skillet::driver {

std::optional<BufferPlace> find_place(const capture::Submission& submission, uint64_t address) {
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (buffer.address == 0 || address < buffer.address || address - buffer.address >= buffer.size_bytes) continue;
    const uint64_t offset = address - buffer.address;
    return BufferPlace{&buffer, offset, buffer.size_bytes - offset};
  }
  return std::nullopt;
}

Result<DecodedCapture> decode(const Driver& driver, const Chip& chip, const capture::Capture& capture) {
  DecodedCapture out{.capture = &capture};
  for (size_t i = 0; i < capture.submissions.size(); ++i) {
    auto decoded = driver.decode(chip, capture.submissions[i]);
    if (!decoded.ok()) return std::move(decoded).error().with_context(fmt::format("submission {}", i));
    for (const AnnotatedField& field : decoded->fields) {
      if (field.kind != FieldKind::commands && field.kind != FieldKind::constant) continue;
      if (const auto place = find_place(capture.submissions[i], field.address))
        out.constants[place->buffer->handle].insert(place->offset);
    }
    out.submissions.push_back(std::move(decoded).value());
  }
  return out;
}

}  // namespace skillet::driver
