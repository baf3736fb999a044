#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/testing/own_folder.h"
#include "kernels/fake/simulated.h"
#include "tools/machine/diagnose.h"
#include "tools/machine/self_test.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::pair<std::string, std::string>>;

// A machine made of files in a temporary folder.
class Machine {
 public:
  explicit Machine(const Files& files) {
    std::string pattern = own_path("machine_XXXXXX");
    root_ = ::mkdtemp(pattern.data());
    for (const auto& [name, text] : files) {
      fs::create_directories(fs::path(root_ + name).parent_path());
      std::ofstream(root_ + name, std::ios::binary) << text;
    }
  }
  ~Machine() { fs::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

const Finding* find(const std::vector<Finding>& findings, const std::string& id) {
  const auto found = std::ranges::find(findings, id, &Finding::id);
  return found == findings.end() ? nullptr : &*found;
}

const std::string kTree = "/sys/firmware/devicetree/base/";
const std::string kKernel = "/proc/sys/kernel/osrelease";
const std::string kA311d("amlogic,a311d\0amlogic,g12b\0", 27);
const std::string kCore("vivante,gc\0", 11);

Files board(const std::string& release) {
  return {{kKernel, release + "\n"},
          {kTree + "model", std::string("Khadas VIM3\0", 12)},
          {kTree + "compatible", kA311d},
          {kTree + "soc/npu@ff100000/compatible", kCore}};
}

// A machine for the other kernel driver.
Files rock(const std::string& release) {
  return {{kKernel, release + "\n"},
          {kTree + "compatible", std::string("radxa,rock-5b\0rockchip,rk3588\0", 30)},
          {kTree + "npu@fdab0000/compatible", std::string("rockchip,rk3588-rknn-core\0", 26)}};
}

Files with(Files files, const Files& more) {
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

struct Row {
  const char* name;
  Files files;
  std::vector<kernels::NodeReport> nodes;
  const char* permission;
  const char* id;    // id of the expected problem
  const char* what;  // part of its text
  const char* fix;   // part of the fix
};

const std::string kLoaded = "etnaviv 94208 1 - Live 0x0\n", kRocketLoaded = "rocket 32768 0 - Live 0x0\n";
const kernels::Core kGpu{
    {.kernel_driver = "etnaviv", .node = "/dev/dri/renderD128", .facts = {{"model", 0x7000}, {"revision", 0x6214}}}, 0};

const std::vector<Row> kRows = {
    {"nothing", {{kKernel, "6.1.0\n"}}, {}, "", "no-device-tree", "no device tree", "sim:a311d"},
    {"module missing", board("6.12.0"), {}, "", "no-module", "/lib/modules/6.12.0", "CONFIG_DRM_ETNAVIV"},
    {"module not loaded",
     with(board("6.12.0"), {{"/lib/modules/6.12.0/kernel/drivers/gpu/drm/etnaviv/etnaviv.ko.xz", ""}}),
     {},
     "",
     "module-not-loaded",
     "installed but not loaded",
     "sudo modprobe etnaviv"},
    {"module in the list only",
     with(board("6.12.0"), {{"/lib/modules/6.12.0/modules.dep", "k/etnaviv.ko.xz:\n"}}),
     {},
     "",
     "module-not-loaded",
     "installed",
     "modprobe"},
    {"old kernel", board("6.6.31"), {}, "", "old-kernel", "Linux 6.6.31 is too old", "Linux 6.7 or newer"},
    {"old kernel on the other board",
     {{kKernel, "6.7.9\n"}, {kTree + "compatible", std::string("fsl,imx8mp\0", 11)}},
     {},
     "",
     "old-kernel",
     "6.7.9 is too old",
     "Linux 6.8 or newer"},
    {"no device-tree node",
     {{kKernel, "6.12.0\n"}, {kTree + "compatible", kA311d}, {"/proc/modules", kLoaded}},
     {},
     "",
     "no-device-tree-node",
     "has no Vivante core",
     "npu@ff100000"},
    {"disabled",
     with(board("6.12.0"), {{kTree + "soc/npu@ff100000/status", std::string("disabled\0", 9)}}),
     {},
     "",
     "disabled-in-device-tree",
     "/soc/npu@ff100000",
     "status = \"okay\""},
    {"no node", with(board("6.12.0"), {{"/proc/modules", kLoaded}}), {}, "", "no-node", "created no /dev/dri", "dmesg"},
    {"vendor's driver",
     with(board("6.12.0"), {{"/proc/modules", "galcore 1 0 - Live 0x0\n"}}),
     {},
     "",
     "vendor-module",
     "'galcore' is loaded",
     "blacklist galcore"},
    {"container",
     {{kKernel, "6.12.0\n"}, {"/.dockerenv", ""}},
     {},
     "",
     "container-without-node",
     "container (docker)",
     "--device /dev/dri or --device /dev/accel --group-add"},
    {"podman",
     {{kKernel, "6.12.0\n"}, {"/run/.containerenv", ""}},
     {},
     "",
     "container-without-node",
     "(podman)",
     "keep-groups"},
    {"kubernetes",
     {{kKernel, "6.12.0\n"}, {"/proc/1/cgroup", "0::/kubepods/x\n"}},
     {},
     "",
     "container-without-node",
     "(kubepods)",
     "--device"},
    {"no permission",
     with(board("6.12.0"), {{"/proc/modules", kLoaded}}),
     {{"/dev/dri/renderD128", "", {}, Error{ErrorCode::io, "EACCES"}}},
     "this user is not in it: usermod",
     "no-permission",
     "/dev/dri/renderD128 may not be opened",
     "usermod"},
    {"wrong core",
     with(board("6.12.0"), {{"/proc/modules", kLoaded}}),
     {{"/dev/dri/renderD128", "etnaviv", {kGpu}, {}}},
     "",
     "wrong-core",
     "model 0x7000, revision 0x6214",
     "report these ids"},
    {"node that is none",
     with(board("6.12.0"), {{"/dev/dri/renderD129", ""}}),
     {},
     "",
     "node-fails",
     "ENOTTY",
     "dmesg"},
    {"rocket: old kernel", rock("6.17.9"), {}, "", "old-kernel", "Linux 6.17.9 is too old", "Linux 6.18 or newer"},
    {"rocket: module missing",
     rock("6.18.0"),
     {},
     "",
     "no-module",
     "driver rocket is neither",
     "CONFIG_DRM_ACCEL_ROCKET"},
    {"rocket: module not loaded",
     with(rock("6.18.0"), {{"/lib/modules/6.18.0/kernel/drivers/accel/rocket/rocket.ko.xz", ""}}),
     {},
     "",
     "module-not-loaded",
     "rocket is installed but not loaded",
     "sudo modprobe rocket"},
    {"rocket: no node",
     with(rock("6.18.0"), {{"/proc/modules", kRocketLoaded}}),
     {},
     "",
     "no-node",
     "created no /dev/accel/accel",
     "grep -i rocket"},
    {"rocket: vendor's driver",
     with(rock("6.18.0"), {{"/proc/modules", "rknpu 1 0 - Live 0x0\n"}}),
     {},
     "",
     "vendor-module",
     "'rknpu' is loaded",
     "blacklist rknpu"},
    {"rocket: disabled",
     with(rock("6.18.0"), {{kTree + "npu@fdab0000/status", std::string("disabled\0", 9)}}),
     {},
     "",
     "disabled-in-device-tree",
     "/npu@fdab0000",
     "status = \"okay\""},
    {"rocket: no device-tree node",
     {{kKernel, "6.18.0\n"}, {kTree + "compatible", std::string("rockchip,rk3588s\0", 17)}},
     {},
     "",
     "no-device-tree-node",
     "has no Rockchip NPU core",
     "npu@fdab0000"},
};

// Kernels provide the device tree at both places; containers often have only one of them.
Files with_tree_at(const std::string& place, Files files) {
  for (auto& [path, text] : files) {
    if (path.starts_with(kTree)) path.replace(0, kTree.size(), place);
  }
  return files;
}

class EachTree : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Doctor, EachTree, ::testing::Values("/sys/firmware/devicetree/base/", "/proc/device-tree/"));

TEST_P(EachTree, FindsEachThingThatIsMissing) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const Machine machine(with_tree_at(GetParam(), row.files));
    MachineFacts facts = gather_facts(machine.root());
    if (!row.nodes.empty()) {
      facts.nodes = row.nodes;
      facts.permissions = {row.permission};
    }
    const std::vector<Finding> findings = diagnose(facts);
    const Finding* found = find(findings, row.id);
    std::string ids;
    for (const Finding& one : findings) ids += " " + one.id;
    ASSERT_NE(found, nullptr) << ids;
    EXPECT_EQ(found->severity, Severity::problem);
    EXPECT_NE(found->what.find(row.what), std::string::npos) << found->what;
    EXPECT_NE(found->fix.find(row.fix), std::string::npos) << found->fix;
  }
}

