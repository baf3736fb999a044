// What `skillet doctor` concludes from the facts of very many machines: boards, kernels, drivers, containers,
// device-tree nodes and device nodes in all combinations. See graphs_test.cpp.
#include "answers/lines.h"
#include "kernels/fake/simulated.h"
#include "npu/driver.h"
#include "tools/machine/diagnose.h"

namespace skillet::answers {
namespace {

using tools::DriverFacts;
using tools::MachineFacts;

constexpr const char* kMachinesFile = "tests/expectations/answers.txt";

// Device nodes of one machine, with the missing permissions.
struct Nodes {
  std::string name;
  std::vector<kernels::NodeReport> nodes;
  std::vector<std::string> permissions;
};

std::vector<Nodes> all_nodes() {
  const std::string render = "/dev/dri/renderD128";
  const Error busy{ErrorCode::device, "it is busy"};
  std::vector<Nodes> out = {{"none", {}, {}},
                            {"closed", {{render, "etnaviv", {}, {}}}, {"join the group render"}},
                            {"closed-and-open", {{render, "etnaviv", {}, {}}, {render, "panfrost", {}, {}}}, {"join"}},
                            {"failing", {{render, "etnaviv", {}, busy}}, {""}},
                            {"unknown", {{render, "panfrost", {}, {}}}, {""}},
                            {"no-core", {{render, "etnaviv", {}, {}}}, {""}}};
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      const auto fake = fake::null_core(chip.name);
      if (!fake.ok()) continue;
      for (const uint32_t cores : {1U, 2U}) {
        kernels::NodeReport node = {fake->core.info.node, fake->core.info.kernel_driver, {}, {}};
        for (uint32_t i = 0; i < cores; ++i) node.cores.push_back(fake->core), node.cores.back().index = i;
        out.push_back({chip.name, {node}, {""}});
        kernels::NodeReport other = node;
        for (kernels::Core& core : other.cores) core.info.node = other.node = "/dev/dri/renderD129";
        out.push_back({chip.name, {node, other}, {"", "join the group render"}});
      }
    }
  }
  return out;
}

// Calls `use` for each state of the one kernel driver `driver`; the others are missing.
template <typename Use>
void each_state(const kernels::KernelDriver& driver, const Use& use) {
  using tools::ModuleState;
  for (const ModuleState module : {ModuleState::loaded, ModuleState::on_disk, ModuleState::missing}) {
    for (const size_t cores : {0U, 1U, 2U}) {
      for (const size_t disabled : {0U, 1U}) {
        for (const char* vendor : {"", "galcore"}) {
          std::vector<DriverFacts> all;
          for (const kernels::KernelDriver& one : kernels::kernel_drivers()) {
            all.push_back({.driver = &one, .cores = {}, .disabled_cores = {}, .vendor_module = {}});
            if (&one == &driver)
              all.back() = {&one, std::vector<std::string>(cores, "/npu@1"),
                            std::vector<std::string>(disabled, "/npu@2"), module, vendor};
          }
          use(all);
        }
      }
    }
  }
}

void add(Hash& hash, const MachineFacts& facts) {
  for (const tools::Finding& one : tools::diagnose(facts))
    hash.add(fmt::format("{} {} {} {}\n", one.id, static_cast<int>(one.severity), one.what, one.fix));
  hash.add("end\n");
}

// Calls `use` for each kernel, container and device tree of a machine with this board; empty: a board that nobody
// knows.
template <typename Use>
void each_system(const std::string& compatible, const Use& use) {
  for (const char* release : {"6.1.0", "6.6.12-rc1", "6.18.0", "6.19", "7.2.3", "odd", ""}) {
    for (const char* container : {"", "docker"}) {
      for (const bool has_tree : {true, false}) {
        MachineFacts facts;
        facts.kernel_release = release, facts.container = container, facts.has_device_tree = has_tree;
        if (has_tree) facts.board = "A board", facts.board_compatible = {"maker,board", compatible};
        use(facts);
      }
    }
  }
}

TEST(Answers, OfMachines) {
  std::map<std::string, Hash> now;
  const std::vector<Nodes> nodes = all_nodes();
  for (const kernels::KernelDriver& driver : kernels::kernel_drivers()) {
    std::vector<std::string> boards = {""};
    for (const kernels::Board& board : driver.boards) boards.emplace_back(board.compatible);
    for (const std::string& board : boards) {
      each_system(board, [&](MachineFacts& facts) {
        each_state(driver, [&](const std::vector<DriverFacts>& states) {
          facts.drivers = states;
          for (size_t i = 0; i < 6; ++i) {  // those of no chip
            facts.nodes = nodes[i].nodes, facts.permissions = nodes[i].permissions;
            add(now[std::string(driver.name)], facts);
          }
        });
      });
    }
    each_system(boards.back(), [&](MachineFacts& facts) {
      each_state(driver, [&](const std::vector<DriverFacts>& states) {
        facts.drivers = states;
        for (const Nodes& one : nodes) {
          facts.nodes = one.nodes, facts.permissions = one.permissions;
          facts.takes_unproven = !facts.takes_unproven;
          if (one.nodes.empty() || one.nodes[0].kernel_driver == driver.name) add(now[one.name], facts);
        }
      });
    });
  }
  expect_hashes(kMachinesFile, "doctor ", now);
}

}  // namespace
}  // namespace skillet::answers
