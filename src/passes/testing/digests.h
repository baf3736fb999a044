// What each exact pass makes of the random networks of rewrite_test.cpp: how many it rewrites, and a digest of the text
// of all of them. Where a change of a pass is meant, the failing test prints the new row; SKILLET_REWRITTEN shows what
// it is. Called by rewrite_test.cpp. Must not know: the networks.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace skillet::passes {

struct Digest {
  std::string_view pass;
  uint32_t rewritten;
  uint64_t digest;
};
inline const Digest kDigests[] = {
    {"remove_dead_ops", 0, 0x9a61b9f4bd32277a},
    {"fold_constants", 322, 0x6e2d6477e62c3429},
    {"merge_quantizes", 95, 0xa3bfa417b8fcd7f3},
    {"merge_transposes", 291, 0x2d45cab708175f18},
    {"merge_reshapes", 250, 0xcd619d4618db0b94},
    {"fold_space_to_batch", 272, 0xa29aa3132cb2db60},
    {"fold_pads", 72, 0x9470ad74b26906b5},
    {"fuse_activations", 79, 0x50628c5b6634f575},
    {"split_batches", 304, 0x2a44ddb874acb506},
    {"unstride", 143, 0x47c19093e4617564},
    {"expand_dilation", 242, 0xa9d27baf2857aef5},
    {"depthwise_to_dense", 75, 0x534c51874483edfc},
    {"average_to_depthwise", 117, 0xa150561608557ea8},
    {"average_to_pointwise", 77, 0xb4445c6e8ec5549d},
    {"moves_to_convolution", 233, 0xfadedba74344d4ae},
    {"joins_to_channels", 123, 0xde29388250e909c0},
    {"pads_to_steps", 274, 0x9d728a7ab4ede16a},
    {"transposed_to_convolution", 281, 0xdf5449f55f63a821},
    {"slopes_to_sum", 163, 0xb70d3986d8abd4a1},
    {"max_pools_to_sums", 193, 0xb96ee26d54f62b9a},
    {"differences_to_sums", 185, 0x07542013edb61ed2},
    {"rescale_joins", 145, 0xaff963c1fb3bad97},
    {"rescale_to_depthwise", 644, 0x1719aa40b43fe825},
    {"rows_to_pixels", 283, 0x3861b537c1e1f26f},
};

// FNV-1a.
inline uint64_t digest(std::string_view text) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211U;
  return hash;
}

// As it stands above.
inline std::string digest_row(std::string_view pass) {
  const auto at = std::ranges::find(kDigests, pass, &Digest::pass);
  if (at == std::ranges::end(kDigests)) return fmt::format("no row of {}", pass);
  return fmt::format("{{\"{}\", {}, 0x{:016x}}},", pass, at->rewritten, at->digest);
}

}  // namespace skillet::passes
