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
    {"remove_dead_ops", 0, 0xa88c8c6de659f17a},
    {"fold_constants", 309, 0x47f5df97f3fe787e},
    {"merge_quantizes", 183, 0xfb391abf7914e5ab},
    {"merge_transposes", 220, 0x77b78a6251a35e1c},
    {"merge_reshapes", 236, 0x338edf295f0120fd},
    {"fold_space_to_batch", 272, 0xa01427493ad26335},
    {"fold_pads", 94, 0x7cd85f01f8153904},
    {"fuse_activations", 73, 0x35db91b69c9e11e1},
    {"split_batches", 233, 0xc8dfc0e4599730ec},
    {"unstride", 89, 0xad7d5db97b018a42},
    {"expand_dilation", 194, 0x21982aa5a10c3cbb},
    {"depthwise_to_dense", 79, 0xff2235034caab207},
    {"average_to_depthwise", 98, 0x8dc941a89704455e},
    {"average_to_pointwise", 97, 0xf6c6b300bc8b66f4},
    {"moves_to_convolution", 232, 0x41ff2bb6461028fa},
    {"pixels_to_pointwise", 576, 0xe97b95a39e4b5abb},
    {"joins_to_channels", 121, 0x337437f6360007d7},
    {"pads_to_steps", 171, 0x7a7f5da336d99e81},
    {"transposed_to_convolution", 259, 0x80630fbdbec27165},
    {"slopes_to_sum", 101, 0x3fee7220eefde53a},
    {"max_pools_to_sums", 159, 0x3dde76162b30da75},
    {"differences_to_sums", 170, 0xfc3b391844ea6ad8},
    {"rescale_joins", 94, 0x120f78ee46f982ac},
    {"rescale_to_depthwise", 643, 0x9a40b816507f8c79},
    {"rows_to_pixels", 196, 0xcd8d4e998118e7ec},
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