TEST(Doctor, KnowsContainersByWhatTheyLeave) {
  struct Case {
    std::string file, text, name;
  };
  const Case cases[] = {{"/.dockerenv", "", "docker"},
                        {"/run/.containerenv", "", "podman"},
                        {"/proc/1/cgroup", "0::/kubepods/besteffort/pod1\n", "kubepods"},
                        {"/proc/1/cgroup", "12:cpu:/docker/0123\n", "docker"},
                        {"/proc/1/cgroup", "0::/system.slice/containerd.service\n", "containerd"},
                        {"/proc/1/cgroup", "0::/lxc/box\n", "lxc"},
                        {"/proc/1/cgroup", "0::/machine.slice/libpod-12\n", "libpod"},
                        {"/proc/1/environ", std::string("A=b\0container=systemd-nspawn\0C=d", 32), "systemd-nspawn"},
                        {"/proc/1/environ", "container=oci", "oci"},
                        {"/proc/1/cgroup", "0::/init.scope\n", ""},
                        {"/proc/1/environ", "HOME=/", ""}};
  for (const Case& c : cases) {
    const Machine machine({{c.file, c.text}});
    EXPECT_EQ(gather_facts(machine.root()).container, c.name) << c.file << ": " << c.text;
  }
}

kernels::Core a311d(uint32_t index) {
  return {{.kernel_driver = "etnaviv",
           .node = "/dev/dri/renderD128",
           .facts = {{"model", 0x8000}, {"revision", 0x7120}, {"product", 0x45080009}, {"customer", 0x88}}},
          index};
}

