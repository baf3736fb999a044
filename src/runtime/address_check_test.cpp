#include "runtime/address_check.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/in_tree.h"
#include "compile/compile.h"
#include "graph/import/import.h"

namespace skillet::runtime {
namespace {

const std::string kTests = skillet::in_tree("tests/");

struct Case {
  const char* chip;
  const char* model;
};
constexpr Case kCases[] = {
    {"toy", "toy/maximum_relu_u8.tflite"},
    {"a311d", "captures/models/chain_conv_dw_pw_i8.tflite"},
    {"a311d", "captures/models/chain_residual_add_i8.tflite"},
    {"imx8mp", "captures/models/chain_conv_dw_pw_i8.tflite"},
    {"imx8mp", "captures/models/chain_residual_add_i8.tflite"},
    {"rk3588", "captures/models/chain_conv_dw_pw_i8.tflite"},
    {"rk3588", "captures/models/chain_residual_add_i8.tflite"},
    {"rk3576", "captures/models/chain_conv_dw_pw_i8.tflite"},
    {"rk3576", "captures/models/chain_residual_add_i8.tflite"},
    {"rk3576", "conformance/models/ops/logistic_i8.tflite"},
    {"rk3576", "conformance/models/ops/maxpool7x7_s1_valid_i8.tflite"},
};

std::vector<std::string> small_models() {
  std::vector<std::string> paths = {skillet::in_tree("models/digits.tflite")};
  for (const char* folder : {"captures/models", "models", "toy", "conformance/models/ops"}) {
    if (!std::filesystem::is_directory(kTests + folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(kTests + folder))
      if (entry.path().extension() == ".tflite") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

struct Compiled {
  npu::Chip chip;
  const npu::Driver* driver = nullptr;
  std::vector<npu::Program> programs;
};

Compiled compile_case(const Case& c, npu::Tuning tuning) {
  Compiled out{.chip = npu::find_chip(c.chip).value()};
  out.driver = npu::driver_of(out.chip).value();
  const compile::Options options{.driver = {.tuning = tuning, .unproven = npu::Unproven::take}, .leave_out = false};
  auto compiled =
      compile::compile(tflite::import_file(kTests + c.model).value(), {out.driver, out.chip}, options).value();
  for (compile::Part& part : compiled.parts) {
    if (part.program) out.programs.push_back(std::move(*part.program));
  }
  return out;
}

std::string message(const Result<void>& result) { return result.ok() ? "" : result.error().message; }

// Replaces the bits of a relocation by a constant.
void overwrite(npu::Program& program, npu::BufferId id, size_t index, uint64_t constant) {
  npu::Buffer& buffer = program.buffers[id];
  const npu::Relocation r = buffer.relocations[index];
  buffer.relocations.erase(buffer.relocations.begin() + static_cast<ptrdiff_t>(index));
  Bytes bytes(buffer.contents.begin(), buffer.contents.end());
  bytes.resize(std::max<size_t>(bytes.size(), r.at_byte + r.bytes()));
  const uint64_t ones = (uint64_t{1} << r.width_bits) - 1;
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + r.at_byte, r.bytes());
  number = (number & ~(ones << r.lsb)) | (((constant >> r.shift) & ones) << r.lsb);
  std::memcpy(bytes.data() + r.at_byte, &number, r.bytes());
  buffer.contents = std::move(bytes);
}

TEST(AddressCheck, TakesWhatCompilersMake) {
  for (const Case& c : kCases) {
    for (const auto tuning : {npu::Tuning::proven, npu::Tuning::tuned}) {
      const Compiled compiled = compile_case(c, tuning);
      ASSERT_FALSE(compiled.programs.empty());
      for (const npu::Program& program : compiled.programs)
        EXPECT_EQ(message(check_addresses(*compiled.driver, compiled.chip, program)), "") << c.chip << " " << c.model;
    }
  }
}

// Each small model of the tests, on each chip, with each tuning. The recorded driver's programs of the RK3588 read
// operands, and write surfaces, of channels that do not exist: `recorded` copies that, and only that is refused.
TEST(AddressCheck, TakesEachModelOnEachChipByEachTuning) {
  size_t taken = 0, recorded_faults = 0;
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      for (const std::string& path : small_models()) {
        const auto graph = tflite::import_file(path);
        ASSERT_TRUE(graph.ok()) << path << ": " << graph.error().message;
        for (const auto tuning : {npu::Tuning::recorded, npu::Tuning::proven, npu::Tuning::tuned}) {
          const auto compiled =
              compile::compile(*graph, {driver, chip}, {.driver = {.tuning = tuning, .unproven = npu::Unproven::take}});
          if (!compiled.ok()) continue;
          for (const compile::Part& part : compiled->parts) {
            if (!part.program) continue;
            const std::string text = message(check_addresses(*driver, chip, *part.program));
            const bool copied = tuning == npu::Tuning::recorded && chip.name == "rk3588" &&
                                text.find("bytes from there on exceed") != std::string::npos;
            EXPECT_TRUE(text.empty() || copied)
                << chip.name << " " << path << " " << npu::tuning_name(tuning) << ": " << text;
            (text.empty() ? taken : recorded_faults) += 1;
          }
        }
      }
    }
  }
  EXPECT_GT(taken, 200U);
  EXPECT_GT(recorded_faults, 0U);
}

// Changes the words of commands and constants: `change` gets all bytes of the buffer.
npu::Program changed(npu::Program program, npu::BufferId id, auto&& change) {
  Bytes bytes(program.buffers[id].contents.begin(), program.buffers[id].contents.end());
  change(bytes);
  program.buffers[id].contents = std::move(bytes);
  return program;
}
npu::BufferId buffer_with(const npu::Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.buffers, name, &npu::Buffer::name);
  return static_cast<npu::BufferId>(found - program.buffers.begin());
}

// Adds half the alignment of a task's address.
TEST(AddressCheck, RefusesAddressesThatAreNotAligned) {
  const Compiled compiled =
      compile_case({"rk3576", "captures/models/chain_residual_add_i8.tflite"}, npu::Tuning::proven);
  size_t tried = 0;
  for (const npu::Program& program : compiled.programs) {
    const npu::BufferId commands = buffer_with(program, "commands");
    for (size_t i = 0; i < program.buffers[commands].relocations.size(); ++i) {
      npu::Program bad = program;
      bad.buffers[commands].relocations[i].target_offset_bytes += 8;
      EXPECT_NE(message(check_addresses(*compiled.driver, compiled.chip, bad)), "") << i;
      ++tried;
    }
  }
  EXPECT_GT(tried, 4U);
}

// Values that compile() never writes: one word of the commands, and the text in the message.
TEST(AddressCheck, RefusesValuesThatNoProgramHas) {
  struct Row {
    const char* chip;
    uint64_t from, bits, to;  // in a command with the bits `from`, the value is replaced
    const char* named;
  };
  constexpr uint64_t kState = 0xFFFFFFFF, kRegister = 0xFFFF00000000FFFF;
  const auto load_state = [](uint32_t address) { return uint64_t{0x08010000} | address / 4; };
  for (const Row& row :
       {Row{"a311d", load_state(0x393C), kState, uint64_t{0x400000} << 32, "ocb_remap_start"},
        Row{"a311d", load_state(0x3940), kState, uint64_t{0x500000} << 32, "ocb_remap_end"},
        Row{"imx8mp", load_state(0x394C), kState, uint64_t{1} << 32, "tp_config"},
        Row{"imx8mp", load_state(0x3930), kState, uint64_t{0x1010} << 32, "nn_config"},
        Row{"rk3588", 0x0201000000001140, kRegister, uint64_t{16} << 16,
            "cna.dcomp_amount0.dcomp_amount0 = 16: no program has that"},
        Row{"rk3588", 0x0201000000001100, kRegister, uint64_t{8} << 16, "cna.dcomp_ctrl"},
        Row{"rk3588", 0x020100000000100C, kRegister, uint64_t{1} << 47, "cna.conv_con1"},
        Row{"rk3588", 0x1001000000004004, kRegister, uint64_t{0} << 16, "dpu.s_pointer"},
        Row{"rk3588", 0x0081000000000008, kRegister, uint64_t{0x60} << 16, "block_enable"},
        Row{"rk3588", 0x2001000000005044, kRegister, uint64_t{0x100} << 16, "dpu_rdma.feature_mode_cfg"},
        Row{"rk3576", 0x0201000000001018, kRegister, uint64_t{0x40000707} << 16, "cna.cbuf_banks"},
        Row{"rk3576", 0x0201000000001040, kRegister, uint64_t{0x0C000000} << 16, "cna.cbuf_places"},
        Row{"rk3576", 0x0201000000001028, kRegister, uint64_t{0x4000FFFF} << 16, "programs have at most 8192"},
        Row{"rk3576", 0x1001000000004010, kRegister, uint64_t{0xA0000000} << 16, "dpu.data_format"},
        Row{"rk3576", 0x1001000000004004, kRegister, uint64_t{0x30} << 16, "dpu.s_pointer"},
        Row{"rk3576", 0x0101000000000014, kRegister, uint64_t{71} << 16, "pc.register_amounts"},
        Row{"rk3576", 0x0081000000000008, kRegister, uint64_t{0x60} << 16, "0x6004"},
        Row{"rk3576", 0x2001000000005034, kRegister, uint64_t{0x50000044} << 16, "dpu_rdma.erdma_cfg"}}) {
    const Compiled compiled =
        compile_case({row.chip, "captures/models/chain_residual_add_i8.tflite"}, npu::Tuning::proven);
    int tried = 0;
    for (const npu::Program& program : compiled.programs) {
      const npu::BufferId commands = buffer_with(program, "commands");
      for (size_t at = 0; at + 8 <= program.buffers[commands].contents.size(); at += 8) {
        if ((load_le<uint64_t>(program.buffers[commands].contents.data() + at) & row.bits) != row.from) continue;
        const auto bad =
            changed(program, commands, [&](Bytes& bytes) { store_le(bytes.data() + at, row.from | row.to); });
        const std::string text = message(check_addresses(*compiled.driver, compiled.chip, bad));
        EXPECT_NE(text.find(row.named), std::string::npos) << row.chip << ": " << text;
        ++tried;
      }
    }
    EXPECT_GT(tried, 0) << row.chip << " " << row.named;
  }
}

// A plane one pixel wide that fills its last bank, and no further bank: its fetch may continue for a bank.
TEST(AddressCheck, RefusesAColumnWithoutASpareBank) {
  constexpr uint64_t kCbufCon0 = 0x0201000000001040, kRegister = 0xFFFF00000000FFFF;
  const auto graph = ir::parse(R"(
graph "column"
tensor 0 "in" uint8 1x500x1x16 scale=0.5 zero=120
tensor 1 "weights" uint8 16x1x1x16 scale=0.0078125 zero=128 const=random:1
tensor 2 "out" uint8 1x500x1x16 scale=1 zero=128
inputs 0
outputs 2
op 0 CONV_2D in=[0 1 -] out=[2] padding=valid
)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto chip = npu::find_chip("rk3588").value();
  const npu::Driver& driver = *npu::driver_of(chip).value();
  const npu::Program program =
      driver.compile(chip, *graph, {.tuning = npu::Tuning::proven, .unproven = npu::Unproven::take}).value();
  EXPECT_EQ(message(check_addresses(driver, chip, program)), "");
  const npu::BufferId commands = buffer_with(program, "commands");
  int changes = 0;
  const auto bad = changed(program, commands, [&](Bytes& bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      const auto command = load_le<uint64_t>(bytes.data() + at);
      if ((command & kRegister) != kCbufCon0) continue;
      EXPECT_EQ(command >> 16 & 15, 2U) << "banks";
      store_le(bytes.data() + at, command ^ 3 << 16);
      ++changes;
    }
  });
  EXPECT_GT(changes, 0);
  const std::string text = message(check_addresses(driver, chip, bad));
  EXPECT_NE(text.find("nearly full of one column"), std::string::npos) << text;
}

