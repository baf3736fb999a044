#include "npus/ethosu/compiler/cascade.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/ethosu/compiler/lower.h"
#include "npus/ethosu/compiler/placement.h"

namespace skillet::npus::ethosu {
namespace {

// Rows [first, end).
struct Rows {
  uint32_t first = 0, end = 0;
};

class Cutter {
 public:
  Cutter(const ir::Graph& graph, std::vector<Operation> operations, std::span<const ir::TensorId> same_as)
      : graph_(graph), operations_(std::move(operations)), uses_(same_as.size()) {
    out_.rows.resize(same_as.size());
    const auto use = [&](ir::TensorId id, int count) {
      if (id != ir::kNoTensor) uses_[static_cast<size_t>(same_as[static_cast<size_t>(id)])] += count;
    };
    constexpr int kMany = 1 << 20;
    for (const Operation& one : operations_)
      for (const Map* map : {&one.input, &one.input2, &one.output}) use(map->tensor, 1);
    for (const auto* list : {&graph.inputs, &graph.outputs})
      for (const ir::TensorId id : *list) use(id, kMany);
    for (size_t i = 0; i < same_as.size(); ++i)
      if (static_cast<size_t>(same_as[i]) != i) use(static_cast<ir::TensorId>(i), kMany);
  }

  Cascaded run() {
    for (size_t first = 0; first < operations_.size();) {
      size_t last = first;
      while (is_between(last) &&
             bytes_of(operations_[last].output, 0) + bytes_of(operations_[last + 1].output, 0) > kFastBytes)
        ++last;
      if (last > first && cut(first, last)) {
        first = last + 1;
        continue;
      }
      out_.operations.push_back(std::move(operations_[first++]));
    }
    return std::move(out_);
  }

 private:
  // Averages with padding divide by the pixels that exist; a stripe without padding would divide by all.
  static bool has_rows(const Operation& one) {
    return !is_elementwise(one.unit) && one.window.upscale == hw::Upscale::none &&
           !(one.unit == Unit::average_pool && one.window.is_padded());
  }
  bool is_whole(const Map& map) const {
    return static_cast<size_t>(map.tensor) < graph_.tensors.size() && map.precision == hw::Precision::bits_8 &&
           has_whole_rows(graph_, map) && map.height == whole_of(graph_, map.tensor)->height;
  }
  // True if only the next operation reads the output of operation `i`.
  bool is_between(size_t i) const {
    if (i + 1 >= operations_.size() || !has_rows(operations_[i]) || !has_rows(operations_[i + 1])) return false;
    const Map &made = operations_[i].output, &read = operations_[i + 1].input;
    return made.tensor == read.tensor && uses_[static_cast<size_t>(made.tensor)] == 2 && is_whole(made) &&
           is_whole(read) && is_whole(operations_[i].input) && is_whole(operations_[i + 1].output);
  }

  static uint64_t bytes_of(const Map& map, uint32_t rows) {
    return uint64_t{rows == 0 ? map.height : rows} * map.width * align_up(map.depth, kBrick);
  }

  // Input rows needed for rows of the output.
  static Rows needed(const Operation& one, Rows output) {
    const Window& window = one.window;
    const int64_t first = int64_t{output.first} * window.stride_h - window.top;
    const int64_t end = int64_t{output.end - 1} * window.stride_h + window.dilated_h() - window.top;
    return {static_cast<uint32_t>(std::max<int64_t>(first, 0)),
            static_cast<uint32_t>(std::min<int64_t>(end, one.input.height))};
  }

