#include "vendor_capture.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include "base/int_math.h"
#include "npus/rockchip/hw/rockchip.h"
#include "vendor_halves.h"
#include "vendor_operands.h"
#include "vendor_variants.h"

namespace skillet::golden {
namespace {

using capture::BufferSnapshot;
using nlohmann::json;

constexpr uint64_t kFirstAddress = 0x10000000, kPage = 4096, kTensorBytes = 1 << 20;
constexpr uint8_t kUntouched = 0x5A;
constexpr int64_t kSecondCore = 7168;                       // its first unit of the on-chip buffer
constexpr uint32_t kShiftBits = 63, kPlainShifts = 0x0E0E;  // of factors of 2^14

// Registers that contain addresses of buffers; several may contain the same buffer's.
enum class Role : uint8_t { input, second, weights, coefficients, shifts, scale, output };
struct Base {
  uint16_t address;
  Role role;
};
constexpr Base kBases[] = {{0x1088, Role::input},   {0x701C, Role::input},        {0x5018, Role::input},
                           {0x1110, Role::weights}, {0x5020, Role::coefficients}, {0x5024, Role::shifts},
                           {0x502C, Role::scale},   {0x5038, Role::second},       {0x4018, Role::output},
                           {0x6070, Role::output}};

bool reads_by_dpu(const json& task) { return task.at("blocks") == "dpu"; }

// Returns whether a program uses a base: a convolution has no base for what it does not fetch.
bool uses(const json& task, const Words& words, Role role, uint16_t address) {
  const auto value = [&](uint16_t at) {
    const auto found = std::ranges::find(words, at, &Word::address);
    return found == words.end() ? 0U : found->value;
  };
  constexpr uint32_t kNoSecond = 0x41, kNoSecondFloat = 0x01;
  if (address == 0x5018) return reads_by_dpu(task);
  if (role == Role::second) return value(0x5034) != kNoSecond && value(0x5034) != kNoSecondFloat;
  if (role == Role::scale) return value(0x5028) != 0;
  return true;
}

uint32_t number_in(const json& text) { return static_cast<uint32_t>(std::stoul(text.get<std::string>(), {}, 0)); }

// Returns an operand that the case contains.
Bytes kept_operand(const json& one) {
  return operand_tensor(one.at("A").get<int32_t>(), one.at("C").get<int16_t>(), number_in(one.at("shift_word")));
}

class Maker {
 public:
  Maker(const VendorCase& c, std::vector<json> tasks) : c_(c), tasks_(std::move(tasks)) {}

  Result<capture::Submission> run() {
    capture::Job job;
    for (const json& task : tasks_) {
      SK_TRY_ASSIGN(const Bytes code, stream(task));
      const uint64_t at = add(code, false, false);
      job.commands.push_back({.words = {}, .address = at, .size_bytes = code.size()});
    }
    out_.jobs = {std::move(job)};
    return std::move(out_);
  }

 private:
  int number() const { return tasks_[0].at("op").get<int>(); }

  uint64_t add(std::span<const uint8_t> bytes, bool read, bool write) {
    BufferSnapshot one{.handle = static_cast<uint32_t>(out_.buffers.size() + 1),
                       .address = next_,
                       .size_bytes = align_up(static_cast<uint64_t>(bytes.size()), kPage),
                       .read = read,
                       .write = write,
                       .listed = read || write};
    capture::set_contents(one, bytes);
    next_ += one.size_bytes;
    out_.buffers.push_back(std::move(one));
    return out_.buffers.back().address;
  }

