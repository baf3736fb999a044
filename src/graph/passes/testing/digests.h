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
    {"remove_dead_ops", 0, 0x7b202c0983d204c6},
    {"fold_constants", 258, 0x3b36104147ba47e2},
    {"merge_quantizes", 167, 0xd77b102a986ed63f},
    {"merge_transposes", 198, 0x153cd309833620e3},
    {"merge_reshapes", 249, 0x65fe533c3f84863a},
    {"lower_tile_as_resize", 111, 0x5f8afef982b9418f},
    {"flatten_in_dense", 178, 0x56ca963b4965adfd},
    {"fold_space_to_batch", 178, 0x79f15dcafa6b6cbc},
    {"fold_pads", 42, 0x7e475f2d8da55bd4},
    {"fuse_activations", 63, 0x8f10adde6c8510f1},
    {"fuse_byte_functions", 1493, 0x21a2273c1300e87c},
    {"split_batches", 204, 0x8f5e93932c95391f},
    {"remove_strides", 95, 0x25aca1672bdd00fd},
    {"lower_conv1d", 41, 0x5865d2ae82bb9a82},
    {"expand_dilation", 195, 0x9293c089c2e5cb9b},
    {"lower_depthwise_as_conv", 35, 0xe37ca055c6c7fb44},
    {"lower_sequence_mean", 0, 0xcbf29ce484222325},
    {"lower_average_as_depthwise", 92, 0x419006cb95f0333f},
    {"lower_average_as_pointwise", 76, 0xb13fd679db43b69a},
    {"lower_slice_as_conv", 454, 0xbe417768c6da3678},
    {"lower_resize_as_conv", 589, 0x9f07eb0035493a4a},
    {"lower_concat_axis", 140, 0xe4066022c3043c8d},
    {"split_pad", 320, 0xd978afbf7898e43e},
    {"lower_transpose_conv", 136, 0xd56b82320c59db76},
    {"lower_leaky_relu_as_sum", 110, 0xb26bafd25756dc8f},
    {"lower_max_pool_as_sums", 130, 0xb45ace8501332c84},
    {"lower_sub_as_sum", 185, 0xd799525d9d4e932b},
    {"rescale_concat", 67, 0xc2a5417d4e27171d},
    {"lower_rescale_as_depthwise", 466, 0x2fbac5e369a5fc9e},
    {"lower_dense_as_conv", 60, 0x74b47319eb22fb73},
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
