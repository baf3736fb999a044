#include "frontend/onnxruntime/factory.h"

#include <algorithm>
#include <exception>

#include "base/caught.h"
#include "base/environment.h"
#include "base/text.h"
#include "frontend/onnxruntime/provider.h"
#include "runtime/device_list.h"

namespace skillet::onnxruntime {
namespace {

constexpr uint32_t kVendorId = 0;  // no PCI vendor
constexpr std::string_view kOptionPrefix = "ep.skilletexecutionprovider.";

struct Factory {
  OrtEpFactory host;  // first: the host's pointer is ours
  std::shared_ptr<const Ort> ort;
};

const Factory& from_host(const OrtEpFactory* factory) { return *reinterpret_cast<const Factory*>(factory); }

class KeyValues {
 public:
  explicit KeyValues(const Ort& ort) : ort_(ort) { ort_.call(kCreateKeyValues, &held_); }
  ~KeyValues() {
    if (held_ != nullptr) ort_.call(kReleaseKeyValues, held_);
  }
  KeyValues(const KeyValues&) = delete;
  KeyValues& operator=(const KeyValues&) = delete;
  void add(const char* key, const std::string& value) { ort_.call(kAddKeyValue, held_, key, value.c_str()); }
  OrtKeyValues* get() { return held_; }

