#include "tools/jobs/written.h"

#include <algorithm>

#include "tools/show/text_table.h"

namespace skillet::tools {

void count_differences(std::span<const uint8_t> a, std::span<const uint8_t> b, Written& out) {
  const size_t common = std::min(a.size(), b.size());
  out.differing = std::max(a.size(), b.size()) - common;
  out.first = common;
  for (size_t i = common; i-- > 0;) {
    if (a[i] == b[i]) continue;
    ++*out.differing;
    out.first = i;
  }
  if (*out.differing == 0) return;
  if (const Writer* const found = writer_of(out.writers, out.handle, out.first)) out.writer = *found;
  const bool is_signed = out.writer && out.writer->image.is_signed;
  const auto value = [is_signed](uint8_t byte) { return is_signed ? int{static_cast<int8_t>(byte)} : int{byte}; };
  for (size_t i = 0; i < common; ++i) out.largest = std::max(out.largest, std::abs(value(a[i]) - value(b[i])));
}

nlohmann::json json_of(const Written& one) {
  nlohmann::json writers = nlohmann::json::array();
  for (const Writer& writer : one.writers) {
    writers.push_back({{"job", writer.job}, {"what", writer.what}, {"offset", writer.offset}});
    if (!writer.op.empty()) writers.back()["op"] = writer.op;
  }
  nlohmann::json row = {{"submission", one.submission},
                        {"buffer", one.handle},
                        {"bytes", one.size_bytes},
                        {"written_by", writers},
                        {"hash", fmt::format("{:016x}", one.hash)}};
  if (one.differing) row["differing"] = *one.differing;
  if (one.differing.value_or(0) == 0) return row;
  row["first"] = one.first;
  row["largest"] = one.largest;
  if (one.writer) row["first_by"] = one.writer->job;
  if (const auto pixel = one.writer ? one.writer->pixel_at(one.first) : std::nullopt)
    row["pixel"] = {{"row", pixel->row}, {"column", pixel->column}, {"channel", pixel->channel}};
  return row;
}

std::string writers_text(const Written& one) {
  if (one.writers.empty()) return "";
  return one.writers[0].title() + (one.writers.size() > 1 ? fmt::format(" and {} more", one.writers.size() - 1) : "");
}

std::string difference_text(const Written& one) {
  if (!one.differing) return "";
  if (*one.differing == 0) return "no";
  std::string out =
      fmt::format("{} bytes by up to {}; first byte {}", print_count(*one.differing), one.largest, one.first);
  if (one.writer) out += ": " + one.writer->title();
  if (const auto pixel = one.writer ? one.writer->pixel_at(one.first) : std::nullopt)
    out += fmt::format(", row {}, column {}, channel {}", pixel->row, pixel->column, pixel->channel);
  return out;
}

}  // namespace skillet::tools
