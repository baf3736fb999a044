// The result of compile() as bytes, without its programs: what a cache keeps beside them. Also the bytes of a graph,
// for hashes. Called by runtime/compile_cache.cpp. Must not know: files, what a program is.
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "compile/compile.h"

namespace skillet::compile {

struct StoredResult {
  Bytes bytes;
  Bytes constants;  // of tensors, that the model does not have
};

// Everything in the graph but the contents of its constants: graphs that differ have different bytes.
Bytes structure_of(const ir::Graph& graph);

// `model`: what `compiled` was compiled from. Tensors that the model has too are not stored. Error: something in it
// cannot be restored.
Result<StoredResult> store(const Compiled& compiled, const ir::Graph& model, const Target& target);
// For the same model. Parts on the NPU, and their bands, come with empty programs. Tensors refer to `constants`. The
// bytes are not trusted: an error, or a result that is safe to run.
Result<Compiled> restore(std::span<const uint8_t> bytes, const SharedBytes& constants, const ir::Graph& model,
                         const Target& target);

}  // namespace skillet::compile