 private:
  const Ort& ort_;
  OrtKeyValues* held_ = nullptr;
};

std::vector<host::KeyValue> pairs_of(const Ort& ort, const OrtKeyValues* held) {
  std::vector<host::KeyValue> out;
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  if (held != nullptr) ort.call(kGetKeyValues, held, &keys, &values, &count);
  for (size_t i = 0; i < count; ++i) out.emplace_back(keys[i], values[i] == nullptr ? "" : values[i]);
  return out;
}

// Devices on offer: the device that SKILLET_DEVICE names; else the NPUs of this machine; else a device that the options
// choose.
struct Offered {
  std::string device, title;
  bool is_npu = false;
};
std::vector<Offered> offered() {
  std::vector<Offered> out;
  const char* named = environment_variable("SKILLET_DEVICE");
  const std::string wanted = named == nullptr ? "auto" : named;
  if (wanted != "auto" && wanted != "npu") return {{wanted, "as set by SKILLET_DEVICE"}};
  for (const runtime::ListedDevice& one : runtime::list_nodes()) {
    if (one.usable) out.push_back({one.device, one.title, true});
  }
  if (out.empty()) out.push_back({wanted, "this machine has no NPU; the option device=sim:CHIP simulates one"});
  return out;
}

Result<void> add_device(const Factory& factory, const Offered& offer, const OrtHardwareDevice* cpu, OrtEpDevice** out) {
  const Ort& ort = *factory.ort;
  KeyValues metadata(ort), defaults(ort), of_device(ort);
  metadata.add("device", offer.device);
  metadata.add("chip", offer.title);
  const OrtHardwareDevice* hardware = cpu;
  if (offer.is_npu && ort.version() >= kOwnDevicesSince) {
    OrtHardwareDevice* own = nullptr;
    of_device.add("path", offer.device);
    SK_TRY(ort.attempt_ep(kCreateHardwareDevice, kDeviceNpu, kVendorId, uint32_t{0}, "Skillet", of_device.get(), &own));
    hardware = own;
  }
  return ort.attempt_ep(kCreateEpDevice, const_cast<OrtEpFactory*>(&factory.host), hardware, metadata.get(),
                        defaults.get(), out);
}

Result<void> get_devices(const Factory& factory, std::span<const OrtHardwareDevice* const> hardware,
                         std::span<OrtEpDevice*> out, size_t& made) {
  made = 0;
  const auto is_cpu = [&](const OrtHardwareDevice* one) { return factory.ort->call(kDeviceType, one) == kDeviceCpu; };
  const auto cpu = std::ranges::find_if(hardware, is_cpu);
  if (cpu == hardware.end()) return {};
  for (const Offered& one : offered()) {
    if (made == out.size()) break;
    SK_TRY(add_device(factory, one, *cpu, &out[made]));
    ++made;
  }
  return {};
}

// Makes a provider with the session's options. If they name no device, it uses the chosen one.
Result<void> create_ep(const Factory& factory, const OrtKeyValues* metadata, const OrtSessionOptions* session,
                       const OrtLogger* logger, OrtEp** out) {
  const Ort& ort = *factory.ort;
  OrtKeyValues* entries = nullptr;
  SK_TRY(ort.attempt(kConfigEntries, session, &entries));
  const std::vector<host::KeyValue> all = pairs_of(ort, entries);
  if (entries != nullptr) ort.call(kReleaseKeyValues, entries);
  std::vector<host::KeyValue> options;
  for (const auto& [key, value] : all) {
    if (key.starts_with(kOptionPrefix)) options.emplace_back(key.substr(kOptionPrefix.size()), value);
  }
  for (const auto& [key, value] : pairs_of(ort, metadata)) {
    const auto names_device = [](const host::KeyValue& one) { return one.first == "device"; };
    if (key == "device" && value != "auto" && std::ranges::none_of(options, names_device))
      options.emplace_back(key, value);
  }
  SK_TRY_ASSIGN(auto made, make_provider(factory.ort, logger, options, {all.begin(), all.end()}));
  *out = &made.release()->host;
  return {};
}

void set_functions(Factory& factory) {
  OrtEpFactory& host = factory.host;
  host = {};  // zeros for functions of newer hosts
  host.version = factory.ort->version();
  host.get_name = [](const OrtEpFactory*) { return kProviderName; };
  host.get_vendor = [](const OrtEpFactory*) { return "Skillet"; };
  host.get_vendor_id = [](const OrtEpFactory*) { return kVendorId; };
  host.get_version = [](const OrtEpFactory*) { return SKILLET_VERSION; };
  host.get_devices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** out,
                        size_t most, size_t* made) -> OrtStatus* {
    const Factory& one = onnxruntime::from_host(self);
    return guarded(*one.ort, [&] { return onnxruntime::get_devices(one, {devices, count}, {out, most}, *made); });
  };
  host.create_ep = [](OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValues* const* metadata,
                      size_t count, const OrtSessionOptions* session, const OrtLogger* logger,
                      OrtEp** out) -> OrtStatus* {
    const Factory& one = onnxruntime::from_host(self);
    const OrtKeyValues* first = metadata == nullptr || count == 0 ? nullptr : metadata[0];
    return guarded(*one.ort, [&] { return onnxruntime::create_ep(one, first, session, logger, out); });
  };
  host.release_ep = [](OrtEpFactory*, OrtEp* ep) { delete reinterpret_cast<Provider*>(ep); };
  host.create_allocator = [](OrtEpFactory*, const void*, const OrtKeyValues*, void** out) -> OrtStatus* {
    *out = nullptr;  // null: the CPU allocator
    return nullptr;
  };
  host.release_allocator = [](OrtEpFactory*, void*) {};
  host.create_data_transfer = [](OrtEpFactory*, void** out) -> OrtStatus* {
    *out = nullptr;
    return nullptr;
  };
  host.is_stream_aware = [](const OrtEpFactory*) { return false; };
}

// Refuses a host that may be of any old version, with the first function of its table.
OrtStatus* refuse(const OrtApiBase& base, const std::string& text) {
  for (uint32_t version = kOldestVersion; version > 0; --version) {
    const Table table = base.get_api(version);
    if (table != nullptr)
      return reinterpret_cast<OrtStatus* (*)(int, const char*)>(const_cast<void*>(table[kCreateStatus.place]))(
          kFail, text.c_str());
  }
  return nullptr;
}

}  // namespace

OrtStatus* create_factories(const OrtApiBase* base, const OrtLogger* logger, OrtEpFactory** factories, size_t most,
                            size_t* count) {
  *count = 0;
  try {
    auto ort = Ort::of(*base);
    if (!ort.ok()) return refuse(*base, "skillet: " + ort.error().message);
    if (most == 0) return refuse(*base, "skillet: the host accepts no factory");
    auto factory = std::make_unique<Factory>();
    factory->ort = std::make_shared<const Ort>(*ort);
    set_functions(*factory);
    factory->ort->log(logger, kLogInfo, "provider " SKILLET_VERSION);
    *factories = &factory.release()->host;
    *count = 1;
    return nullptr;
  } catch (const std::exception& caught) {
    return refuse(*base, "skillet: " + std::string(text_of(caught)));
  }
}

void release_factory(OrtEpFactory* factory) { delete reinterpret_cast<Factory*>(factory); }

}  // namespace skillet::onnxruntime
