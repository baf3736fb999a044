// A program as the device reads it, in a form that does not depend on our own types: command bytes, constant bytes, and
// addresses as (place, offset). The forms of two revisions are compared as text (streams.py). Called by
// skillet_streams. Must not know: anything about vendors.
#pragma once

#include <nlohmann/json.hpp>

#include "graph/ir/graph.h"
#include "program/program.h"

namespace skillet::golden {

// `graph`: the graph that the program was compiled from. Returns an object with
//   buffers    how many of each role, and their bytes: for people, not part of what the device sees
//   bindings   where graph inputs and outputs are: place, offset, and a hash of the byte offsets of all their elements
//   jobs       in order: command bytes as hex with address bits 0, [bit, width, shift, place, offset] per address, and
//              how the submission lists each place
//   constants  by content: bytes with address bits 0 (hex, or a hash per 4 KiB), and addresses as above
// Places: "tN" memory that jobs write and read, in order of first use; "cHASH" constants by their content.
nlohmann::json device_view(const npu::Program& program, const ir::Graph& graph);

}  // namespace skillet::golden
