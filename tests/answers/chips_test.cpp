// Facts, answers, programs and predicted times of every chip, and every row of registers and times. Other tests have a
// few chips of each family, and only the register fields that known programs use. See graphs_test.cpp.
#include "answers/lines.h"
#include "compile/compile.h"
#include "compile/cpu_speed.h"
#include "npu/driver.h"
#include "npus/ethosu/hw/ethosu.h"
#include "npus/rockchip/hw/rockchip.h"
#include "npus/vivante/hw/vivante.h"
#include "runtime/cost_model.h"
#include "sim/sim.h"
#include "sim/timing.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr const char* kGraphs[] = {
    R"(tensor 0 "x" uint8 1x33x34x3 scale=0.05 zero=128
tensor 1 "w" uint8 16x3x3x3 scale=0.02 zero=128 const=random:1
tensor 2 "y" uint8 1x17x17x16 scale=0.5 zero=128
tensor 3 "v" uint8 1x3x3x16 scale=0.02 zero=128 const=random:2
tensor 4 "z" uint8 1x17x17x16 scale=0.5 zero=128
inputs 0
outputs 4
op 0 CONV_2D in=[0 1 -] out=[2] padding=same stride_h=2 stride_w=2 activation=relu
op 1 DEPTHWISE_CONV_2D in=[2 3 -] out=[4] padding=same depth_multiplier=1
)",
    R"(tensor 0 "x" int8 1x12x12x72 scale=0.05 zero=3
tensor 1 "w" int8 70x1x1x72 scale=0.02 zero=0 const=random:1
tensor 2 "b" int32 70 scale=0.001 zero=0 const=random:2
tensor 3 "y" int8 1x12x12x70 scale=0.5 zero=4
tensor 4 "a" int8 1x6x6x70 scale=0.5 zero=4
inputs 0
outputs 4
op 0 CONV_2D in=[0 1 2] out=[3] padding=valid
op 1 AVERAGE_POOL_2D in=[3] out=[4] padding=valid filter_h=2 filter_w=2 stride_h=2 stride_w=2
)",
    R"(tensor 0 "a" int8 1x9x10x24 scale=0.05 zero=0
tensor 1 "b" int8 1x9x10x24 scale=0.07 zero=0
tensor 2 "y" int8 1x9x10x24 scale=0.1 zero=0
tensor 3 "m" int8 1x4x5x24 scale=0.1 zero=0
inputs 0 1
outputs 3
op 0 ADD in=[0 1] out=[2]
op 1 MAX_POOL_2D in=[2] out=[3] padding=valid filter_h=2 filter_w=2 stride_h=2 stride_w=2
)",
    R"(tensor 0 "x" uint8 1x300 scale=0.05 zero=128
tensor 1 "w" uint8 40x300 scale=0.02 zero=128 const=random:1
tensor 2 "y" uint8 1x40 scale=0.5 zero=128
tensor 3 "p" uint8 1x40 scale=0.00390625 zero=0
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 -] out=[2]
op 1 LOGISTIC in=[2] out=[3]
)"};
std::vector<ir::Graph> graphs() {
  std::vector<ir::Graph> out;
  for (const char* text : kGraphs) {
    auto graph = ir::parse(fmt::format("graph \"g\"\n{}", text));
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    if (graph.ok()) out.push_back(std::move(graph).value());
  }
  return out;
}

std::string facts_of(const npu::Driver& driver, const npu::Chip& chip) {
  Hash hash;
  hash.add(fmt::format("{} {} {} {} {} {}", chip.name, chip.title, chip.unproven, chip.is_sold, chip.one_core_at_a_time,
                       chip.channels_of_a_shift));
  for (const npu::Assumption& row : driver.assumptions(chip))
    hash.add(fmt::format("{} {} {} {}", row.name, row.what, row.sections, row.probe));
  for (const sim::Quirk& quirk : sim::quirks(chip.name))
    hash.add(fmt::format("{} {} {}", quirk.name, quirk.assumption, quirk.what));
  return hash.text();
}

// Answers, programs and predicted times.
std::string answers_of(const npu::Driver& driver, const npu::Chip& chip) {
  Hash answers, programs, costs, times;
  compile::ProgramCosts program_costs;
  if (auto known = runtime::timing_costs(chip); known.ok()) program_costs = std::move(known).value();
  const compile::Options options{.driver = {.tuning = npu::Tuning::tuned, .unproven = npu::Unproven::take}};
  for (const ir::Graph& graph : graphs()) {
    for (size_t op = 0; op < graph.ops.size(); ++op)
      answers.add(driver.supports(chip, graph, static_cast<ir::OpId>(op)).reason);
    const auto compiled = compile::compile(graph, {&driver, chip}, options);
    programs.add(compiled.ok() ? "fine" : compiled.error().message);
    if (!compiled.ok()) continue;
    for (const compile::Part& part : compiled->parts) {
      if (!part.program) continue;
      programs.add(npu::serialise(*part.program, false).value());
      if (const auto model = driver.costs(chip, {})) {
        for (const npu::Cost& one : model->of_ops(chip, part.partition.graph, options.driver, 1))
          costs.add(fmt::format("{:.4g} {:.4g}", one.start_us, one.device_us));
      }
      if (!program_costs) continue;
      const auto timed = program_costs(*part.program);
      times.add(timed.ok() ? "fine" : timed.error().message);
      for (size_t i = 0; timed.ok() && i < timed->size(); ++i)
        times.add(fmt::format("{:.4g} {:.4g}", (*timed)[i].device_us, (*timed)[i].wall_us()));
    }
  }
  return fmt::format("answers {} programs {} costs {} times {}", answers.text(), programs.text(), costs.text(),
                     times.text());
}

