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
    {"remove_dead_ops", 0, 0x11251d502af47640},
    {"fold_constants", 258, 0x6180cd3f69494e33},
    {"merge_quantizes", 167, 0x6fc01793c3a45c2a},
    {"merge_transposes", 198, 0x7720497784cc9444},
    {"merge_reshapes", 250, 0x4865e87cd88dbb40},
    {"tiles_to_resize", 109, 0x6637b04d1905a397},
    {"flatten_in_dense", 176, 0x9640496eb66b1d90},
    {"fold_space_to_batch", 181, 0xd13e9966609ee6bf},
    {"fold_pads", 42, 0xf37d4f45e3a9b7d5},
    {"fuse_activations", 63, 0xc78b17a021f5ae83},
    {"split_batches", 204, 0x20261b9f5d149822},
    {"unstride", 95, 0x50bad75db25c5916},
    {"expand_dilation", 197, 0x9e1058cac862b1cb},
    {"depthwise_to_dense", 35, 0x207f3338c9752630},
    {"average_to_depthwise", 92, 0x2beaeb215f9f964e},
    {"average_to_pointwise", 76, 0xbf4e2e410c3d4c0a},
    {"moves_to_convolution", 454, 0x131f86e464afdee8},
    {"pixels_to_pointwise", 587, 0xb4a9ede5116e034d},
    {"joins_to_channels", 141, 0xce4ab11eb445a134},
    {"pads_to_steps", 319, 0x4bd150c0a43b31bc},
    {"transposed_to_convolution", 140, 0x57cd79039218b0cc},
    {"slopes_to_sum", 109, 0xfac20b127c9116c9},
    {"max_pools_to_sums", 131, 0x9a283259765357df},
    {"differences_to_sums", 185, 0xe0d2b6c2c2a2ee60},
    {"rescale_joins", 68, 0xb545cde79bb6fd05},
    {"rescale_to_depthwise", 466, 0x4a8f652a768e085e},
    {"rows_to_pixels", 53, 0xf74f817ee2561ba6},
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
