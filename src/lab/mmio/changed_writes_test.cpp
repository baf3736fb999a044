// Start sequences of the cores of etnaviv and rocket, with one write changed or left out. After an intended change, run
// SKILLET_UPDATE=1 mmio_test to write tests/expectations/mmio.txt.
#include "lab/mmio/testing/changed_writes.h"

#include <cstring>

#include "base/testing/in_tree.h"
#include "capture/hardware.h"
#include "lab/mmio/etnaviv/core.h"
#include "lab/mmio/rocket/core.h"

namespace skillet::mmio {
namespace {

constexpr const char* kFile = "tests/expectations/mmio.txt";
constexpr uint64_t kDirectory = 0x4000, kPages = 0x100000;

// A job of a capture in a guest's memory: tables from kDirectory on, pages from kPages on.
struct MappedJob {
  explicit MappedJob(const char* name)
      : capture(capture::read(in_tree(std::string("tests/captures/") + name)).value()),
        submission(capture.submissions.back()) {}

  uint32_t& word(Guest& guest, uint64_t address, uint64_t& next_table, uint64_t& next_page) const {
    uint32_t& directory = guest.word(kDirectory + (address >> 22) * 4);
    if (directory == 0) directory = static_cast<uint32_t>(next_table += 0x1000) | 1;
    uint32_t& page = guest.word((directory & ~7U) + (address >> 12 & 0x3ff) * 4);
    if (page == 0) page = static_cast<uint32_t>(next_page += 0x1000) | 7;
    return guest.word((page & ~7U) + (address & 0xffc));
  }
  // Also maps `more` at an address.
  void map(Guest& guest, uint64_t address, std::span<const uint32_t> more) const {
    uint64_t next_table = kDirectory, next_page = kPages - 0x1000;
    for (const capture::BufferSnapshot& one : submission.buffers) {
      for (uint64_t at = 0; at < one.size_bytes; at += 4) {
        uint32_t& to = word(guest, one.address + at, next_table, next_page);
        if (at < one.bytes.size()) std::memcpy(&to, one.bytes.data() + at, std::min<size_t>(4, one.bytes.size() - at));
      }
    }
    for (size_t i = 0; i < more.size(); ++i) word(guest, address + i * 4, next_table, next_page) = more[i];
  }
  const capture::Commands& commands() const { return submission.jobs[0].commands[0]; }

