#include "tools/jobs/writers.h"

#include "npu/decoded_capture.h"

namespace skillet::tools {
namespace {

// "job 1" of "job 1 nn_instruction.out_address"; the operation's number if the path only counts words.
std::string job_of(const npu::AnnotatedField& field) {
  const std::string& path = field.path;
  if (path.starts_with("word ")) return fmt::format("job {}", field.operation);
  const size_t first = path.find(' ');
  return path.substr(0, first == std::string::npos ? first : path.find(' ', first + 1));
}

}  // namespace

std::optional<Pixel> Writer::pixel_at(uint64_t byte_of_buffer) const {
  if (image.channels == 0 || image.row_bytes == 0 || image.plane_bytes == 0 || byte_of_buffer < offset) return {};
  const uint64_t at = byte_of_buffer - offset, in_plane = at % image.plane_bytes;
  const Pixel out{.row = in_plane / image.row_bytes,
                  .column = in_plane % image.row_bytes / image.pixel_bytes,
                  .channel = at / image.plane_bytes * image.pixel_bytes + in_plane % image.pixel_bytes};
  if (out.row >= image.height || out.column >= image.width || out.channel >= image.channels) return {};
  return out;
}

std::string Writer::title() const {
  return fmt::format("{} {}{}", job, what, op.empty() ? "" : fmt::format(" ({})", op));
}

std::vector<Writer> writers_of(const npu::Annotated& decoded, const capture::Submission& submission,
                               const std::vector<std::string>& ops) {
  std::vector<Writer> out;
  for (const npu::AnnotatedField& field : decoded.fields) {
    if (!field.output || field.unused || field.operation >= decoded.operations.size()) continue;
    const auto place = npu::find_place(submission, field.address);
    if (!place) continue;
    const size_t i = field.operation;
    out.push_back({.handle = place->buffer->handle,
                   .offset = place->offset,
                   .job = job_of(field),
                   .what = decoded.operations[i],
                   .op = i < ops.size() ? ops[i] : "",
                   .image = i < decoded.images.size() ? decoded.images[i] : npu::WrittenImage{}});
  }
  return out;
}

const Writer* writer_of(const std::vector<Writer>& writers, uint32_t handle, uint64_t byte_of_buffer) {
  const Writer* found = nullptr;
  for (const Writer& one : writers) {
    if (one.handle != handle || one.offset > byte_of_buffer) continue;
    if (found == nullptr || one.offset >= found->offset) found = &one;
  }
  return found;
}

}  // namespace skillet::tools