// Sizes, strides, loops, windows: a larger word of a descriptor or command reaches beyond its buffer, or contradicts
// another word. No such program is accepted.
TEST(AddressCheck, RefusesLargerNumbers) {
  struct Row {
    const char* chip;
    std::vector<size_t> words;  // of the first descriptor of that size, or the registers of commands
    size_t descriptor_words;    // 0: registers
  };
  const Row rows[] = {{"a311d", {1, 3, 4, 8, 12, 16, 17}, 32},
                      {"a311d", {1, 3, 4, 5, 8, 14, 16, 17}, 31},
                      {"rk3588", {0x107C, 0x1084, 0x1030, 0x4024, 0x4030, 0x4034, 0x4038, 0x40C0, 0x504C, 0x506C}, 0},
                      {"rk3576", {0x1028, 0x102C, 0x1078, 0x1094, 0x401C, 0x4020, 0x4030, 0x40B8, 0x500C}, 0}};
  for (const Row& row : rows) {
    const Compiled compiled =
        compile_case({row.chip, "captures/models/chain_residual_add_i8.tflite"}, npu::Tuning::proven);
    for (const npu::Program& program : compiled.programs) {
      const npu::BufferId id = buffer_with(program, row.descriptor_words == 0 ? "commands" : "descriptors");
      for (const size_t word : row.words) {
        int refused = 0;
        const auto refuse = [&](size_t at) {
          const auto bad = changed(program, id, [&](Bytes& bytes) {
            store_le(bytes.data() + at, load_le<uint32_t>(bytes.data() + at) | 0x03FF03FF);
          });
          refused += check_addresses(*compiled.driver, compiled.chip, bad).ok() ? 0 : 1;
        };
        if (row.descriptor_words == 0) {
          for (size_t at = 0; at + 8 <= program.buffers[id].contents.size(); at += 8)
            if (load_le<uint16_t>(program.buffers[id].contents.data() + at) == word) refuse(at + 2);
        } else {
          for (const npu::DebugEntry& entry : program.debug_map)
            if (entry.buffer == id && entry.size_bytes == row.descriptor_words * 4)
              refuse(entry.offset_bytes + word * 4);
        }
        EXPECT_GT(refused, 0) << row.chip << " word " << word;
      }
    }
  }
}

