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
    {"remove_dead_ops", 0, 0xb3aac425dde37422},
    {"fold_constants", 258, 0x2888fe70e964f7c8},
    {"merge_quantizes", 167, 0x202b0272a57b924f},
    {"merge_transposes", 198, 0xac797bf89109078d},
    {"merge_reshapes", 249, 0x294564997512028c},
    {"tiles_to_resize", 111, 0x5f8afef982b9418f},
    {"flatten_in_dense", 178, 0x56ca963b4965adfd},
    {"fold_space_to_batch", 178, 0xfd18bb6ba0633266},
    {"fold_pads", 42, 0x7e475f2d8da55bd4},
    {"fuse_activations", 63, 0x85af7143bf1dad47},
    {"byte_functions", 1493, 0xb16f87d749885e16},
    {"split_batches", 204, 0x41e821b37cb905c3},
    {"unstride", 95, 0x73832c44c2a50a8b},
    {"columns_to_blocks", 41, 0x5865d2ae82bb9a82},
    {"expand_dilation", 195, 0xdc1144fb3053fd59},
    {"depthwise_to_dense", 35, 0xf58813e0d9f040dc},
    {"means_of_rows", 0, 0xcbf29ce484222325},
    {"average_to_depthwise", 92, 0x419006cb95f0333f},
    {"average_to_pointwise", 76, 0xb13fd679db43b69a},
    {"moves_to_convolution", 454, 0x15a29d7b3de03334},
    {"pixels_to_pointwise", 589, 0x43ab8dc0e3d162e6},
    {"joins_to_channels", 140, 0xe74fca70c52134fd},
    {"pads_to_steps", 320, 0x389ee1de9fefaa1a},
    {"transposed_to_convolution", 136, 0xaa505fc244636d96},
    {"slopes_to_sum", 110, 0x6aada12115db7fa5},
    {"max_pools_to_sums", 130, 0x9f079204a1c13846},
    {"differences_to_sums", 185, 0x93bdb875da6fb85d},
    {"rescale_joins", 67, 0xc2a5417d4e27171d},
    {"rescale_to_depthwise", 466, 0xe02881e3aae13f3c},
    {"rows_to_pixels", 60, 0x01f9bb7b1e02ba49},
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
