#include "npus/rockchip/compiler/decode.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "npu/decoded_capture.h"
#include "npu/field_list.h"
#include "npus/rockchip/compiler/task_check.h"
#include "npus/rockchip/compiler/task_reading.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

using npu::AnnotatedField;
using npu::FieldKind;

// The addresses that a task's blocks use, by the task's registers when the blocks start.
class Uses {
 public:
  static constexpr std::array kAddresses = {
      hw::CnaFeatureDataAddr::kAddress, hw::CnaDcompAddr0::kAddress,     hw::DpuDstBaseAddr::kAddress,
      hw::DpuRdmaSrcBaseAddr::kAddress, hw::DpuRdmaBsBaseAddr::kAddress, hw::DpuRdmaBnBaseAddr::kAddress,
      hw::DpuRdmaEwBaseAddr::kAddress,  hw::PpuDstBaseAddr::kAddress,    hw::PpuRdmaSrcBaseAddr::kAddress};

  Uses(const TaskRegisters& registers, const TaskReading* own) : r_(registers), own_(own) {}

  std::span<const uint32_t> addresses() const {
    return own_ != nullptr ? own_->addresses : std::span<const uint32_t>(kAddresses);
  }
  bool is_output(uint32_t address) const {
    const uint32_t dpu = own_ != nullptr ? own_->dpu_output : hw::DpuDstBaseAddr::kAddress;
    return (address == dpu || address == hw::PpuDstBaseAddr::kAddress) && uses(address);
  }
  // Bytes read from a used address on; 0: not known.
  uint64_t extent_bytes(uint32_t address) const {
    if (own_ != nullptr) return address == own_->weights && uses(address) ? own_->weight_bytes(r_) : 0;
    if (address != hw::CnaDcompAddr0::kAddress || !uses(address)) return 0;
    return r_.get<hw::CnaWeightSize0>().weight_bytes;
  }
  bool writes(uint32_t address) const { return r_.writes(*r_.set().find(address)); }
  bool uses(uint32_t address) const {
    if (own_ != nullptr) return own_->uses(address, r_);
    const hw::BlockEnable& enable = r_.enable();
    const auto main = r_.get<hw::DpuRdmaFeatureModeCfg>();
    const auto channel = r_.get<hw::DpuRdmaBrdmaCfg>();
    const auto norm = r_.get<hw::DpuRdmaNrdmaCfg>();
    switch (address) {
      case hw::PcBaseAddress::kAddress: return r_.get<hw::PcRegisterAmounts>().pc_data_amount != 0;
      case hw::CnaFeatureDataAddr::kAddress: return enable.cna;
      case hw::CnaDcompAddr0::kAddress: return enable.cna && !r_.get<hw::CnaCbufCon0>().weight_reuse;
      case hw::DpuDstBaseAddr::kAddress:
        return enable.dpu && r_.get<hw::DpuFeatureModeCfg>().output_mode != hw::OutputMode::ppu;
      case hw::DpuRdmaSrcBaseAddr::kAddress: return enable.dpu_rdma && !main.mrdma_disable;
      case hw::DpuRdmaBsBaseAddr::kAddress:
        return enable.dpu_rdma && !channel.brdma_disable && channel.brdma_data_use != 0;
      case hw::DpuRdmaBnBaseAddr::kAddress: return enable.dpu_rdma && !norm.nrdma_disable && norm.nrdma_data_use != 0;
      case hw::DpuRdmaEwBaseAddr::kAddress: return enable.dpu_rdma && !r_.get<hw::DpuRdmaErdmaCfg>().erdma_disable;
      case hw::PpuDstBaseAddr::kAddress: return enable.ppu;
      case hw::PpuRdmaSrcBaseAddr::kAddress: return enable.ppu_rdma;
      default: return true;
    }
  }

 private:
  const TaskRegisters& r_;  // borrowed
  const TaskReading* own_;  // null: the RK3588's packing
};

constexpr uint32_t kMostTaskBytes = hw::kStreamAlignBytes << 16;  // the kernel's count, pc_data_amount, has 16 bits

class Decoder {
 public:
  Decoder(const hw::ChipRow& chip, const capture::Submission& submission, npu::Detail detail)
      : submission_(submission),
        fields_(detail),
        own_(reading_of(chip)),
        registers_(hw::registers_of(chip)),
        check_(chip) {}

