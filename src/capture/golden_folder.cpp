// Reads a folder with capture.json, the format of golden captures, submission by submission.

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/leaked.h"
#include "capture/job_lists.h"
#include "capture/source.h"

namespace skillet::capture {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kReadFlag = 1;   // ETNA_SUBMIT_BO_READ
constexpr uint32_t kWriteFlag = 2;  // ETNA_SUBMIT_BO_WRITE
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kSoftpinFlag = 8;  // ETNA_SUBMIT_SOFTPIN

// A number, or a text like "0x7120". If it is missing, the error names the field.
Result<uint64_t> number(const Json& object, const char* field, uint64_t limit = UINT32_MAX) {
  const auto found = object.is_object() ? object.find(field) : object.end();
  if (!object.is_object() || found == object.end()) return error(ErrorCode::malformed, "{}: missing", field);
  uint64_t value = 0;
  if (found->is_number_unsigned()) {
    value = found->get<uint64_t>();
  } else if (found->is_string()) {
    const auto& text = found->get_ref<const std::string&>();
    char* end = nullptr;
    errno = 0;
    value = std::strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end != '\0' || errno != 0) return error(ErrorCode::malformed, "{}: bad number", field);
  } else {
    return error(ErrorCode::malformed, "{}: not a number", field);
  }
  if (value > limit) return error(ErrorCode::malformed, "{}: {} is too large", field, value);
  return value;
}

Result<std::string> text(const Json& object, const char* field) {
  const auto found = object.is_object() ? object.find(field) : object.end();
  if (!object.is_object() || found == object.end()) return error(ErrorCode::malformed, "{}: missing", field);
  if (!found->is_string()) return error(ErrorCode::malformed, "{}: not a text", field);
  return found->get<std::string>();
}

// The array `field` of `object`; a missing one counts as empty.
Result<const Json*> array(const Json& object, const char* field) {
  const auto& kEmpty = leaked([] { return Json::array(); });
  if (!object.is_object()) return error(ErrorCode::malformed, "not an object");
  const auto found = object.find(field);
  if (found == object.end()) return &kEmpty;
  if (!found->is_array()) return error(ErrorCode::malformed, "{}: not a list", field);
  return &*found;
}

struct Use {
  bool read = false, write = false;
  std::optional<uint64_t> address;  // the buffer's address, if the submission has one
};
using Uses = std::map<uint32_t, Use>;  // by handle

class FolderSource final : public Reader::Source {
 public:
  explicit FolderSource(const std::string& folder) : folder_(folder) {}

  Result<void> start();
  size_t count() const override { return json_.at("submits").size(); }
  Result<Submission> submission(size_t index) override;

 private:
  static Result<DeviceInfo> device_of(const Json& json);
  Result<Submission> parse_submission(const Json& json) const;
  Result<void> etnaviv(const Json& json, Submission& submission, Uses& uses) const;
  Result<void> rocket(const Json& json, Submission& submission, Uses& uses) const;
  Result<BufferSnapshot> buffer(const Json& json, const Uses& uses) const;
  Result<void> contents(const Json& json, BufferSnapshot& snapshot) const;
  Result<Bytes> file(const std::string& name) const;

  std::string folder_;
  Json json_;
};

Result<void> FolderSource::start() {
  SK_TRY_ASSIGN(const Bytes bytes, file("capture.json"));
  json_ = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (json_.is_discarded()) return error(ErrorCode::malformed, "capture.json: not JSON");
  if (!json_.is_object() || !json_.contains("device"))
    return error(ErrorCode::malformed, "capture.json: device: missing");
  SK_TRY_ASSIGN(device, device_of(json_["device"]).with_context("capture.json: device"));
  SK_TRY(array(json_, "submits").with_context("capture.json"));
  if (!json_.contains("submits")) json_["submits"] = Json::array();
  return {};
}

Result<Submission> FolderSource::submission(size_t index) {
  return parse_submission(json_["submits"][index]).with_context(fmt::format("capture.json: submits[{}]", index));
}

