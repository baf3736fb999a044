#include "drivers/rockchip/decode.h"

#include <algorithm>
#include <map>

#include "driver/decoded_capture.h"
#include "drivers/rockchip/hw/rockchip.h"

namespace skillet::drivers::rockchip {
namespace {

namespace hw = ::skillet::rockchip::hw;
using driver::AnnotatedField;
using driver::FieldKind;

// What a task's registers hold when its blocks start; a register that it does not write counts as 0.
struct Registers {
  std::map<uint32_t, uint32_t> values;

  template <typename T>
  T get() const {
    const auto found = values.find(T::kAddress);
    const uint32_t value = found == values.end() ? 0 : found->second;
    return bits::read<T>({&value, 1});
  }
};

class Decoder {
 public:
  explicit Decoder(const capture::Submission& submission) : submission_(submission) {}

  Result<driver::Annotated> run() {
    for (size_t job = 0; job < submission_.jobs.size(); ++job) {
      for (const capture::Commands& list : submission_.jobs[job].commands) {
        const std::string name = fmt::format("task {}", out_.operations.size());
        SK_TRY(task(list, job, name + " ").with_context(name));
      }
    }
    return std::move(out_);
  }

 private:
  using CommandWords = bits::Words<hw::Command>;

  AnnotatedField& add(const std::string& prefix, std::string name, std::string value, uint64_t raw) {
    AnnotatedField& field = out_.fields.emplace_back();
    field.path = prefix + name;
    field.name = std::move(name);
    field.value = std::move(value);
    field.raw = fmt::format("0x{:x}", raw);
    field.operation = out_.operations.size();
    return field;
  }

  Result<std::vector<CommandWords>> read(const capture::Commands& task) const {
    if (task.address == 0) return error(ErrorCode::malformed, "its commands are not in the device's memory");
    const auto place = driver::find_place(submission_, task.address);
    if (!place) return error(ErrorCode::malformed, "no buffer has the commands at address 0x{:08x}", task.address);
    if (task.size_bytes > place->room_bytes || task.size_bytes % hw::kCommandBytes != 0)
      return error(ErrorCode::malformed, "{} bytes of commands at 0x{:08x} do not lie in buffer {}", task.size_bytes,
                   task.address, place->buffer->handle);
    std::vector<CommandWords> commands(task.size_bytes / hw::kCommandBytes);
    const std::span<const uint8_t> bytes(place->buffer->bytes);
    if (place->offset < bytes.size() && !commands.empty())
      std::memcpy(commands.data(), bytes.data() + place->offset,
                  std::min<uint64_t>(task.size_bytes, bytes.size() - place->offset));
    return commands;
  }

  Result<void> task(const capture::Commands& task, size_t job, const std::string& prefix) {
    SK_TRY_ASSIGN(const std::vector<CommandWords> commands, read(task));
    out_.text += fmt::format("{}of job {}: {} commands at 0x{:08x}\n", prefix, job, commands.size(), task.address);
    add(prefix, "job", fmt::format("{}", job), job);
    AnnotatedField& list = add(prefix, "commands", fmt::format("0x{:08x}", task.address), commands.size());
    list.kind = FieldKind::commands;
    list.address = task.address;
    list.extent_bytes = task.size_bytes;
    add(prefix, "command count", fmt::format("{}", commands.size()), commands.size());
    registers_ = {};
    for (size_t i = 0; i < commands.size(); ++i) {
      command_address_ = task.address + i * hw::kCommandBytes;
      command(commands[i], prefix);
    }
    out_.operations.push_back(operation_name());
    out_.shapes.push_back(shape());
    return {};
  }

  void command(const CommandWords& words, const std::string& prefix) {
    const auto fields = bits::read<hw::Command>(words);
    const bits::Descriptor* const known = hw::registers().find(fields.address);
    switch (fields.target) {
      case hw::Target::enable: return block_enable(fields, prefix);
      case hw::Target::none:
      case hw::Target::barrier: return plain(fields, prefix);
      default: break;
    }
    if (known == nullptr) return plain(fields, prefix);
    registers_.values[fields.address] = fields.value;
    register_fields(*known, fields, prefix);
  }

  static std::string target_name(hw::Target target) {
    const char* const name = bits::names_of<hw::Target>().find(static_cast<uint64_t>(target));
    return name == nullptr ? fmt::format("target 0x{:04x}", static_cast<uint32_t>(target)) : name;
  }

