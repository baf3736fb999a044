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
    {"remove_dead_ops", 0, 0x2a040e7be3fe3ff1},
    {"fold_constants", 255, 0x2031d0a3f5e71554},
    {"merge_quantizes", 168, 0x598621e8f9d053c9},
    {"merge_transposes", 195, 0xf73ca860b68af7cc},
    {"merge_reshapes", 248, 0xc337c8399e9c09c6},
    {"lower_tile_as_resize", 107, 0xf257826ed936a2f7},
    {"flatten_in_dense", 175, 0x88b1e9c4aed9cb9d},
    {"fold_space_to_batch", 177, 0xcdff721400655535},
    {"fold_pads", 42, 0x7e475f2d8da55bd4},
    {"fuse_activations", 63, 0x2debf1e57d93509b},
    {"fuse_byte_functions", 1493, 0xd2f026960a5c3962},
    {"split_batches", 205, 0x90954371825462e3},
    {"remove_strides", 94, 0x47d9397010786611},
    {"lower_conv1d", 41, 0xf265ce4ebf6ffd7b},
    {"fold_channel_order", 7, 0x462c7a4627a30505},
    {"expand_dilation", 192, 0xd924ee23cf38ff21},
    {"lower_depthwise_as_conv", 35, 0xe37ca055c6c7fb44},
    {"lower_sequence_mean", 0, 0xcbf29ce484222325},
    {"lower_average_as_depthwise", 92, 0x419006cb95f0333f},
    {"lower_average_as_pointwise", 76, 0xb13fd679db43b69a},
    {"lower_slice_as_conv", 496, 0xf1f19f0fed48fac8},
    {"lower_resize_as_conv", 589, 0xfb51e73a754a3a98},
    {"lower_concat_axis", 203, 0xf45e9a0ba9c69e94},
    {"split_pad", 318, 0x32d3ceae36478819},
    {"lower_transpose_conv", 134, 0x147f64357965e31f},
    {"lower_leaky_relu_as_sum", 137, 0x0adb837784c8d5f8},
    {"lower_max_pool_as_sums", 131, 0x45be8927e334d3ce},
    {"lower_sub_as_sum", 186, 0x4702106b1e2e870e},
    {"rescale_concat", 67, 0x34d3bf7b12bb6e7e},
    {"lower_rescale_as_depthwise", 461, 0x8d097510e21e4eb8},
    {"lower_dense_as_conv", 59, 0x885e626b82904d14},
    {"copy_constants", 0, 0xcbf29ce484222325},
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
