// Channels as pixels side by side: DEPTH_TO_SPACE, and RESHAPE that divides channels. Each pass leaves gaps after each
// row of a surface; other passes fill the gaps. Called by support.cpp (does each fit), lower.cpp (which places them).
// Must not know: tasks, registers, memory.
#pragma once

#include "npus/rockchip/compiler/window.h"

namespace skillet::npus::rockchip {

// Each pixel becomes rows * columns pixels: channel ((y * columns + x) * channels + c) becomes channel c of pixel (y,
// x).
struct Interleave {
  Plane from, to;
  int32_t rows = 1, columns = 1;

  int32_t surfaces() const;  // of `to`
};
// DEPTH_TO_SPACE, RESHAPE. Nothing: the operation is of another kind.
std::optional<Interleave> interleave_of(const ir::Graph& graph, const ir::Op& op);

// A reshape that moves no bytes.
bool keeps_channels(const ir::Shape& from, const ir::Shape& to);

// One pass: surfaces of 16 channels, each of which begins a row (a pixel) after the one before.
struct InterleavePass {
  Conv conv;
  uint64_t from_bytes = 0, to_bytes = 0;  // offsets of input and output
};
// Columns first: from the input to the output or, if there are rows too, to surfaces ordered [row][surface of the
// output]. Then rows, from these surfaces to the output.
std::vector<InterleavePass> column_passes(const Interleave& all);
std::vector<InterleavePass> row_passes(const Interleave& all);
// Number of weights: channels by channels, or fewer if each pixel consists of whole surfaces of 16 channels.
int64_t weights_of(const Interleave& all);

// Whether all pieces but the last are whole surfaces.
bool are_surfaces(const ir::Graph& graph, std::span<const ir::TensorId> pieces);
// CONCATENATION of other pieces: their surfaces one after the other, then only the lanes that hold channels.
struct Joined {
  Plane to;
  int32_t lanes = 0;            // of all surfaces
  std::vector<int32_t> chosen;  // by channel: its lane

  Plane from() const { return {to.height, to.width, lanes}; }
  int64_t weights() const { return int64_t{to.channels} * lanes; }
};
Joined joined_of(const ir::Graph& graph, const ir::Op& op);
Conv make_joined(const Joined& joined);

}  // namespace skillet::npus::rockchip