// Each buffer of tensors or constants ends a byte too early for the last access to it.
TEST(AddressCheck, RefusesSmallerBuffers) {
  constexpr uint64_t kSlack = 32768;
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, npu::Tuning::proven);
    int refused = 0, tried = 0;
    for (const npu::Program& program : compiled.programs) {
      for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
        if (program.buffers[id].is_constant() || program.buffers[id].size_bytes < 2) continue;
        npu::Program bad = program;
        uint64_t& size = bad.buffers[id].size_bytes;
        size = (size > kSlack ? size - kSlack : size) / 2;
        if (!npu::verify(bad).ok()) continue;  // refused by the verifier because of a binding or witness
        refused += check_addresses(*compiled.driver, compiled.chip, bad).ok() ? 0 : 1;
        ++tried;
      }
    }
    EXPECT_EQ(refused, tried) << c.chip << " " << c.model;
  }
}

constexpr uint64_t kConstants[] = {0x0, 0x100000, 0x101000, 0x110000, 0x12345600, 0xFFFFF000};

// Zero, an address somewhere, and the addresses where the check itself places buffers.
TEST(AddressCheck, RefusesAConstantInThePlaceOfEachAddress) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, npu::Tuning::proven);
    int tampered = 0;
    for (const npu::Program& program : compiled.programs) {
      for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          // Only one constant each for later relocations.
          for (const uint64_t constant : kConstants) {
            if (i > 2 && constant != kConstants[i % std::size(kConstants)]) continue;
            npu::Program bad = program;
            overwrite(bad, id, i, constant);
            ASSERT_TRUE(npu::verify(bad).ok());
            EXPECT_NE(message(check_addresses(*compiled.driver, compiled.chip, bad)), "")
                << c.chip << " " << program.buffers[id].name << " relocation " << i << " " << constant;
            ++tampered;
          }
        }
      }
    }
    EXPECT_GT(tampered, 6) << c.chip;
  }
}