Result<DeviceInfo> FolderSource::device_of(const Json& json) {
  DeviceInfo info;
  SK_TRY_ASSIGN(info.kernel_driver, text(json, "dev"));
  SK_TRY_ASSIGN(info.node, text(json, "node"));
  if (json.contains("compatible")) SK_TRY_INTO(info.compatible, text(json, "compatible"));
  // Folders do not name the chip; the driver supported only one when they were recorded.
  if (info.kernel_driver == "rocket" && info.compatible.empty()) info.compatible = "rockchip,rk3588-rknn-core";
  if (info.kernel_driver != "etnaviv") return info;
  for (const char* field : {"model", "revision", "product", "customer", "eco"}) {
    SK_TRY_ASSIGN(const uint64_t value, number(json, field));
    info.facts.push_back({field, value});
  }
  return info;
}

Result<Submission> FolderSource::parse_submission(const Json& json) const {
  Submission submission;
  Uses uses;
  SK_TRY_ASSIGN(const std::string kind, text(json, "kind"));
  if (kind == "etnaviv") {
    SK_TRY(etnaviv(json, submission, uses));
  } else if (kind == "rocket") {
    SK_TRY(rocket(json, submission, uses));
  } else {
    return error(ErrorCode::unsupported, "kind '{}' is not etnaviv or rocket", kind);
  }
  SK_TRY_ASSIGN(const Json* buffers, array(json, "buffers"));
  std::set<uint32_t> handles;
  for (size_t i = 0; i < buffers->size(); ++i) {
    auto one = buffer((*buffers)[i], uses);
    if (one.ok() && kind == "etnaviv" && one->size_bytes % kPageBytes != 0)
      one = error(ErrorCode::malformed, "size: {} bytes; the kernel allocates whole pages", one->size_bytes);
    if (!one.ok()) return std::move(one).error().with_context(fmt::format("buffers[{}]", i));
    if (!handles.insert(one->handle).second)
      return error(ErrorCode::malformed, "buffers[{}]: handle {} occurs twice", i, one->handle);
    uses.erase(one->handle);
    submission.buffers.push_back(std::move(one).value());
  }
  if (!uses.empty())
    return error(ErrorCode::malformed, "handle {} is used by the submission but is not a buffer", uses.begin()->first);
  return submission;
}

// A plain submission: core 0, pipe 3D, addresses given by the program, no relocations.
Result<void> parameters(const Json& json, Submission& submission) {
  constexpr std::pair<const char*, uint64_t> kPlain[] = {{"pipe", 0}, {"exec_state", 0}, {"flags", kSoftpinFlag}};
  for (const auto& [field, plain] : kPlain) {
    SK_TRY_ASSIGN(const uint64_t value, number(json, field));
    if (value != plain) submission.parameters.push_back({field, value});
  }
  SK_TRY_ASSIGN(const Json* relocations, array(json, "relocs"));
  if (!relocations->empty()) submission.parameters.push_back({"nr_relocs", relocations->size()});
  return {};
}

Result<void> FolderSource::etnaviv(const Json& json, Submission& submission, Uses& uses) const {
  SK_TRY_ASSIGN(const std::string name, text(json, "stream"));
  SK_TRY_ASSIGN(const uint64_t size, number(json, "stream_size"));
  SK_TRY_ASSIGN(const Bytes bytes, file(name));
  if (bytes.size() != size || size % 4 != 0)
    return error(ErrorCode::malformed, "{}: {} bytes, expected stream_size {}, whole words", name, bytes.size(), size);
  std::vector<uint32_t> words(size / 4);
  if (size != 0) std::memcpy(words.data(), bytes.data(), size);
  submission.jobs = one_list(std::move(words));
  SK_TRY(parameters(json, submission));
  SK_TRY_ASSIGN(const Json* bos, array(json, "bos"));
  for (const Json& bo : *bos) {
    SK_TRY_ASSIGN(const uint64_t handle, number(bo, "handle").with_context("bos"));
    SK_TRY_ASSIGN(const uint64_t flags, number(bo, "flags").with_context("bos"));
    SK_TRY_ASSIGN(const uint64_t presumed, number(bo, "presumed", UINT64_MAX).with_context("bos"));
    if (!uses.emplace(static_cast<uint32_t>(handle), Use{(flags & kReadFlag) != 0, (flags & kWriteFlag) != 0, presumed})
             .second)
      return error(ErrorCode::malformed, "bos: handle {} is listed twice", handle);
    if ((flags & ~uint64_t{kReadFlag | kWriteFlag}) != 0)
      submission.parameters.push_back({fmt::format("flags of buffer {}", handle), flags});
  }
  return {};
}