TEST(Answers, OfEachChip) {
  Lines now;
  for (const npu::Driver* driver : npu::drivers()) {
    if (driver->name() == "toy") continue;  // which not all builds have
    for (const npu::Chip& chip : driver->chips())
      now["chip " + chip.name] = fmt::format("facts {} {}", facts_of(*driver, chip), answers_of(*driver, chip));
  }
  expect_lines(kFile, "chip ", now);
}

std::string text_of(const bits::Row& row) {
  std::string out =
      fmt::format("{} {} {} {} {} {} {}", row.name, static_cast<int>(row.kind), static_cast<int>(row.codec.kind),
                  row.codec.argument, static_cast<int>(row.evidence), row.member_size, row.doc);
  for (uint8_t i = 0; i < row.where.count; ++i) {
    const bits::Piece& piece = row.where.pieces[i];
    out += fmt::format(" {}.{}+{}", piece.word, piece.lsb, piece.width);
  }
  for (const bits::EnumName& one : row.names.values) out += fmt::format(" {}={}", one.name, one.value);
  return out;
}
std::string text_of(const vivante::hw::ChipRow& row) {
  const vivante::hw::ChipIds& ids = row.ids;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", row.name, row.title, ids.model,
                     ids.revision, ids.product, ids.eco, ids.customer, row.generation, row.nn_cores, row.tp_cores,
                     row.input_buffer_depth, row.accum_buffer_depth, row.sram_bytes, row.zrl_bits_max, row.offset_bits,
                     row.kernel_size_max, row.clock_mhz, row.flags, row.assumption);
}
std::string text_of(const rockchip::hw::ChipRow& row) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", row.name, row.title, row.compatible, row.cores,
                     row.cbuf_banks, row.cbuf_bank_bytes, row.cbuf_unit_bytes, row.atom_bytes, row.kernel_group,
                     row.depthwise_group, row.task_number_bits, row.commands_per_fetch, row.flags, row.missing);
}
std::string text_of(const ethosu::hw::ChipRow& row) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", row.name, row.title, row.accelerator, row.compatible,
                     static_cast<int>(row.product), row.macs, row.shram_kbytes, row.table_address, row.table_kbytes,
                     row.ublock_depth, row.cores, row.transfers, row.config_rest);
}
std::string row_of(const npu::Chip& chip) {
  const auto in = [&](const auto rows) {
    for (const auto& row : rows)
      if (row.name == chip.name) return text_of(row);
    return std::string();
  };
  if (chip.family == "vivante") return in(vivante::hw::chips());
  if (chip.family == "rockchip") return in(rockchip::hw::chips());
  return chip.family == "ethosu" ? in(ethosu::hw::chips()) : "";
}
TEST(Answers, OfTheRowsOfEachFamily) {
  Lines now;
  for (const npu::Driver* driver : npu::drivers()) {
    if (driver->name() == "toy") continue;
    for (const npu::Chip& chip : driver->chips()) {
      const npu::HardwareRows rows = driver->hardware_rows(chip);
      Hash descriptors, registers, own;
      own.add(row_of(chip));
      for (const bits::Descriptor* one : rows.descriptors) {
        descriptors.add(fmt::format("{} {} {}", one->name, one->words, one->address));
        for (const bits::Row& row : one->rows) descriptors.add(text_of(row));
      }
      for (const npu::PlainRegister& one : rows.registers)
        registers.add(fmt::format("{} {} {}", one.address, one.name, one.doc == nullptr ? "" : one.doc));
      now["rows " + chip.name] = fmt::format("chip {} fields {} {} registers {} {}", own.text(), descriptors.count(),
                                             descriptors.text(), registers.count(), registers.text());
    }
  }
  expect_lines(kFile, "rows ", now);
}

// Rows of times, and the CPU's speeds.
TEST(Answers, OfTheRowsOfTimes) {
  std::map<std::string, Hash> hashes;
  for (const sim::TimingParameter& row : sim::timing_parameters()) {
    hashes[std::string(row.chip)].add(fmt::format("{} {} {} {} {} {} {} {} {}", row.jobs, row.name, row.value, row.unit,
                                                  row.mark, row.source, row.low, row.high, row.state));
  }
  Hash& cpu = hashes["of CPUs"];
  for (int core = 0; core < 100; ++core) {
    const auto speed = compile::cpu_speed_of(core, 2, 4);
    for (size_t type = 0; speed && type < speed->rates.size(); ++type) {
      const auto& [dense, depthwise, element, table, copy] = speed->rates[type];
      cpu.add(
          fmt::format("{} {} {:.4g} {:.4g} {:.4g} {:.4g} {:.4g}", core, type, dense, depthwise, element, table, copy));
    }
  }
  expect_hashes(kFile, "timing ", hashes);
}

}  // namespace
}  // namespace skillet::answers