// A register that a task does not write keeps an unknown earlier value.
TEST(AddressCheck, RefusesAddressesThatAreNotWritten) {
  constexpr Case kRegisters = {"rk3588", "captures/models/chain_residual_add_i8.tflite"};
  constexpr uint64_t kCommandBytes = 8;
  const Compiled compiled = compile_case(kRegisters, npu::Tuning::proven);
  int tried = 0, refused = 0;
  for (const npu::Program& program : compiled.programs) {
    for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
      for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
        npu::Program bad = program;
        npu::Buffer& buffer = bad.buffers[id];
        Bytes bytes(buffer.contents.begin(), buffer.contents.end());
        const auto command = static_cast<ptrdiff_t>(buffer.relocations[i].at_byte / kCommandBytes * kCommandBytes);
        std::fill_n(bytes.begin() + command, kCommandBytes, uint8_t{0});  // a filler
        buffer.contents = std::move(bytes);
        buffer.relocations.erase(buffer.relocations.begin() + static_cast<ptrdiff_t>(i));
        const std::string text = message(check_addresses(*compiled.driver, compiled.chip, bad));
        refused += text.empty() ? 0 : 1;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 6);
  EXPECT_EQ(refused, tried) << "but the address of a next task, which is started by the kernel";
}

// A relocation with a wrong target: beyond the reach of the operation, or in another job.
TEST(AddressCheck, RefusesOtherTargets) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, npu::Tuning::proven);
    for (const npu::Program& program : compiled.programs) {
      for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          npu::Program bad = program;
          npu::Relocation& r = bad.buffers[id].relocations[i];
          r.target_offset_bytes = bad.buffers[r.target].size_bytes;
          EXPECT_NE(message(check_addresses(*compiled.driver, compiled.chip, bad)), "") << c.chip;
        }
      }
    }
  }
}

