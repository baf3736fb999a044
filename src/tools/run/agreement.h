// Compares two sets of outputs: best class, angle, noise.
// Called by `skillet eval`.
// Must not know: the source of the outputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"
#include "tools/run/difference.h"

namespace skillet::tools {

// Agreement of all outputs of one inference, as real numbers.
struct Agreement {
  SameClass same_class;                 // the best element of the first output
  double equal = 0;                     // share of equal elements
  double cosine = 0;                    // 1: same direction. All zeros on one side: 1 if on both, else 0.
                                        // 0 too if only one side is finite, or if infinities differ
  double psnr_db = 0;                   // of the reference's range; infinite: equal; minus infinity: not finite
  std::vector<Difference> differences;  // by output

  double largest_difference() const;  // of all outputs, in stored units
};
Agreement agreement_of(const ir::Graph& graph, std::span<const Bytes> outputs, std::span<const Bytes> reference);

// How often the right class is the best one, or one of the best five.
struct Hits {
  size_t top1 = 0, top5 = 0;
};
void count_hits(const ir::Tensor& scores, std::span<const uint8_t> bytes, int64_t index, Hits& hits);

// A line "3.png 3" or "3.png<tab>3": the class of a picture.
struct Truth {
  std::string name;
  int64_t index = 0;
};
Result<std::vector<Truth>> parse_truth(std::string_view text);

}  // namespace skillet::tools