  Bytes contents(Role role) const {
    if (role == Role::output) return Bytes(kTensorBytes, kUntouched);
    if (role == Role::input && has_halves()) return half_inputs(kTensorBytes);
    if (role == Role::input || role == Role::second) {
      if (const auto constant = c_.buffer(number(), "operand"); constant && role == Role::second) return *constant;
      Bytes bytes = random_bytes(role);
      if (has_small_sums())
        for (uint8_t& byte : bytes) byte = byte < kOnes ? 1 : byte < 2 * kOnes ? 0xFF : 0;
      return bytes;
    }
    if (role == Role::weights) return lacks_constants() ? random_bytes(role) : *c_.buffer(number(), "weights");
    const json tensors = c_.j.value("operand_tensors", json::array());
    const Words words = c_.words(tasks_.back());
    if (role == Role::scale && has_slope(words))
      return slope_operand(tensors.empty() ? std::exp2(kSlopeShift) : gain_of(tensors[0]));
    if (role == Role::coefficients && multiplies(words)) return operand_tensor(-zero_in_front(), 1, 0);
    const bool of_tensor = role == Role::scale || (role == Role::coefficients && reads_by_dpu(tasks_.back()));
    if (of_tensor && !tensors.empty()) return kept_operand(tensors[0]);
    for (const char* const kept : {"coefficients", "bias_f32"}) {
      if (auto bytes = c_.buffer(number(), kept); bytes && role == Role::coefficients && !has_small_sums())
        return *bytes;
    }
    if (role == Role::coefficients) return plain_coefficients();
    Bytes shifts(kOperandBytes);
    if (role == Role::shifts && lacks_constants()) store_le(shifts.data(), kPlainShifts);
    if (role != Role::shifts || !c_.j.contains("shift_word") || !c_.j["shift_word"].is_string()) return shifts;
    const uint32_t word = number_in(c_.j["shift_word"]);
    store_le(shifts.data(), has_slope(words) ? slope_shifts(word) : word);
    return shifts;
  }
  static Bytes random_bytes(Role role) {
    std::mt19937 random(static_cast<uint32_t>(7 + static_cast<int>(role)));
    Bytes bytes(kTensorBytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
  }
  // Programs of the set "found" have no constants: any will do whose results are not all equal.
  bool lacks_constants() const { return !reads_by_dpu(tasks_.back()) && !c_.buffer(number(), "weights"); }
  static constexpr uint8_t kOnes = 2;  // per 256 inputs; as many are -1
  bool has_small_sums() const { return c_.j.contains(kSmallSums); }
  bool has_halves() const {
    const json op = c_.j.value("ops", json::object()).value(std::to_string(number()), json::object());
    return op.value("precision", "") == "f16";
  }
  // The factor by which values above 0 are larger where a slope is applied.
  static double gain_of(const json& tensor) {
    return std::ldexp(tensor.at("C").get<double>(), -static_cast<int>(number_in(tensor.at("shift_word")) & kShiftBits));
  }
  // The main tensor of a product is the previous operation's output.
  int32_t zero_in_front() const {
    for (const json& task : c_.j.at("tasks")) {
      if (task.at("op") != number() - 1) continue;
      for (const Word& one : c_.words(task))
        if (one.address == 0x40AC) return static_cast<int32_t>(one.value);
    }
    return 0;
  }
  // Coefficients that add nothing and have one factor for all channels: a factor of 0 would leave them out.
  Bytes plain_coefficients() const {
    constexpr size_t kGroups = 64, kGroup = 64, kFactorAt = 48, kDepthwiseGroup = 48, kDepthwiseFactorAt = 32,
                     kChannels = 8;
    constexpr int16_t kOne = 16384;
    const json& task = tasks_.back();
    const bool depthwise = task.contains("type") && task["type"] == "depthwise";
    Bytes bytes(kGroups * kGroup);
    for (size_t i = 0; i < kGroups * kChannels; ++i)
      store_le(bytes.data() + i / kChannels * (depthwise ? kDepthwiseGroup : kGroup) +
                   (depthwise ? kDepthwiseFactorAt : kFactorAt) + i % kChannels * sizeof kOne,
               kOne);
    return bytes;
  }
  uint64_t place_of(Role role) {
    const auto found = places_.find(role);
    if (found != places_.end()) return found->second;
    const bool written = role == Role::output, read = role == Role::input || role == Role::second;
    return places_[role] = add(contents(role), read, written);
  }

  // Fills in the addresses of buffers, and an end without a next program.
  Result<Bytes> stream(const json& task) {
    Words all = c_.words(task);
    if (all.size() != task.at("words").get<size_t>())
      return error(ErrorCode::invalid_argument, "{}/program.bin: shorter than its programs", c_.folder);
    const Words plain = all;
    for (Word& one : all) {
      const auto* const base = std::ranges::find(kBases, one.address, &Base::address);
      if (base == std::end(kBases) || !uses(task, plain, base->role, base->address)) continue;
      one.value += static_cast<uint32_t>(place_of(base->role));
    }
    const auto enable = static_cast<uint32_t>(std::stoul(task.at("enable").get<std::string>(), {}, 0));
    all.insert(all.end(), {{}, {0x0101, 0x0014, 0}, {0x0041, 0, 0}, {0x0081, 0x0008, enable}});
    Bytes bytes(all.size() * kWordBytes);
    for (size_t i = 0; i < all.size(); ++i)
      store_le(bytes.data() + i * kWordBytes,
               uint64_t{all[i].target} << 48 | uint64_t{all[i].value} << 16 | all[i].address);
    return bytes;
  }

  const VendorCase& c_;
  const std::vector<json> tasks_;
  capture::Submission out_;
  std::map<Role, uint64_t> places_;
  uint64_t next_ = kFirstAddress;
};

// The first unit of the program's rows in the on-chip buffer: later windows begin within those of the first.
int64_t base_of(const json& task) {
  return task.contains("cbuf_base") && task["cbuf_base"].is_number() ? task["cbuf_base"].get<int64_t>() : 0;
}
// Programs that use only the DPU or the pooling unit have no place there: they are the same for both cores.
bool is_of_core(const json& task, int core) {
  const auto flag = [&](const char* name) { return task.contains(name) && task[name] == true; };
  const bool has_place = task.at("blocks") == "conv";
  return !flag("paired") && !flag("helper") && (!has_place || (base_of(task) < kSecondCore) == (core == 0));
}

// Returns the programs in order. A program of equal size and equal place in the buffer is a half for two cores.
std::map<int, std::vector<json>> by_operation(const VendorCase& c, int core) {
  std::map<int, std::vector<json>> out;
  for (const json& task : c.j.at("tasks")) {
    if (!is_of_core(task, core)) continue;
    std::vector<json>& tasks = out[task.at("op").get<int>()];
    const bool seen = std::ranges::any_of(
        tasks, [&](const json& one) { return one.at("words") == task.at("words") && base_of(one) == base_of(task); });
    if (!seen) tasks.push_back(task);
  }
  return out;
}

// Writes the results of float jobs in the form that `skillet replay --expect` reads.
Result<void> write_results(const VendorCase& c, const std::string& name, const capture::Capture& made,
                           const std::string& folder) {
  size_t index = 0;
  for (const auto& [number, tasks] : by_operation(c, 0)) {
    const capture::Submission& one = made.submissions.at(index);
    const json op = c.j.value("ops", json::object()).value(std::to_string(number), json::object());
    const auto written = std::ranges::find(one.buffers, true, &BufferSnapshot::write);
    if (op.value("precision", "") != "f16" || op.value("packed_image", false) || written == one.buffers.end())
      return {};
    const VendorOp shape = vendor_op(op);
    SK_TRY_ASSIGN(const FloatConv conv, float_conv(name, number, shape));
    auto results = half_results(shape, conv, half_inputs(kTensorBytes), Bytes(kTensorBytes, kUntouched));
    if (!results.ok()) return {};  // replay --output shows their results
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    SK_TRY(write_file(fmt::format("{}/submission{}_buffer{}.bin", folder, index++, written->handle), *results));
  }
  return {};
}

}  // namespace

Result<capture::Submission> submission_of(const VendorCase& c, int number) {
  auto all = by_operation(c, 0);
  if (!all.contains(number))
    return error(ErrorCode::invalid_argument, "{}: no program of operation {} that the first core runs alone", c.folder,
                 number);
  return Maker(c, std::move(all[number])).run();
}

Result<capture::Capture> capture_of(const VendorCase& c, const std::string& compatible, int core) {
  capture::Capture out;
  out.device = {
      .kernel_driver = "rocket", .node = "/dev/accel/accel0", .compatible = compatible, .facts = {{"cores", 1}}};
  try {
    for (auto& [number, tasks] : by_operation(c, core)) {
      SK_TRY_ASSIGN(capture::Submission one, Maker(c, std::move(tasks)).run());
      out.submissions.push_back(std::move(one));
    }
  } catch (const std::exception& problem) {  // errors of JSON and of its numbers
    return error(ErrorCode::invalid_argument, "{}/case.json: {}", c.folder, problem.what());
  }
  if (out.submissions.empty())
    return error(ErrorCode::invalid_argument, "{}: no program that the {} core runs alone", c.folder,
                 core == 0 ? "first" : "second");
  return out;
}

Result<void> write_vendor_capture(const std::string& dir, const std::string& chip, const std::string& name,
                                  const std::string& folder) {
  SK_TRY_ASSIGN(const VendorCase c, read_vendor_case(fmt::format("{}/{}/{}", dir, chip, name)));
  const auto* const row = rockchip::hw::find_chip(chip);
  if (row == nullptr) return error(ErrorCode::invalid_argument, "{}: not a Rockchip NPU", chip);
  SK_TRY_ASSIGN(const capture::Capture out, capture_of(c, std::string(row->compatible)));
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  std::string file = folder + "/" + name;
  std::replace(file.begin() + static_cast<std::ptrdiff_t>(folder.size()) + 1, file.end(), '/', '.');
  SK_TRY(capture::write(out, file + ".capture"));
  SK_TRY(write_results(c, name, out, file + ".expected"));
  for (const Variant& one : variants()) {
    if (name != one.name) continue;
    SK_TRY_ASSIGN(const capture::Capture other, capture_of(one.make(c), std::string(row->compatible)));
    SK_TRY(capture::write(other, fmt::format("{}{}.capture", file, one.suffix)));
  }
  const auto second = capture_of(c, std::string(row->compatible), 1);
  return second.ok() ? capture::write(*second, file + ".second.capture") : Result<void>();
}

}  // namespace skillet::golden