TEST(Doctor, IsQuietAboutTheRestWhenAnNpuAnswers) {
  const Machine machine(with(board("6.12.0"), {{"/proc/modules", kLoaded}}));
  MachineFacts facts = gather_facts(machine.root());
  facts.nodes = {{"/dev/dri/renderD128", "etnaviv", {a311d(0)}, {}}, {"/dev/dri/renderD129", "panfrost", {}, {}}};
  facts.permissions = {"", ""};
  const auto findings = diagnose(facts);
  for (const Finding& one : findings) EXPECT_NE(one.severity, Severity::problem) << one.what;
  ASSERT_NE(find(findings, "npu"), nullptr);
  EXPECT_NE(find(findings, "npu")->what.find("etnaviv0 (/dev/dri/renderD128): core 0 is an NPU, Amlogic A311D"),
            std::string::npos);
  ASSERT_NE(find(findings, "other-driver"), nullptr);
}

// A tree of another program, or a broken file system.
TEST(Doctor, ReadsTreesWithOddEntries) {
  const Files odd = with(board("6.12.0"), {{kTree + "x/compatible/vivante,gc", "a folder"}, {kTree + "y/status", ""}});
  const Machine machine(with(odd, {{"/proc/modules/x", "a folder"}, {"/proc/1/cgroup/x", "a folder"}}));
  fs::create_symlink("/dev/zero", machine.root() + kTree + "serial-number");
  fs::remove(machine.root() + kTree + "model");
  fs::create_symlink("/dev/zero", machine.root() + kTree + "model");
  const std::vector<Finding> findings = diagnose(gather_facts(machine.root()));
  EXPECT_NE(find(findings, "no-module"), nullptr) << findings.size();
}

