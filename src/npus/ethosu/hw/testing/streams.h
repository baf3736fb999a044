// Hand-written streams of commands, for tests.
// Called by tests of npus/ethosu and of its kernel driver.
// Must not know: the code that runs them.
#pragma once

#include <vector>

#include "npus/ethosu/hw/ethosu.h"

namespace skillet::ethosu::hw {

using Words = std::vector<uint32_t>;

template <typename T>
void add(Words& stream, const T& fields) {
  const auto words = bits::pack(fields).value();
  stream.push_back(words[0] | code_of(T::kAddress));
  if (words_of_code(T::kAddress) == 2) stream.push_back(words[1]);
}

inline void add_stop(Words& stream) { add(stream, OpStop{.mask = 0xFFFF}); }

// Copies `size` bytes from one place to another.
inline void add_copy(Words& stream, uint32_t from_region, uint64_t from, uint32_t to_region, uint64_t to,
                     uint64_t size) {
  add(stream, Dma0SrcRegion{.region = from_region}), add(stream, Dma0Src{.value = from});
  add(stream, Dma0DstRegion{.region = to_region}), add(stream, Dma0Dst{.value = to});
  add(stream, Dma0Len{.value = size});
  add(stream, OpDmaStart{});
}

// |x| of height x width x depth bytes, from `from` of region 1 to `to` of region 1, without the command that starts it.
inline void add_abs_registers(Words& stream, uint32_t height, uint32_t width, uint32_t depth, uint64_t from,
                              uint64_t to) {
  add(stream, IfmRegion{.value = 1});
  add(stream, IfmBase0{.value = from}), add(stream, IfmBase1{}), add(stream, IfmBase2{}), add(stream, IfmBase3{});
  add(stream, IfmWidth0M1{.value = width}), add(stream, IfmHeight0M1{.value = height}),
      add(stream, IfmHeight1M1{.value = height});
  add(stream, IfmDepthM1{.value = depth});
  add(stream, IfmStrideX{.value = depth}), add(stream, IfmStrideY{.value = uint64_t{depth} * width}),
      add(stream, IfmStrideC{.value = 1});
  add(stream, IfmZeroPoint{}), add(stream, IfmPrecision{.is_signed = true});
  add(stream, OfmRegion{.value = 1});
  add(stream, OfmBase0{.value = to}), add(stream, OfmBase1{}), add(stream, OfmBase2{}), add(stream, OfmBase3{});
  add(stream, OfmWidth0M1{.value = width}), add(stream, OfmHeight0M1{.value = height}),
      add(stream, OfmHeight1M1{.value = height});
  add(stream, OfmStrideX{.value = depth}), add(stream, OfmStrideY{.value = uint64_t{depth} * width}),
      add(stream, OfmStrideC{.value = 1});
  add(stream, OfmWidthM1{.value = width}), add(stream, OfmHeightM1{.value = height}),
      add(stream, OfmDepthM1{.value = depth});
  add(stream, OfmZeroPoint{});
  add(stream, OfmPrecision{.is_signed = true, .scale_mode = OutputScale::global});
  add(stream, OfmScale{.shift = 1, .scale = 1});
  add(stream, ActivationMin{.value = 0xFF80}), add(stream, ActivationMax{.value = 127});
}

}  // namespace skillet::ethosu::hw
