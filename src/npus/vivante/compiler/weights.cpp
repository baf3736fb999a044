#include "npus/vivante/compiler/weights.h"

#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "npus/vivante/compiler/weights_v7.h"
#include "npus/vivante/compiler/weights_v8.h"

namespace skillet::npus::vivante {
namespace {

struct FormatRow {
  int generation;
  Coefficients (*write)(const hw::ChipRow&, const NnOperation&, const KernelSplit&);
  CoefficientSizes (*sizes)(const hw::ChipRow&, const NnOperation&, const KernelSplit&);
};
constexpr FormatRow kFormats[] = {{7, write_coefficients_v7, coefficient_sizes_v7},
                                  {8, write_coefficients_v8, coefficient_sizes_v8}};

const FormatRow& format_of(const hw::ChipRow& chip, const NnOperation& op) {
  const int generation = op.v8_coefficients ? 8 : chip.generation;
  const auto* const row = std::find_if(std::begin(kFormats), std::end(kFormats),
                                       [&](const FormatRow& r) { return r.generation == generation; });
  SK_CHECK(row != std::end(kFormats));
  return *row;
}

}  // namespace

KernelSplit split_kernels(int32_t output_channels, int32_t nn_cores, int32_t superblocks) {
  KernelSplit split;
  split.cores_used = std::min(output_channels, nn_cores);
  split.kernels_per_core = ceil_div(output_channels, split.cores_used);
  split.superblocks = superblocks;
  split.kernels_per_superblock = ceil_div(split.kernels_per_core, superblocks);
  SK_CHECK(split.kernels_per_superblock * (superblocks - 1) < split.kernels_per_core);
  return split;
}

Coefficients write_coefficients(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split) {
  return format_of(chip, op).write(chip, op, split);
}

CoefficientSizes coefficient_sizes(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split) {
  return format_of(chip, op).sizes(chip, op, split);
}

Kernels without_bands(const Kernels& kernels, uint8_t outside) {
  const auto patch = int64_t{kernels.patch_elems()};
  const int64_t kernel_elems = kernels.input_channels * patch, band_elems = kernels.band * patch;
  auto full = std::make_shared<Bytes>(static_cast<size_t>(kernels.output_channels * kernel_elems), outside);
  for (int32_t oc = 0; oc < kernels.output_channels; ++oc) {
    const uint8_t* const from = kernels.weights.data() + oc * band_elems;
    std::copy_n(from, band_elems, full->data() + oc * kernel_elems + kernels.first_channel(oc) * patch);
  }
  Kernels dense = kernels;
  dense.band = kernels.input_channels;
  dense.kernels_per_band = 0;
  dense.weights = *full;
  dense.lowered = std::move(full);
  return dense;
}

}  // namespace skillet::npus::vivante