  // Fillers, barriers and what has no row: the whole value.
  void plain(const hw::Command& command, const std::string& prefix) {
    const bool filler = command.target == hw::Target::none && command.address == 0 && command.value == 0;
    const std::string name =
        filler ? "filler" : fmt::format("{} 0x{:04x}", target_name(command.target), command.address);
    const std::string value = fmt::format("0x{:08x}", command.value);
    out_.text += fmt::format("  {} <- {}\n", name, value);
    const bool barrier = command.target == hw::Target::barrier && command.address == 0;
    AnnotatedField& field = add(prefix, name, value, command.value);
    field.unknown = !filler && !barrier;
    field.place = value_place();
  }

  // The value of a command begins behind the register's address.
  driver::FieldPlace value_place() const { return {.in_call = false, .address = command_address_, .first_bit = 16}; }

  void block_enable(const hw::Command& command, const std::string& prefix) {
    add(prefix, "enable address", fmt::format("0x{:04x}", command.address), command.address).unknown =
        command.address != hw::kEnableAddress;
    rows(hw::BlockEnable::descriptor(), command.value, prefix);
  }

  void register_fields(const bits::Descriptor& d, const hw::Command& command, const std::string& prefix) {
    const auto block = static_cast<uint32_t>(command.target);
    add(prefix, std::string(d.name) + " target", target_name(command.target), block).unknown =
        bits::names_of<hw::Target>().find(block) == nullptr;
    rows(d, command.value, prefix);
  }

  void rows(const bits::Descriptor& d, uint32_t word, const std::string& prefix) {
    out_.text += fmt::format("  {} <- 0x{:08x}\n", d.name, word);
    for (const bits::Row& row : d.rows) {
      const bits::Value value = bits::read_field(row, {&word, 1});
      const std::string text = bits::print_value(row, value);
      if (value.integer != 0) out_.text += fmt::format("    {} = {}\n", row.name, text);
      AnnotatedField& field = add(prefix, fmt::format("{}.{}", d.name, row.name), text, value.integer);
      field.descriptor = &d;
      field.row = &row;
      field.place = value_place();
      if (bits::is_address(row.kind)) address(field, row, value.integer);
    }
    const uint32_t unknown = bits::unclaimed_bits(d, 0, word);
    if (unknown == 0) return;
    const std::string text = fmt::format("0x{:08x}", unknown);
    out_.text += fmt::format("    unknown bits = {}\n", text);
    add(prefix, std::string(d.name) + ".unknown bits", text, unknown).unknown = true;
  }

  // An address of 0 is one that the task does not use: no buffer of ours lies there.
  void address(AnnotatedField& field, const bits::Row& row, uint64_t value) const {
    field.kind = row.kind == bits::ValueKind::address             ? FieldKind::memory
                 : field.name == "pc.base_address.pc_source_addr" ? FieldKind::commands
                                                                  : FieldKind::constant;
    field.address = value;
    field.unused = value == 0;
    if (field.kind != FieldKind::commands) return;
    for (const capture::Job& job : submission_.jobs) {
      for (const capture::Commands& list : job.commands) {
        if (list.address == value) field.extent_bytes = list.size_bytes;
      }
    }
  }

  std::string shape() const {
    const auto in = registers_.get<hw::CnaDataSize0>();
    const auto kernel = registers_.get<hw::CnaWeightSize2>();
    return fmt::format("{}x{}x{} -> {}x{}x{}, kernel {}x{}", in.datain_height, in.datain_width,
                       registers_.get<hw::CnaDataSize1>().datain_channel_real,
                       registers_.get<hw::DpuDataCubeHeight>().height, registers_.get<hw::DpuDataCubeWidth>().width,
                       registers_.get<hw::DpuDataCubeChannel>().orig_channel, kernel.weight_height,
                       kernel.weight_width);
  }

  std::string operation_name() const {
    if (registers_.values.contains(hw::PpuOperationModeCfg::kAddress)) return "POOL";
    if (registers_.get<hw::DpuFeatureModeCfg>().flying_mode == hw::MainSource::memory)
      return registers_.get<hw::DpuEwCfg>().ew_lut_bypass ? "ELEMENTWISE" : "TABLE";
    const bool depthwise = registers_.get<hw::CnaConvCon1>().conv_mode == hw::ConvMode::depthwise;
    const auto stage = registers_.get<hw::DpuEwCfg>();
    const char* const more = stage.ew_bypass ? "" : stage.ew_op_type == hw::EwOperator::multiply ? "+MUL" : "+ADD";
    return fmt::format("{}{}", depthwise ? "DEPTHWISE" : "CONV", more);
  }

  const capture::Submission& submission_;
  driver::Annotated out_;
  Registers registers_;           // of the task
  uint64_t command_address_ = 0;  // of the command that is read
};

}  // namespace

Result<driver::Annotated> decode(const capture::Submission& submission) { return Decoder(submission).run(); }

}  // namespace skillet::drivers::rockchip
