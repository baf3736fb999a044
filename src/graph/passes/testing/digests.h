// Results of each exact pass on the random networks of rewrite_test.cpp: how many it rewrites, and a digest of the text
// of all of them. After an intended change of a pass, the failing test prints the new row; SKILLET_REWRITTEN shows the
// networks. Called by rewrite_test.cpp. Must not know: the networks.
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
    {"remove_dead_ops", 0, 0xe00da46566bb6289},
    {"fold_constants", 269, 0xe0317f5f11b65158},
    {"merge_quantizes", 168, 0xac2c9ccc9a4a08e5},
    {"merge_transposes", 209, 0x3abecbf686a2c950},
    {"merge_reshapes", 255, 0x0e3ef650c5c82c57},
    {"lower_tile_as_resize", 107, 0x1f513f4d5224fadb},
    {"flatten_in_dense", 162, 0x0287f2695a956a3e},
    {"fold_space_to_batch", 185, 0x89b13c108fe9e228},
    {"fold_pads", 42, 0xf14c8bcb04a155e8},
    {"fuse_activations", 53, 0xcb9add3826f5819b},
    {"fuse_byte_functions", 1480, 0x11ed3afa221d3695},
    {"split_batches", 204, 0xdeffbac6e4b038ba},
    {"remove_strides", 451, 0x88748e04a7984692},
    {"lower_conv1d", 26, 0x3131ab157ee20c13},
    {"fold_channel_order", 7, 0x462c7a4627a30505},
    {"lower_uneven_stride", 0, 0xcbf29ce484222325},
    {"slice_before_transpose", 0, 0xcbf29ce484222325},
    {"drop_unit_mul", 0, 0xcbf29ce484222325},
    {"expand_dilation", 194, 0x1ea11346d7381e5a},
    {"lower_depthwise_as_conv", 34, 0x668ed17641326f70},
    {"lower_dilation_as_phases", 141, 0x50dbeee2c6ae79e9},
    {"lower_sequence_mean", 0, 0xcbf29ce484222325},
    {"lower_average_as_depthwise", 114, 0x58b2e9ec4204dea7},
    {"lower_average_as_pointwise", 49, 0x520f899e879c1d57},
    {"lower_slice_as_conv", 509, 0x5b597b94a5724475},
    {"repeat_operands", 0, 0xcbf29ce484222325},
    {"lower_resize_as_conv", 567, 0x61f011d53ca0644b},
    {"lower_concat_axis", 186, 0x5efc0dd26d194bfb},
    {"lower_slice_as_box", 46, 0x0d44eeb2b6df8faa},
    {"split_pad", 333, 0x9c7347b0a4eac93c},
    {"lower_transpose_conv", 153, 0xd5fcf473cd128462},
    {"lower_leaky_relu_as_sum", 126, 0xb213184599e84906},
    {"lower_max_pool_as_sums", 131, 0xf433d32ce21a35f4},
    {"lower_sub_as_sum", 193, 0x20c32ea82fa1b43f},
    {"rescale_concat", 67, 0xe09cf7f98b7cd65e},
    {"lower_rescale_as_depthwise", 399, 0x476438f809705350},
    {"lower_dense_as_conv", 59, 0xc06bfafeaedb7c53},
    {"copy_constants", 41, 0x8b60872ee59caf6d},
};

// FNV-1a.
inline uint64_t digest(std::string_view text) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211U;
  return hash;
}

// In the format of the rows above.
inline std::string digest_row(std::string_view pass) {
  const auto at = std::ranges::find(kDigests, pass, &Digest::pass);
  if (at == std::ranges::end(kDigests)) return fmt::format("no row of {}", pass);
  return fmt::format("{{\"{}\", {}, 0x{:016x}}},", pass, at->rewritten, at->digest);
}

}  // namespace skillet::passes