  Result<npu::Annotated> run() {
    for (size_t job = 0; job < submission_.jobs.size(); ++job) {
      check_.start_job();
      job_ = {};
      for (const capture::Commands& list : submission_.jobs[job].commands) {
        prefix_ = fmt::format("task {} ", out_.operations.size());
        if (auto done = task(list, job); !done.ok())
          return std::move(done).with_context(fmt::format("task {}", out_.operations.size())).error();
      }
    }
    return std::move(out_);
  }

 private:
  // `name` and `value` return texts.
  template <typename Name, typename Value>
  void add(const npu::FieldFacts& facts, uint64_t raw, const Name& name, const Value& value) {
    fields_.add(facts, raw, [&](AnnotatedField& field) {
      field.name = name();
      field.path = prefix_ + field.name;
      field.value = value();
      field.raw = fmt::format("0x{:x}", raw);
    });
  }
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    if (fields_.full()) fmt::format_to(std::back_inserter(out_.text), format, std::forward<Args>(args)...);
  }

  Result<std::vector<hw::Command>> read(const capture::Commands& task) const {
    const auto place = npu::find_place(submission_, task.address);
    if (!place) return error(ErrorCode::malformed, "no buffer has the commands at address 0x{:08x}", task.address);
    if (task.size_bytes > place->room_bytes || task.size_bytes % hw::kCommandBytes != 0)
      return error(ErrorCode::malformed, "{} bytes of commands at 0x{:08x} are not in buffer {}", task.size_bytes,
                   task.address, place->buffer->handle);
    if (task.size_bytes > kMostTaskBytes)
      return error(ErrorCode::malformed, "{} bytes of commands at 0x{:08x}: a task has at most {}", task.size_bytes,
                   task.address, kMostTaskBytes);
    std::vector<bits::Words<hw::Command>> words(task.size_bytes / hw::kCommandBytes);
    const std::span<const uint8_t> bytes(place->buffer->bytes);
    if (place->offset < bytes.size() && !words.empty())
      std::memcpy(words.data(), bytes.data() + place->offset,
                  std::min<uint64_t>(task.size_bytes, bytes.size() - place->offset));
    std::vector<hw::Command> commands;
    commands.reserve(words.size());
    for (const auto& one : words) commands.push_back(bits::read<hw::Command>(one));
    return commands;
  }

  // Commands are fetched two at a time: after an odd number the chip may fetch one more.
  bool fetches_another(const capture::Commands& task) const {
    if (task.size_bytes % hw::kStreamAlignBytes == 0) return false;
    const auto place = npu::find_place(submission_, task.address);
    uint64_t next = 0;
    if (const uint64_t at = place->offset + task.size_bytes; at < place->buffer->bytes.size())
      std::memcpy(&next, place->buffer->bytes.data() + at,
                  std::min<uint64_t>(sizeof next, place->buffer->bytes.size() - at));
    return next != 0;
  }

  Result<void> task(const capture::Commands& task, size_t job) {
    SK_TRY_ASSIGN(const std::vector<hw::Command> commands, read(task));
    print("{}of job {}: {} commands at 0x{:08x}\n", prefix_, job, commands.size(), task.address);
    add(
        {}, job, [] { return "job"; }, [&] { return fmt::format("{}", job); });
    npu::FieldFacts list{.kind = FieldKind::commands, .address = task.address, .extent_bytes = task.size_bytes};
    list.reach = {.before = 0, .after = align_up(task.size_bytes, uint64_t{hw::kStreamAlignBytes})};
    if (task.address % hw::kStreamAlignBytes != 0) fields_.refuse(prefix_ + "its commands are not aligned");
    add(
        list, commands.size(), [] { return "commands"; }, [&] { return fmt::format("0x{:08x}", task.address); });
    add(
        {}, commands.size(), [] { return "command count"; }, [&] { return fmt::format("{}", commands.size()); });
    registers_.read(commands);
    if (fields_.judges() && fetches_another(task))
      fields_.refuse(prefix_ + "a command behind its list, which is fetched too");
    if (const std::string bad = fields_.judges() ? refused(commands) : ""; !bad.empty()) fields_.refuse(prefix_ + bad);
    for (size_t i = 0; i < commands.size(); ++i) {
      command_address_ = task.address + i * hw::kCommandBytes;
      command(commands[i]);
    }
    unwritten();
    out_.operations.push_back(fields_.full() ? operation_name() : "");
    out_.shapes.push_back(fields_.full() ? shape() : "");
    out_.images.push_back(own_ == nullptr ? image() : npu::WrittenImage{});
    return {};
  }

  std::string refused(std::span<const hw::Command> commands) {
    return own_ != nullptr ? own_->refused(commands, registers_, job_) : check_.task(commands, registers_);
  }

  void command(const hw::Command& one) {
    switch (one.target) {
      case hw::Target::enable: return block_enable(one);
      case hw::Target::none:
      case hw::Target::barrier: return plain(one);
      default: break;
    }
    const bits::Descriptor* const known = registers_.set().find(one.address);
    if (known == nullptr) return plain(one);
    register_fields(*known, one);
  }

  static std::string target_name(hw::Target target) {
    const char* const name = bits::names_of<hw::Target>().find(static_cast<uint64_t>(target));
    return name == nullptr ? fmt::format("target 0x{:04x}", static_cast<uint32_t>(target)) : name;
  }

  // The register that a command writes: its name in words.
  void which(const hw::Command& command) {
    if (!fields_.full()) out_.values.push_back(uint64_t{command.address} << 16 | static_cast<uint64_t>(command.target));
  }

  // A field with the whole value: fillers, barriers and registers without a row.
  void plain(const hw::Command& command) {
    const bool filler = command.target == hw::Target::none && command.address == 0 && command.value == 0;
    const auto name = [&] {
      return filler ? "filler" : fmt::format("{} 0x{:04x}", target_name(command.target), command.address);
    };
    which(command);
    print("  {} <- 0x{:08x}\n", fields_.full() ? name() : "", command.value);
    const bool barrier = command.target == hw::Target::barrier && command.address == 0;
    npu::FieldFacts facts{.unknown = !filler && !barrier};
    facts.place = value_place();
    add(facts, command.value, name, [&] { return fmt::format("0x{:08x}", command.value); });
  }

  // A command's value begins after the register's address.
  npu::FieldPlace value_place() const { return {.in_call = false, .address = command_address_, .first_bit = 16}; }

  void block_enable(const hw::Command& command) {
    add(
        {.unknown = command.address != hw::kEnableAddress}, command.address, [] { return "enable address"; },
        [&] { return fmt::format("0x{:04x}", command.address); });
    rows(hw::BlockEnable::descriptor(), bits::unclaimed_bits(hw::BlockEnable::descriptor(), 0, command.value),
         command.value);
  }

  void register_fields(const bits::Descriptor& d, const hw::Command& command) {
    const auto block = static_cast<uint32_t>(command.target);
    which(command);
    add(
        {.unknown = bits::names_of<hw::Target>().find(block) == nullptr}, block,
        [&] { return std::string(d.name) + " target"; }, [&] { return target_name(command.target); });
    const uint32_t unknown = registers_.set().unclaimed(d) & command.value;
    if (!fields_.full() && unknown == 0 && !registers_.set().holds_address(d))
      out_.values.push_back(command.value);  // all of them at once
    else
      rows(d, unknown, command.value);
  }

  // `unknown`: the bits of `word` that are in no row.
  void rows(const bits::Descriptor& d, uint32_t unknown, uint32_t word) {
    print("  {} <- 0x{:08x}\n", d.name, word);
    for (const bits::Row& row : d.rows) {
      const bits::Value value = bits::read_field(row, {&word, 1});
      npu::FieldFacts facts;
      facts.descriptor = &d;
      facts.row = &row;
      facts.place = value_place();
      if (bits::is_address(row.kind)) address(facts, row, value.integer);
      if (value.integer != 0) print("    {} = {}\n", row.name, fields_.full() ? bits::print_value(row, value) : "");
      add(
          facts, value.integer, [&] { return fmt::format("{}.{}", d.name, row.name); },
          [&] { return bits::print_value(row, value); });
    }
    if (unknown == 0) return;
    print("    unknown bits = 0x{:08x}\n", unknown);
    add(
        {.unknown = true}, unknown, [&] { return std::string(d.name) + ".unknown bits"; },
        [&] { return fmt::format("0x{:08x}", unknown); });
  }

  // A block that uses an address that the task does not write reads memory that may not belong to the task.
  void unwritten() {
    for (const uint32_t address : uses_.addresses()) {
      if (!uses_.uses(address) || uses_.writes(address)) continue;
      const bits::Descriptor& d = *registers_.set().find(address);
      print("  {} is used, but not written\n", d.name);
      add(
          {.kind = FieldKind::memory}, 0, [&] { return std::string(d.name); }, [] { return "not written"; });
    }
  }

  // An address that a task does not use may be 0: our buffers are never there, but another driver's first buffer is.
  void address(npu::FieldFacts& facts, const bits::Row& row, uint64_t value) const {
    const bool is_next_task = facts.descriptor->address == hw::PcBaseAddress::kAddress;
    facts.kind = row.kind == bits::ValueKind::address ? FieldKind::memory
                 : is_next_task                       ? FieldKind::commands
                                                      : FieldKind::constant;
    facts.address = value;
    const auto at = static_cast<uint32_t>(facts.descriptor->address);
    facts.unused = value == 0 && !uses_.uses(at);
    facts.output = uses_.is_output(at);
    facts.extent_bytes = uses_.extent_bytes(at);
    facts.reach = uses_.uses(at) ? reach(at) : npu::Reach{};
    if (facts.kind != FieldKind::commands) return;
    if (uses_.uses(at)) facts.reach = fetched_next();
    for (const capture::Job& job : submission_.jobs) {
      for (const capture::Commands& list : job.commands) {
        if (list.address == value) facts.extent_bytes = list.size_bytes;
      }
    }
  }

  std::optional<npu::Reach> reach(uint32_t at) const {
    return own_ != nullptr ? own_->reach(at, registers_) : check_.reach(at, registers_);
  }

  // The reach of the fetch of the next task's commands, from its amount.
  npu::Reach fetched_next() const {
    const uint64_t fetches = registers_.get<hw::PcRegisterAmounts>().pc_data_amount + uint64_t{1};
    return {.before = 0, .after = fetches * hw::kStreamAlignBytes};
  }

  std::string shape() const {
    if (own_ != nullptr) return own_->shape(registers_);
    const auto in = registers_.get<hw::CnaDataSize0>();
    const auto kernel = registers_.get<hw::CnaWeightSize2>();
    return fmt::format("{}x{}x{} -> {}x{}x{}, kernel {}x{}", in.datain_height, in.datain_width,
                       registers_.get<hw::CnaDataSize1>().datain_channel_real,
                       registers_.get<hw::DpuDataCubeHeight>().height, registers_.get<hw::DpuDataCubeWidth>().width,
                       registers_.get<hw::DpuDataCubeChannel>().orig_channel, kernel.weight_height,
                       kernel.weight_width);
  }

  npu::WrittenImage image() const {
    const uint32_t width = registers_.get<hw::DpuDataCubeWidth>().width;
    return {.height = registers_.get<hw::DpuDataCubeHeight>().height,
            .width = width,
            .channels = registers_.writes<hw::PpuOperationModeCfg>()
                            ? 0
                            : registers_.get<hw::DpuDataCubeChannel>().orig_channel,
            .pixel_bytes = kAtom,
            .row_bytes = uint64_t{width} * kAtom,
            .plane_bytes = registers_.get<hw::DpuDstSurfStride>().dst_surf_stride,
            .is_signed = true};
  }

  std::string operation_name() const {
    if (own_ != nullptr) return own_->name(registers_);
    if (registers_.writes<hw::PpuOperationModeCfg>()) return "POOL";
    if (registers_.get<hw::DpuFeatureModeCfg>().flying_mode == hw::MainSource::memory)
      return registers_.get<hw::DpuEwCfg>().ew_lut_bypass ? "ELEMENTWISE" : "TABLE";
    const bool depthwise = registers_.get<hw::CnaConvCon1>().conv_mode == hw::ConvMode::depthwise;
    const auto stage = registers_.get<hw::DpuEwCfg>();
    const char* const more = stage.ew_bypass ? "" : stage.ew_op_type == hw::EwOperator::multiply ? "+MUL" : "+ADD";
    return fmt::format("{}{}", depthwise ? "DEPTHWISE" : "CONV", more);
  }

  const capture::Submission& submission_;
  npu::FieldList fields_;
  npu::Annotated& out_ = fields_.out();
  std::string prefix_;      // of the paths of the task's fields
  const TaskReading* own_;  // null: the RK3588's packing
  JobState job_;
  TaskRegisters registers_;      // of the task
  Uses uses_{registers_, own_};  // the same
  TaskCheck check_;
  uint64_t command_address_ = 0;  // of the command that is read
};

}  // namespace

Result<npu::Annotated> decode(const hw::ChipRow& chip, const capture::Submission& submission, npu::Detail detail) {
  return Decoder(chip, submission, detail).run();
}

}  // namespace skillet::npus::rockchip
