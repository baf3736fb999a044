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
    {"remove_dead_ops", 0, 0x4883fd589eafc1f5},
    {"fold_constants", 258, 0xcb59b0cc9f54b192},
    {"merge_quantizes", 167, 0x2d2d330838032b9c},
    {"merge_transposes", 198, 0x4dd9534988b6c231},
    {"merge_reshapes", 249, 0x50970f61f0bf36b9},
    {"tiles_to_resize", 111, 0xeec22bfa9b6e97c5},
    {"flatten_in_dense", 178, 0xb30e644725bcb774},
    {"fold_space_to_batch", 180, 0x9bca0082d8bced7e},
    {"fold_pads", 42, 0x9d4ad62f012214f7},
    {"fuse_activations", 63, 0xf27df1b4abca8859},
    {"byte_functions", 1493, 0xa6f020b177e04185},
    {"split_batches", 204, 0xd893d617ae0e0b96},
    {"unstride", 95, 0xdf1ddf0c334920cc},
    {"expand_dilation", 198, 0x6c7304fd52dda4b4},
    {"depthwise_to_dense", 35, 0xac106b11e969a266},
    {"average_to_depthwise", 92, 0x27447127adae13cf},
    {"average_to_pointwise", 76, 0x7fd8e4c334dd6c1d},
    {"moves_to_convolution", 452, 0xe304ede56eadf95f},
    {"pixels_to_pointwise", 589, 0xc8ec3b93a4fef03c},
    {"joins_to_channels", 141, 0x90c6be4794b05a9f},
    {"pads_to_steps", 320, 0x72512600a6e3b807},
    {"transposed_to_convolution", 139, 0x05e5bdc63c0bfd6b},
    {"slopes_to_sum", 110, 0x33a0a664d6d01635},
    {"max_pools_to_sums", 130, 0x2f6d6a507497ec92},
    {"differences_to_sums", 185, 0xd159dd25738aaba6},
    {"rescale_joins", 67, 0xc75ab6400aa0b14c},
    {"rescale_to_depthwise", 465, 0x58940e9d95cd66e9},
    {"rows_to_pixels", 53, 0x9a38a72068e06b92},
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
