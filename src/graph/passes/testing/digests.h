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
    {"remove_dead_ops", 0, 0xfce04c0a07e81f60},
    {"fold_constants", 262, 0xec9fae4904232456},
    {"merge_quantizes", 168, 0x598621e8f9d053c9},
    {"merge_transposes", 209, 0xba309f09d98eb1a4},
    {"merge_reshapes", 255, 0x69c04eb2df65d3de},
    {"lower_tile_as_resize", 107, 0xf257826ed936a2f7},
    {"flatten_in_dense", 162, 0xe3bf0e6bf65bf69e},
    {"fold_space_to_batch", 185, 0x4016a35247afa4ae},
    {"fold_pads", 42, 0x7da85fcbf4e5f701},
    {"fuse_activations", 58, 0xf7f0425d2da1d042},
    {"fuse_byte_functions", 1473, 0x02bc92d5e1c0f658},
    {"split_batches", 212, 0x3056a637fe392f43},
    {"remove_strides", 100, 0xd4d6a31b9eb2c044},
    {"lower_conv1d", 41, 0xf265ce4ebf6ffd7b},
    {"fold_channel_order", 7, 0x462c7a4627a30505},
    {"expand_dilation", 192, 0xd924ee23cf38ff21},
    {"lower_depthwise_as_conv", 34, 0xcc021ad71a841e24},
    {"lower_sequence_mean", 0, 0xcbf29ce484222325},
    {"lower_average_as_depthwise", 114, 0x0a4cb909035592c1},
    {"lower_average_as_pointwise", 55, 0xa7dd2d7e1c5d61b4},
    {"lower_slice_as_conv", 509, 0x007d800e1d369e09},
    {"lower_resize_as_conv", 519, 0x7258f44c81220fb2},
    {"lower_concat_axis", 191, 0x3db300e85b707edc},
    {"split_pad", 326, 0x38b256e71354af09},
    {"lower_transpose_conv", 148, 0x658503647a190ee0},
    {"lower_leaky_relu_as_sum", 126, 0x49b4c3b22001f74e},
    {"lower_max_pool_as_sums", 131, 0x45be8927e334d3ce},
    {"lower_sub_as_sum", 186, 0x4702106b1e2e870e},
    {"rescale_concat", 67, 0x34d3bf7b12bb6e7e},
    {"lower_rescale_as_depthwise", 470, 0x8589817a7cd0634e},
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
