// How split_batches() names the images of a tensor: by that they are found again.
// Called by split_batches() and by who compares with the model as it was.
// Must not know: operations.
#pragma once

#include <fmt/format.h>

#include <string>

namespace skillet::passes {

inline std::string image_name(const std::string& batch, int32_t image) {
  return fmt::format("{}/image{}", batch, image);
}

}  // namespace skillet::passes
