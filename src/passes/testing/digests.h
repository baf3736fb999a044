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
    {"remove_dead_ops", 0, 0x60e9696ce6fbc112},
    {"fold_constants", 330, 0xa8f5842ef429311e},
    {"merge_quantizes", 95, 0xa3bfa417b8fcd7f3},
    {"merge_transposes", 291, 0x2d45cab708175f18},
    {"merge_reshapes", 250, 0x0991af6b3bde5d54},
    {"fold_space_to_batch", 272, 0xe6a0361bbafd4c38},
    {"fold_pads", 72, 0x95e4a87179699ff9},
    {"fuse_activations", 79, 0x50628c5b6634f575},
    {"split_batches", 304, 0x1febb8204f658dbe},
    {"unstride", 143, 0x47c19093e4617564},
    {"expand_dilation", 248, 0xa2ef7ed64851b167},
    {"depthwise_to_dense", 75, 0x534c51874483edfc},
    {"average_to_depthwise", 117, 0xa150561608557ea8},
    {"average_to_pointwise", 77, 0xb4445c6e8ec5549d},
    {"moves_to_convolution", 259, 0xbc065e9ca1455003},
    {"joins_to_channels", 116, 0x4c5cce5b57c10ed7},
    {"pads_to_steps", 274, 0x9f579a3d31fb96fe},
    {"transposed_to_convolution", 281, 0xbc163d91bce9e401},
    {"slopes_to_sum", 170, 0x80b74e6ed0e0fa76},
    {"max_pools_to_sums", 193, 0xb96ee26d54f62b9a},
    {"differences_to_sums", 185, 0xff24d0e8df23db12},
    {"rescale_joins", 147, 0x2a05d4d9ab5be9df},
    {"rescale_to_depthwise", 644, 0x2cefefb00c7ce20f},
    {"rows_to_pixels", 283, 0xdb9dc46f4c9b8839},
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
