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
    {"remove_dead_ops", 0, 0x30209d544d5eaf07},
    {"fold_constants", 270, 0x6fb83554052b1690},
    {"merge_quantizes", 91, 0xa55efa1d6dcd19f9},
    {"merge_transposes", 220, 0xad4dd28c89b8c39d},
    {"merge_reshapes", 285, 0xceddd3202f8c19b5},
    {"flatten_in_dense", 158, 0xf8024b9378d6fc08},
    {"fold_space_to_batch", 257, 0xbd2b53a214d06682},
    {"fold_pads", 17, 0x9ff7351064bd8216},
    {"fuse_activations", 72, 0x8734ce3781981184},
    {"split_batches", 306, 0xc9ad182588873de1},
    {"unstride", 86, 0x67db5ea3c535279d},
    {"expand_dilation", 179, 0xbf8aa90ac82874e8},
    {"depthwise_to_dense", 37, 0x6023296e9a991574},
    {"average_to_depthwise", 160, 0x9738a871d9273ffd},
    {"average_to_pointwise", 128, 0x07b6d2dbef87fa68},
    {"moves_to_convolution", 439, 0x102cbd71c5d05904},
    {"pixels_to_pointwise", 680, 0x00dbee9c6c3ccbeb},
    {"joins_to_channels", 153, 0xffbb903bcf282933},
    {"pads_to_steps", 330, 0x93518ed49281eee0},
    {"transposed_to_convolution", 247, 0xf2586bcbeb5d596b},
    {"slopes_to_sum", 88, 0x7fd01d0c2fbad3aa},
    {"max_pools_to_sums", 144, 0x4c63b0ec30002735},
    {"differences_to_sums", 132, 0x38694b5a29c88bbb},
    {"rescale_joins", 102, 0x86773d3bc2862f14},
    {"rescale_to_depthwise", 563, 0x70b26b380f9f2e3a},
    {"rows_to_pixels", 105, 0xa603a75545eb2f5b},
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
