// A start sequence of an Ethos-U with one write changed or left out. After an intended change, run SKILLET_UPDATE=1
// mmio_ethosu_test to write tests/expectations/mmio.txt.
#include "lab/mmio/testing/changed_writes.h"

#include <cstring>

#include "lab/mmio/ethosu/core.h"
#include "npus/ethosu/hw/testing/streams.h"

namespace skillet::mmio::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

TEST(ChangedWrites, OfEthosu) {
  const log::ScopedLevel quiet(log::Level::error);
  constexpr uint32_t kQueueAt = 0x10000, kFrom = 0x20000, kTo = 0x30000;
  hw::Words stream;
  hw::add_copy(stream, 0, 0, 1, 0, 64);
  hw::add_copy(stream, 1, 16, 3, 32, 48);
  hw::add_stop(stream);
  Sequence sequence;
  sequence.make = [](Guest& guest) -> std::unique_ptr<Device> {
    return std::make_unique<Core>("test", Core::Identity{.id = 7, .config = 8}, sim::create("ethos-u65-256").value(),
                                  Faults{}, guest.surroundings());
  };
  sequence.prepare = [](Guest& guest) {
    for (uint32_t i = 0; i < 0x1000; i += 4) guest.word(kFrom + i) = i * 0x01030507;
  };
  for (size_t i = 0; i < stream.size(); ++i)
    sequence.writes.push_back({kQueueAt + i * 4, stream[i], Write::Kind::to_memory});
  sequence.writes.push_back({0x08, 0xc, Write::Kind::fixed});
  for (const auto& [offset, value] :
       std::initializer_list<std::pair<uint64_t, uint32_t>>{{0x0c, 3},
                                                            {0x10, kQueueAt},
                                                            {0x14, 0},
                                                            {0x20, static_cast<uint32_t>(stream.size() * 4)},
                                                            {0x3c, 0x10},
                                                            {0x40, 1},
                                                            {0x44, 2},
                                                            {0x48, 3},
                                                            {0x4c, 4},
                                                            {0x80, kFrom},
                                                            {0x84, 0},
                                                            {0x88, kTo},
                                                            {0x8c, 0},
                                                            {0x98, kTo + 0x1000},
                                                            {0x9c, 0},
                                                            {0x08, 1}})
    sequence.writes.push_back({offset, value, {}});
  sequence.after = {{0x08, 2}};
  sequence.last = 0xfc;
  sequence.results = kTo, sequence.result_bytes = 0x10000;
  expect_lines("tests/expectations/mmio.txt", "ethosu", {{"ethosu", ChangedWrites(sequence).hashes()}});
}

}  // namespace
}  // namespace skillet::mmio::ethosu