// A written buffer must be listed as written: otherwise nothing waits for it, and it may contain shared constants.
TEST(AddressCheck, RefusesToWriteWhatIsOnlyRead) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, npu::Tuning::proven);
    int tried = 0;
    for (const npu::Program& program : compiled.programs) {
      for (size_t i = 0; i < program.jobs.size(); ++i) {
        npu::Program bad = program;
        bad.jobs[i].witness = {};
        for (npu::BufferUse& use : bad.jobs[i].uses) use.write = false;
        const std::string text = message(check_addresses(*compiled.driver, compiled.chip, bad));
        EXPECT_NE(text.find("does not list as written"), std::string::npos) << c.chip << " " << c.model << ": " << text;
        ++tried;
      }
    }
    EXPECT_GT(tried, 0) << c.chip;
  }
}

// Weights and tables in memory that jobs write.
TEST(AddressCheck, RefusesConstantsInTensors) {
  for (const Case& c : {kCases[1], kCases[5]}) {
    const Compiled compiled = compile_case(c, npu::Tuning::proven);
    int refused = 0;
    for (const npu::Program& program : compiled.programs) {
      for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          npu::Program bad = program;
          npu::Relocation& r = bad.buffers[id].relocations[i];
          if (bad.buffers[r.target].role != npu::BufferRole::constant) continue;
          r.target = program.outputs[0].buffer, r.target_offset_bytes = 0;
          const std::string text = message(check_addresses(*compiled.driver, compiled.chip, bad));
          refused += text.find("a buffer that is not constant") != std::string::npos ? 1 : 0;
        }
      }
    }
    EXPECT_GT(refused, 1) << c.chip << " " << c.model;
  }
}

// Weights that begin in their buffer and end beyond it.
TEST(AddressCheck, RefusesWeightsThatLeaveTheirBuffer) {
  for (const Case& c : {kCases[1], kCases[5]}) {
    const Compiled compiled = compile_case(c, npu::Tuning::proven);
    int refused = 0;
    for (const npu::Program& program : compiled.programs) {
      for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          npu::Program bad = program;
          npu::Relocation& r = bad.buffers[id].relocations[i];
          npu::Buffer& target = bad.buffers[r.target];
          if (target.role != npu::BufferRole::constant) continue;
          target.size_bytes = r.target_offset_bytes + 64;  // the header on one chip, a few weights on the other
          const Bytes bytes(target.contents.begin(), target.contents.end());
          target.contents =
              Bytes(bytes.begin(),
                    bytes.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(bytes.size(), target.size_bytes)));
          const std::string text = message(check_addresses(*compiled.driver, compiled.chip, bad));
          refused += text.find("bytes from there on exceed") != std::string::npos ? 1 : 0;
        }
      }
    }
    EXPECT_GT(refused, 1) << c.chip << " " << c.model;
  }
}

// Adds a relocation in the word after each one: a number would depend on the buffers' addresses. In some places there
// is an address that the operation does not use, which may name a buffer of the job.
TEST(AddressCheck, RefusesAddressesInThePlaceOfNumbers) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, npu::Tuning::proven);
    int tried = 0, refused = 0;
    for (const npu::Program& program : compiled.programs) {
      for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (npu::Relocation r : program.buffers[id].relocations) {
          r.at_byte += 4, r.lsb = 0, r.width_bits = 32, r.shift = 0;
          const auto is_there = [&](const npu::Relocation& other) { return other.at_byte / 4 == r.at_byte / 4; };
          if (std::ranges::any_of(program.buffers[id].relocations, is_there)) continue;
          npu::Program bad = program;
          bad.buffers[id].relocations.push_back(r);
          refused += check_addresses(*compiled.driver, compiled.chip, bad).ok() ? 0 : 1;
          ++tried;
        }
      }
    }
    EXPECT_GT(tried, 0) << c.chip;
    EXPECT_GT(refused, tried / 2) << c.chip << " " << c.model << ", of " << tried;
  }
}

// Words without a known meaning: a state or bits without a row.
TEST(AddressCheck, RefusesWhatHasNoMeaning) {
  const Compiled compiled = compile_case(kCases[1], npu::Tuning::proven);
  npu::Program bad = compiled.programs[0];
  for (npu::Buffer& buffer : bad.buffers) {
    if (buffer.role != npu::BufferRole::commands) continue;
    Bytes bytes(buffer.contents.begin(), buffer.contents.end());
    store_le<uint32_t>(bytes.data(), 0x08010000 | 0x0500);  // LOAD_STATE of one word, to 0x1400
    buffer.contents = std::move(bytes);
  }
  EXPECT_NE(message(check_addresses(*compiled.driver, compiled.chip, bad)).find("has no known meaning"),
            std::string::npos)
      << message(check_addresses(*compiled.driver, compiled.chip, bad));
}

}  // namespace
}  // namespace skillet::runtime