TEST(Doctor, NamesEachCoreOfANode) {
  const Machine machine(with(board("6.12.0"), {{"/proc/modules", kLoaded}}));
  MachineFacts facts = gather_facts(machine.root());
  facts.nodes = {{"/dev/dri/renderD128", "etnaviv", {a311d(0), a311d(1)}, {}}};
  facts.permissions = {""};
  std::string said;
  for (const Finding& one : diagnose(facts)) said += one.what + "\n";
  EXPECT_NE(said.find("etnaviv0 (/dev/dri/renderD128): core 0 is an NPU"), std::string::npos) << said;
  EXPECT_NE(said.find("etnaviv1 (/dev/dri/renderD128): core 1 is an NPU"), std::string::npos) << said;
}

TEST(Doctor, SaysThatAnUnprovenNpuIsRefused) {
  const Machine machine(with(board("6.12.0"), {{"/proc/modules", kLoaded}}));
  MachineFacts facts = gather_facts(machine.root());
  const auto node = fake::null_core("s905d3");
  ASSERT_TRUE(node.ok());
  kernels::Core npu = node->core;
  npu.info.node = "/dev/dri/renderD128";
  facts.nodes = {{npu.info.node, "etnaviv", {npu}, {}}};
  facts.permissions = {""};
  facts.takes_unproven = false;
  const auto findings = diagnose(facts);
  const Finding* found = find(findings, "unproven-npu");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::problem);
  EXPECT_NE(found->what.find("refused by unproven=refuse"), std::string::npos) << found->what;
  facts.takes_unproven = true;
  const auto allowed = diagnose(facts);
  found = find(allowed, "unproven-npu");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::note);
  EXPECT_NE(found->what.find("are compared with the CPU"), std::string::npos) << found->what;
}

TEST(Doctor, SaysWhatToKnowOfTheChip) {
  for (const auto& [chip, named] : {std::pair("rk3588", "200 MHz"), std::pair("rk3576", "TASK_CON 0x70001")}) {
    const auto node = fake::null_core(chip);
    if (!node.ok()) GTEST_SKIP() << node.error().message;  // a build without that family
    const Machine machine(with(rock("6.18.0"), {{"/proc/modules", kRocketLoaded}}));
    MachineFacts facts = gather_facts(machine.root());
    kernels::Core npu = node->core;
    npu.info.node = "/dev/accel/accel0";
    facts.nodes = {{npu.info.node, "rocket", {npu}, {}}};
    facts.permissions = {""};
    const auto findings = diagnose(facts);
    ASSERT_NE(find(findings, "npu"), nullptr);
    const Finding* hint = find(findings, "driver-hint");
    ASSERT_NE(hint, nullptr);
    EXPECT_NE(hint->what.find(named), std::string::npos) << hint->what;
  }
}

TEST(SelfTest, PassesOnASimulatedChipAndNoticesAChipThatComputesNothing) {
  const auto chip = runtime::open_target("sim:a311d");
  ASSERT_TRUE(chip.ok()) << chip.error().message;
  const auto passed = self_test(*chip);
  ASSERT_TRUE(passed.ok()) << passed.error().message;
  EXPECT_LE(passed->largest_difference, 1);
  const auto idle = runtime::open_target("null:a311d");
  ASSERT_TRUE(idle.ok());
  EXPECT_FALSE(self_test(*idle).ok());
}

}  // namespace
}  // namespace skillet::tools
