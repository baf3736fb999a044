// Names that split_batches() gives the images of a tensor, so that they can be found again.
// Called by split_batches() and by code that compares with the original model.
// Must not know: operations.
#pragma once

#include <fmt/format.h>

#include <string>

namespace skillet::passes {

inline std::string image_name(const std::string& batch, int32_t image) {
  return fmt::format("{}/image{}", batch, image);
}

}  // namespace skillet::passes