  capture::Capture capture;
  const capture::Submission& submission;
};

// Adds the tables' first entries as writes.
void add_tables(Sequence& sequence) {
  Guest guest;
  sequence.prepare(guest);
  size_t count = 0;
  for (uint64_t at = kDirectory; at < kDirectory + 0x5000 && count < 8; at += 4) {
    if (guest.word(at) == 0) continue;
    sequence.writes.insert(sequence.writes.begin(),
                           {.offset = at, .value = guest.word(at), .kind = Write::Kind::to_memory});
    ++count;
  }
}

Sequence etnaviv_sequence(const MappedJob& job, bool is_secure) {
  constexpr uint32_t kRing = 0x00101000, kJob = 0x3e000000;
  std::vector<uint32_t> stream = job.commands().words;
  const auto words64 = static_cast<uint32_t>(stream.size() / 2 + 1);
  stream.insert(stream.end(), {0x40000002, kRing + 0x18});  // LINK to the ring
  // LOAD_STATE of the MMU's configuration, LINK to the job; EVENT 5 of the PE, END.
  const uint32_t configure = is_secure ? 0x0801006b : 0x08010061;
  const uint32_t configuration = is_secure ? 1 : kDirectory;
  const std::vector<uint32_t> ring = {
      configure, configuration, 0x40000000U | words64, kJob, 0x18000000, 0, 0x08010e01, 0x45, 0x10000000, 0};
  Sequence out;
  out.make = [](Guest& guest) -> std::unique_ptr<Device> {
    return std::make_unique<etnaviv::Core>(
        "test", etnaviv::Identity{.ids = {0x8000, 2, 3, 4, 5}, .features = {6, 7, 8, 9, 10, 11, 12, 13}},
        sim::create("a311d").value(), Faults{}, guest.surroundings());
  };
  out.prepare = [&job, stream](Guest& guest) { job.map(guest, kJob, stream); };
  add_tables(out);
  const auto memory = [&](uint64_t at, uint32_t value) { out.writes.push_back({at, value, Write::Kind::to_memory}); };
  // The ring is in a page of its own, whose entry is in the first directory.
  memory(kDirectory, 0xf001);
  memory(0xf000 + (kRing >> 12 & 0x3ff) * 4, 0x1007);
  for (size_t i = 0; i < ring.size(); ++i) memory(0x1000 + i * 4, ring[i]);
  memory(0x3000, static_cast<uint32_t>(kDirectory)), memory(0x3004, 0);
  memory(0x3008, static_cast<uint32_t>(kDirectory)), memory(0x300c, 0);
  const auto write = [&](uint64_t at, uint32_t value) { out.writes.push_back({at, value, {}}); };
  write(0x000, 0x1900), write(0x000, 0x900);
  if (is_secure) write(0x3a8, 1), write(0x38c, 0x3000), write(0x390, 0), write(0x394, 1);
  if (!is_secure) {  // without the MMU, the front end runs at the ring's physical address
    memory(0x2000, configure), memory(0x2004, configuration), memory(0x2008, 0x10000000), memory(0x200c, 0);
    write(0x654, 0x2000), write(0x658, 0x10002);
    out.writes.push_back({0x004, 0x7fffffff, Write::Kind::wait});
  }
  write(is_secure ? 0x388 : 0x18c, 1);
  write(0x014, ~uint32_t{0}), write(0x654, kRing), write(0x658, 0x10002), write(0x3a4, 0x10002);
  out.after = {{0x014, 0}, {0x3a8, 1}};
  out.last = 0x66c;
  out.moving = {0x450, 0x664};
  out.results = kPages, out.result_bytes = 0x20000;
  return out;
}

TEST(ChangedWrites, OfEtnaviv) {
  const log::ScopedLevel quiet(log::Level::error);
  const MappedJob job("a311d_conv1x1_relu6_u8");
  expect_lines(kFile, "etnaviv",
               {{"etnaviv secure", ChangedWrites(etnaviv_sequence(job, true)).hashes()},
                {"etnaviv plain", ChangedWrites(etnaviv_sequence(job, false)).hashes()}});
}

TEST(ChangedWrites, OfRocket) {
  const log::ScopedLevel quiet(log::Level::error);
  const MappedJob job("rk3588_conv1x1_relu6_u8");
  Sequence sequence;
  sequence.make = [](Guest& guest) -> std::unique_ptr<Device> {
    return std::make_unique<rocket::Core>("test", 0, 2, sim::rockchip::Npu::create("rk3588").value(), Faults{},
                                          guest.surroundings());
  };
  sequence.prepare = [&](Guest& guest) { job.map(guest, 0, {}); };
  add_tables(sequence);
  const auto address = static_cast<uint32_t>(job.commands().address);
  const auto amount = static_cast<uint32_t>(job.commands().size_bytes / 16);
  for (const auto& [offset, value] : std::initializer_list<std::pair<uint64_t, uint32_t>>{
           {0x10000, 0},   {0x10000, 3}, {0x9008, 6},     {0xa008, 6},    {0x9000, 0x4000}, {0xa000, 0x4000},
           {0x9008, 4},    {0xa008, 4},  {0x901c, 3},     {0xa01c, 3},    {0x9008, 0},      {0xa008, 0},
           {0x1004, 14},   {0x3004, 14}, {0x10, address}, {0x14, amount}, {0x20, 0x300},    {0x24, 0x1ffff},
           {0x30, 0x7001}, {0x08, 1},    {0x9024, 2}})
    sequence.writes.push_back({offset, value, {}});
  sequence.writes.push_back({0x08, 0, Write::Kind::fixed});
  sequence.after = {{0x9018, 1}, {0x9008, 5}, {0x24, 0x1ffff}, {0x9008, 3}};
  sequence.last = 0x40;
  for (uint64_t set : {0x9000, 0xa000, 0xb000})
    for (uint64_t at = 0; at < 0x28; at += 4) sequence.more.push_back(set + at);
  sequence.more.push_back(0x10000);
  sequence.results = kPages, sequence.result_bytes = 0x20000;
  expect_lines(kFile, "rocket", {{"rocket", ChangedWrites(sequence).hashes()}});
}

}  // namespace
}  // namespace skillet::mmio
