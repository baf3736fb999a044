#include "runtime/address_check.h"

#include <gtest/gtest.h>

#include "base/testing/in_tree.h"
#include "compile/compile.h"
#include "frontend/tflite/import.h"

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
};

struct Compiled {
  driver::Chip chip;
  const driver::Driver* driver = nullptr;
  std::vector<driver::Program> programs;
};

Compiled compile_case(const Case& c, driver::Tuning tuning) {
  Compiled out{.chip = driver::find_chip(c.chip).value()};
  out.driver = driver::driver_of(out.chip).value();
  const compile::Options options{.driver = {.tuning = tuning, .allow_unproven = true}, .leave_out = false};
  auto compiled =
      compile::compile(tflite::import_file(kTests + c.model).value(), {out.driver, out.chip}, options).value();
  for (compile::Part& part : compiled.parts) {
    if (part.program) out.programs.push_back(std::move(*part.program));
  }
  return out;
}

std::string message(const Result<void>& result) { return result.ok() ? "" : result.error().message; }

// The bits of a relocation get a constant instead.
void overwrite(driver::Program& program, driver::BufferId id, size_t index, uint64_t constant) {
  driver::Buffer& buffer = program.buffers[id];
  const driver::Relocation r = buffer.relocations[index];
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
    for (const auto tuning : {driver::Tuning::proven, driver::Tuning::tuned}) {
      const Compiled compiled = compile_case(c, tuning);
      ASSERT_FALSE(compiled.programs.empty());
      for (const driver::Program& program : compiled.programs)
        EXPECT_EQ(message(check_addresses(*compiled.driver, compiled.chip, program)), "") << c.chip << " " << c.model;
    }
  }
}

constexpr uint64_t kConstants[] = {0x0, 0x100000, 0x101000, 0x110000, 0x12345600, 0xFFFFF000};

// Zero, somewhere in the address space, and where the check itself puts buffers.
TEST(AddressCheck, RefusesAConstantInThePlaceOfEachAddress) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, driver::Tuning::proven);
    int tampered = 0;
    for (const driver::Program& program : compiled.programs) {
      for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          for (const uint64_t constant : kConstants) {
            driver::Program bad = program;
            overwrite(bad, id, i, constant);
            ASSERT_TRUE(driver::verify(bad).ok());
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

// A register that a task does not write holds what was written before: by whom, the program cannot know.
TEST(AddressCheck, RefusesAddressesThatAreNotWritten) {
  constexpr Case kRegisters = {"rk3588", "captures/models/chain_residual_add_i8.tflite"};
  constexpr uint64_t kCommandBytes = 8;
  const Compiled compiled = compile_case(kRegisters, driver::Tuning::proven);
  int tried = 0, refused = 0;
  for (const driver::Program& program : compiled.programs) {
    for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
      for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
        driver::Program bad = program;
        driver::Buffer& buffer = bad.buffers[id];
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

// A relocation that is right but for its target: beyond what the operation may touch, or of another job.
TEST(AddressCheck, RefusesOtherTargets) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, driver::Tuning::proven);
    for (const driver::Program& program : compiled.programs) {
      for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          driver::Program bad = program;
          driver::Relocation& r = bad.buffers[id].relocations[i];
          r.target_offset_bytes = bad.buffers[r.target].size_bytes;
          EXPECT_NE(message(check_addresses(*compiled.driver, compiled.chip, bad)), "") << c.chip;
        }
      }
    }
  }
}

// What is written must be said to be: else nobody waits for it, and it may be constants that others use.
TEST(AddressCheck, RefusesToWriteWhatIsOnlyRead) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, driver::Tuning::proven);
    int tried = 0;
    for (const driver::Program& program : compiled.programs) {
      for (size_t i = 0; i < program.jobs.size(); ++i) {
        driver::Program bad = program;
        bad.jobs[i].witness = {};
        for (driver::BufferUse& use : bad.jobs[i].uses) use.write = false;
        EXPECT_NE(message(check_addresses(*compiled.driver, compiled.chip, bad)).find("does not say it writes"),
                  std::string::npos)
            << c.chip << " " << c.model;
        ++tried;
      }
    }
    EXPECT_GT(tried, 0) << c.chip;
  }
}

// Weights and tables in memory that jobs write.
TEST(AddressCheck, RefusesConstantsInTensors) {
  for (const Case& c : {kCases[1], kCases[5]}) {
    const Compiled compiled = compile_case(c, driver::Tuning::proven);
    int refused = 0;
    for (const driver::Program& program : compiled.programs) {
      for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          driver::Program bad = program;
          driver::Relocation& r = bad.buffers[id].relocations[i];
          if (bad.buffers[r.target].role != driver::BufferRole::constant) continue;
          r.target = program.outputs[0].buffer, r.target_offset_bytes = 0;
          const std::string text = message(check_addresses(*compiled.driver, compiled.chip, bad));
          refused += text.find("a buffer that is not constant") != std::string::npos ? 1 : 0;
        }
      }
    }
    EXPECT_GT(refused, 1) << c.chip << " " << c.model;
  }
}

// Weights that begin in their buffer, and end beyond it.
TEST(AddressCheck, RefusesWeightsThatLeaveTheirBuffer) {
  for (const Case& c : {kCases[1], kCases[5]}) {
    const Compiled compiled = compile_case(c, driver::Tuning::proven);
    int refused = 0;
    for (const driver::Program& program : compiled.programs) {
      for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (size_t i = 0; i < program.buffers[id].relocations.size(); ++i) {
          driver::Program bad = program;
          driver::Relocation& r = bad.buffers[id].relocations[i];
          driver::Buffer& target = bad.buffers[r.target];
          if (target.role != driver::BufferRole::constant) continue;
          target.size_bytes = r.target_offset_bytes + 64;  // the header of one chip, a few weights of the other
          const Bytes bytes(target.contents.begin(), target.contents.end());
          target.contents =
              Bytes(bytes.begin(),
                    bytes.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(bytes.size(), target.size_bytes)));
          const std::string text = message(check_addresses(*compiled.driver, compiled.chip, bad));
          refused += text.find("bytes from there on are more") != std::string::npos ? 1 : 0;
        }
      }
    }
    EXPECT_GT(refused, 1) << c.chip << " " << c.model;
  }
}

// One more relocation, in the word after each: a number that would be another one wherever buffers lie. Now and then an
// address that the operation does not use is there, which may well name a buffer of the job.
TEST(AddressCheck, RefusesAddressesInThePlaceOfNumbers) {
  for (const Case& c : kCases) {
    const Compiled compiled = compile_case(c, driver::Tuning::proven);
    int tried = 0, refused = 0;
    for (const driver::Program& program : compiled.programs) {
      for (driver::BufferId id = 0; id < program.buffers.size(); ++id) {
        for (driver::Relocation r : program.buffers[id].relocations) {
          r.at_byte += 4, r.lsb = 0, r.width_bits = 32, r.shift = 0;
          const auto is_there = [&](const driver::Relocation& other) { return other.at_byte / 4 == r.at_byte / 4; };
          if (std::ranges::any_of(program.buffers[id].relocations, is_there)) continue;
          driver::Program bad = program;
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

// Words that lead to what nobody knows: a state or bits without a row.
TEST(AddressCheck, RefusesWhatHasNoMeaning) {
  const Compiled compiled = compile_case(kCases[1], driver::Tuning::proven);
  driver::Program bad = compiled.programs[0];
  for (driver::Buffer& buffer : bad.buffers) {
    if (buffer.role != driver::BufferRole::commands) continue;
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
