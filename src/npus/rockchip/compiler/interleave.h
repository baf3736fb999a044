// Channels as pixels side by side: DEPTH_TO_SPACE, and RESHAPE that divides channels. The output leaves pixels out
// behind each row of a surface; in the gaps go the rows of others. Called by support.cpp (does each fit), lower.cpp
// (which places them). Must not know: tasks, registers, memory.
#pragma once

#include "npus/rockchip/compiler/window.h"

namespace skillet::npus::rockchip {

// Each pixel becomes so many: channel ((y * columns + x) * channels + c) of one is channel c of its pixel (y, x).
struct Interleave {
  Plane from, to;
  int32_t rows = 1, columns = 1;

  int32_t surfaces() const;  // of `to`
};
// DEPTH_TO_SPACE, RESHAPE. Nothing: it is not of this kind.
std::optional<Interleave> interleave_of(const ir::Graph& graph, const ir::Op& op);

// A reshape that moves nothing.
bool keeps_channels(const ir::Shape& from, const ir::Shape& to);

// A pass: surfaces of 16 channels, of which each begins a row (a pixel) further than the one before.
struct InterleavePass {
  Conv conv;
  uint64_t from_bytes = 0, to_bytes = 0;  // before what it reads and writes
};
// Columns first: from the input to the output, or where there are rows too to surfaces by [row][surface of
// the output]. Then rows, from there to the output.
std::vector<InterleavePass> column_passes(const Interleave& all);
std::vector<InterleavePass> row_passes(const Interleave& all);
// Where there are surfaces of 16 channels for each pixel only, else as many weights as there are channels by channels.
int64_t weights_of(const Interleave& all);

// Pieces of which all but the last end where a surface does.
bool are_surfaces(const ir::Graph& graph, std::span<const ir::TensorId> pieces);
// CONCATENATION of others: their surfaces one behind the other, and then the channels without what is between them.
struct Joined {
  Plane to;
  int32_t lanes = 0;            // of all surfaces
  std::vector<int32_t> chosen;  // of them, by channel

  Plane from() const { return {to.height, to.width, lanes}; }
  int64_t weights() const { return int64_t{to.channels} * lanes; }
};
Joined joined_of(const ir::Graph& graph, const ir::Op& op);
Conv make_joined(const Joined& joined);

}  // namespace skillet::npus::rockchip
