#include "npus/rockchip/sim/dma.h"

#include <cstring>

#include "npus/rockchip/sim/fault.h"

namespace skillet::sim::rockchip {

template <bool kWrites, typename Copy>
Result<void> Dma::transfer(uint64_t address, size_t size, std::string_view what, Copy copy) const {
  for (size_t done = 0; done < size;) {
    const auto range = memory_.from(address + done, what);
    if (!range.ok())
      return stall("IOMMU fault, {} of {} bytes at {:#x}: {}", kWrites ? "write" : "read", size, address,
                   range.error().message);
    if constexpr (kWrites) SK_TRY(memory_.check_written(address + done, what));
    const size_t count = std::min(size - done, range->size());
    copy(range->data(), done, count);
    done += count;
  }
  return {};
}

Result<std::vector<uint8_t>> Dma::read(uint64_t address, uint64_t size, std::string_view what) const {
  SK_TRY(check_mapped(address, size, what));
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  SK_TRY(read(address, bytes, what));
  return bytes;
}

Result<void> Dma::check_mapped(uint64_t address, uint64_t size, std::string_view what) const {
  return transfer<false>(address, static_cast<size_t>(size), what, [](const uint8_t*, size_t, size_t) {});
}

Result<void> Dma::read(uint64_t address, std::span<uint8_t> to, std::string_view what) const {
  if (writes_ == Writes::hang) SK_TRY(check_written_before(address, to.size(), what));
  return transfer<false>(address, to.size(), what, [to](const uint8_t* memory, size_t done, size_t count) {
    std::memcpy(to.data() + done, memory, count);
  });
}

Result<void> Dma::check_written_before(uint64_t address, uint64_t size, std::string_view what) const {
  for (const WrittenBytes::Piece& piece : written_->pieces) {
    if (address < piece.address + piece.bytes.size() && piece.address < address + size)
      return stall("a quirk of this chip: {} at {:#x} are what a task of this job wrote", what, address);
  }
  return {};
}

Result<void> Dma::write(uint64_t address, std::span<const uint8_t> from, std::string_view what) const {
  if (writes_ != Writes::at_once) written_->pieces.push_back({address, {from.begin(), from.end()}});
  return writes_ == Writes::late ? Result<void>() : write_now(address, from, what);
}

Result<void> Dma::finish_job() const {
  if (writes_ != Writes::late) return {};
  for (const WrittenBytes::Piece& piece : written_->pieces) SK_TRY(write_now(piece.address, piece.bytes, "output"));
  written_->pieces.clear();
  return {};
}

Result<void> Dma::write_now(uint64_t address, std::span<const uint8_t> from, std::string_view what) const {
  return transfer<true>(address, from.size(), what, [from](uint8_t* memory, size_t done, size_t count) {
    std::memcpy(memory, from.data() + done, count);
  });
}

}  // namespace skillet::sim::rockchip