Result<Job> read_job(const Json& job) {
  constexpr uint64_t kCommandBytes = 8;
  Job out;
  SK_TRY_ASSIGN(const Json* list, array(job, "tasks"));
  for (const Json& json : *list) {
    SK_TRY_ASSIGN(const uint64_t address, number(json, "regcmd", UINT64_MAX));
    SK_TRY_ASSIGN(const uint64_t count, number(json, "regcmd_count"));
    out.commands.push_back({.words = {}, .address = address, .size_bytes = count * kCommandBytes});
  }
  return out;
}

Result<void> add_handles(const Json& job, const char* field, bool Use::*flag, Uses& uses, Submission& submission) {
  SK_TRY_ASSIGN(const Json* list, array(job, field));
  note_list(submission, submission.jobs.size() - 1, field, list->size());
  for (const Json& handle : *list) {
    if (!handle.is_number_unsigned() || handle.get<uint64_t>() > UINT32_MAX)
      return error(ErrorCode::malformed, "{}: not a handle", field);
    uses[handle.get<uint32_t>()].*flag = true;
  }
  return {};
}

Result<void> FolderSource::rocket(const Json& json, Submission& submission, Uses& uses) const {
  SK_TRY_ASSIGN(const Json* jobs, array(json, "jobs"));
  for (size_t i = 0; i < jobs->size(); ++i) {
    const std::string where = fmt::format("jobs[{}]", i);
    const Json& job = (*jobs)[i];
    SK_TRY_INTO(submission.jobs.emplace_back(), read_job(job).with_context(where));
    SK_TRY(add_handles(job, "in_bos", &Use::read, uses, submission).with_context(where));
    SK_TRY(add_handles(job, "out_bos", &Use::write, uses, submission).with_context(where));
  }
  return {};
}

Result<BufferSnapshot> FolderSource::buffer(const Json& json, const Uses& uses) const {
  BufferSnapshot snapshot;
  SK_TRY_ASSIGN(const uint64_t handle, number(json, "handle"));
  SK_TRY_ASSIGN(snapshot.size_bytes, number(json, "size", UINT64_MAX));
  SK_TRY_ASSIGN(snapshot.address, number(json, "address", UINT64_MAX));
  snapshot.handle = static_cast<uint32_t>(handle);
  if (const auto use = uses.find(snapshot.handle); use != uses.end()) {
    snapshot.listed = true;
    if (use->second.address.value_or(snapshot.address) != snapshot.address)
      return error(ErrorCode::malformed, "handle {}: at {:#x}, but the submission says {:#x}", handle, snapshot.address,
                   *use->second.address);
    snapshot.read = use->second.read;
    snapshot.write = use->second.write;
  }
  SK_TRY(contents(json, snapshot).with_context(fmt::format("handle {}", handle)));
  return snapshot;
}

// `content` describes contents without a file: zero; input (starts with the graph input, the rest was not stored);
// input_converted (only a hash was stored). All other contents are in a file, without trailing zeros.
Result<void> FolderSource::contents(const Json& json, BufferSnapshot& snapshot) const {
  if (json.contains("content")) {
    SK_TRY_ASSIGN(const std::string content, text(json, "content"));
    if (content == "zero") {
      snapshot.content = Content::zero;
      return {};
    }
    if (content != "input" && content != "input_converted" && content != "file")
      return error(ErrorCode::unsupported, "content '{}' is not one of zero, input, input_converted, file", content);
    snapshot.holds_input = content == "input";
    if (content != "file") return {};
  }
  if (!json.contains("file")) return {};  // only a hash was stored
  SK_TRY_ASSIGN(const std::string name, text(json, "file"));
  SK_TRY_ASSIGN(const Bytes bytes, file(name));
  if (bytes.size() > snapshot.size_bytes)
    return error(ErrorCode::malformed, "{}: {} bytes, the buffer has {}", name, bytes.size(), snapshot.size_bytes);
  set_contents(snapshot, bytes);
  return {};
}

// Names come from the JSON, so they must stay inside the folder.
Result<Bytes> FolderSource::file(const std::string& name) const {
  if (name.empty() || name[0] == '.' || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
    return error(ErrorCode::malformed, "'{}' is not the name of a file in this folder", name);
  return read_file(folder_ + "/" + name);
}

}  // namespace

Result<std::shared_ptr<Reader::Source>> open_golden_folder(const std::string& folder) {
  auto source = std::make_shared<FolderSource>(folder);
  SK_TRY(source->start());
  return std::shared_ptr<Reader::Source>(std::move(source));
}

}  // namespace skillet::capture
