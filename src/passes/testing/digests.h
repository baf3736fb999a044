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
    {"remove_dead_ops", 0, 0x15b2e73a342ed3f1},
    {"fold_constants", 342, 0x774550770063aedf},
    {"merge_quantizes", 101, 0x599220babd422e24},
    {"merge_transposes", 278, 0x42a13001cc1d11ae},
    {"merge_reshapes", 271, 0x3d2b8ef99ad28c62},
    {"fold_space_to_batch", 248, 0x5ca8844b898ee1a1},
    {"fold_pads", 72, 0x95e4a87179699ff9},
    {"fuse_activations", 85, 0x9807f52908e95130},
    {"split_batches", 290, 0xe045a0337756cd89},
    {"unstride", 143, 0x47c19093e4617564},
    {"expand_dilation", 248, 0xb3d2103f2d2a7b38},
    {"depthwise_to_dense", 75, 0x534c51874483edfc},
    {"average_to_depthwise", 117, 0xd4a3cc6a9dc8927c},
    {"average_to_pointwise", 77, 0x503bd0c5b7d682f3},
    {"moves_to_convolution", 239, 0xa54e10a5a895dde1},
    {"joins_to_channels", 117, 0x35f3e9c449083c7c},
    {"pads_to_steps", 273, 0x7414ecba0630a64d},
    {"transposed_to_convolution", 267, 0xf7afaa296bc6c899},
    {"slopes_to_sum", 162, 0x037776fc7c01c465},
    {"max_pools_to_sums", 192, 0x3cc7f7947e7e2195},
    {"differences_to_sums", 183, 0xbf1eec7a85568040},
    {"rescale_joins", 159, 0x06aa2c0241d91dfe},
    {"rescale_to_depthwise", 649, 0xe87c4bb59e82d961},
    {"rows_to_pixels", 263, 0xb46cf5995bf03cbe},
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