  // The rows that each stripe adds to each operation's output, for stripes with `height` rows of the last output.
  struct Stripes {
    std::vector<std::vector<Rows>> rows;  // by stripe and operation; end == first: nothing to do
    std::vector<uint32_t> kept;           // by operation: rows of its output stored at a time
  };
  Stripes stripes_of(size_t first, size_t last, uint32_t height) const {
    const size_t count = last - first + 1;
    Stripes out{.rows = {}, .kept = std::vector<uint32_t>(count)};
    std::vector<uint32_t> done(count);
    const uint32_t all = operations_[last].output.height;
    for (uint32_t y = 0; y < all; y += height) {
      std::vector<Rows> stripe(count);
      Rows asked{y, std::min(y + height, all)};
      for (size_t i = count; i-- > 0;) {
        const Operation& one = operations_[first + i];
        // Rows between windows, which are not read, are not made: they have no memory.
        stripe[i].first = std::max(done[i], asked.first);
        stripe[i].end = std::max(stripe[i].first, asked.end);
        if (stripe[i].end == stripe[i].first) {
          asked = {};
          continue;
        }
        asked = needed(one, stripe[i]);
        if (i > 0) out.kept[i - 1] = std::max(out.kept[i - 1], std::max(asked.end, done[i - 1]) - asked.first);
        done[i] = stripe[i].end;
      }
      out.rows.push_back(std::move(stripe));
    }
    return out;
  }

  uint64_t bytes_of(const Stripes& stripes, size_t first, size_t last) const {
    uint64_t bytes = bytes_of(operations_[last].output, 0);
    for (size_t i = first; i < last; ++i) bytes += bytes_of(operations_[i].output, stripes.kept[i - first]);
    return bytes;
  }

  // Cuts into stripes as high as on-chip memory allows; false if no height fits.
  bool cut(size_t first, size_t last) {
    const uint32_t all = operations_[last].output.height;
    if (bytes_of(operations_[last].output, 0) > kFastBytes) return false;
    uint32_t height = all;
    for (uint32_t count = 2; count <= all; ++count) {
      if (ceil_div(all, count) == height) continue;
      height = ceil_div(all, count);
      const Stripes stripes = stripes_of(first, last, height);
      if (bytes_of(stripes, first, last) > kFastBytes) continue;
      for (size_t i = first; i < last; ++i)
        out_.rows[static_cast<size_t>(operations_[i].output.tensor)] = stripes.kept[i - first];
      add(stripes, first);
      return true;
    }
    return false;
  }

  void add(const Stripes& stripes, size_t first) {
    std::vector<std::optional<size_t>> firsts(stripes.kept.size());
    for (const std::vector<Rows>& stripe : stripes.rows) {
      for (size_t i = 0; i < stripe.size(); ++i) {
        if (stripe[i].end == stripe[i].first) continue;
        Operation part = part_of(operations_[first + i], stripe[i]);
        part.weights_of = firsts[i];
        if (!firsts[i]) firsts[i] = out_.operations.size();
        out_.operations.push_back(std::move(part));
      }
    }
  }
  static Operation part_of(const Operation& whole, Rows rows) {
    Operation part = whole;
    const Rows input = needed(whole, rows);
    part.output.first_row = rows.first, part.output.height = rows.end - rows.first;
    part.input.first_row = input.first, part.input.height = input.end - input.first;
    const int64_t above = int64_t{whole.window.top} - int64_t{rows.first} * whole.window.stride_h;
    const int64_t below = int64_t{rows.end - 1} * whole.window.stride_h + whole.window.dilated_h() - whole.window.top -
                          whole.input.height;
    part.window.top = static_cast<uint32_t>(std::max<int64_t>(above, 0));
    part.window.bottom = static_cast<uint32_t>(std::max<int64_t>(below, 0));
    return part;
  }

  const ir::Graph& graph_;
  std::vector<Operation> operations_;
  std::vector<int> uses_;  // by tensor
  Cascaded out_;
};

}  // namespace

Cascaded cascade(const hw::ChipRow& chip, const ir::Graph& graph, std::vector<Operation> operations,
                 std::span<const ir::TensorId> same_as) {
  if (!has_fast_memory(chip)) return {std::move(operations), std::vector<uint32_t>(same_as.size())};
  return Cutter(graph, std::move(operations), same_as).run();
}

}  // namespace skillet::npus::ethosu
