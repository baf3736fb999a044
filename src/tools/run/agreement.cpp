#include "tools/run/agreement.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "tools/run/scores.h"

namespace skillet::tools {
namespace {

struct Sums {
  double product = 0, a_squares = 0, b_squares = 0, errors = 0, elems = 0, equal = 0, strange = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;

  // Equal values that are not finite do not count for angle and noise.
  void add(double a, double b) {
    elems += 1;
    equal += a == b || (std::isnan(a) && std::isnan(b)) ? 1 : 0;
    if (!std::isfinite(a) || !std::isfinite(b)) {
      strange += a == b || (std::isnan(a) && std::isnan(b)) ? 0 : 1;
      return;
    }
    product += a * b;
    a_squares += a * a;
    b_squares += b * b;
    errors += (a - b) * (a - b);
    low = std::min(low, b);
    high = std::max(high, b);
  }
  double cosine() const {
    if (strange > 0) return 0;
    if (a_squares == 0 || b_squares == 0) return a_squares == b_squares ? 1 : 0;
    return std::clamp(product / std::sqrt(a_squares) / std::sqrt(b_squares), -1.0, 1.0);  // rounding may go beyond
  }
  double psnr_db() const {
    if (strange > 0) return -std::numeric_limits<double>::infinity();
    if (errors == 0) return std::numeric_limits<double>::infinity();
    const double range = high > low ? high - low : 1;
    return 10 * std::log10(range * range * elems / errors);
  }
};

}  // namespace

double Agreement::largest_difference() const {
  Difference all;
  for (const Difference& one : differences) all.add(one);
  return all.largest;
}

Agreement agreement_of(const ir::Graph& graph, std::span<const Bytes> outputs, std::span<const Bytes> reference) {
  Agreement out;
  Sums sums;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(graph.outputs[i]);
    for (int64_t k = 0; k < tensor.shape.elems(); ++k)
      sums.add(real_value(tensor, outputs[i], k), real_value(tensor, reference[i], k));
    out.differences.push_back(difference_of(graph, i, outputs[i], reference[i]));
  }
  out.equal = sums.elems == 0 ? 1 : sums.equal / sums.elems;
  out.cosine = sums.cosine();
  out.psnr_db = sums.psnr_db();
  if (outputs.empty()) return out;
  const ir::Tensor& first = graph.tensor(graph.outputs[0]);
  out.same_class = same_class(first, outputs[0], reference[0]);
  return out;
}

void count_hits(const ir::Tensor& scores, std::span<const uint8_t> bytes, int64_t index, Hits& hits) {
  const std::vector<int64_t> best = top_classes(scores, bytes, 6);
  const bool is_first = !best.empty() && best[0] == index;
  hits.top1 += is_first ? 1 : 0;
  // Equal scores, which are common after rounding, have no order: all of them are in the top five, or none.
  const auto place = std::ranges::find(best, index) - best.begin();
  const bool ties_beyond = place < std::ssize(best) && best.size() > 5 &&
                           !(raw_value(scores, bytes, index) > raw_value(scores, bytes, best[5]));
  hits.top5 += is_first || (place < std::min<std::ptrdiff_t>(5, std::ssize(best)) && !ties_beyond) ? 1 : 0;
}

Result<std::vector<Truth>> parse_truth(std::string_view text) {
  SK_TRY_ASSIGN(const std::vector<std::string_view> lines, text_lines(text));
  std::vector<Truth> out;
  std::map<std::string, size_t> numbers;
  for (size_t number = 1; number <= lines.size(); ++number) {
    const std::string_view line = lines[number - 1];
    if (line.empty()) continue;
    const size_t gap = line.find_last_of(" \t");
    Truth one;
    const char* const from = gap == std::string_view::npos ? line.data() : line.data() + gap + 1;
    const auto [stop, failure] = std::from_chars(from, line.data() + line.size(), one.index);
    if (gap == std::string_view::npos || failure != std::errc() || stop != line.data() + line.size() || one.index < 0)
      return error(ErrorCode::malformed, "line {}: must be 'PICTURE CLASS', such as '3.png 3', not '{}'", number, line);
    one.name = line.substr(0, line.find_last_not_of(" \t", gap) + 1);
    const auto [first, is_new] = numbers.emplace(one.name, number);
    if (!is_new) return error(ErrorCode::malformed, "line {}: '{}' is in line {} too", number, one.name, first->second);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace skillet::tools
