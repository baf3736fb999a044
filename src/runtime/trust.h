// Trust: what one device has been seen to compute right or wrong, and the file that stores it.
// Called by verify.h (reads and adds), compile_for() (refuses what was wrong) and tools (print it).
// Must not know: how it was found out, anything of one vendor.
#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/own_file.h"
#include "base/result.h"
#include "capture/capture.h"
#include "sim/timing.h"

namespace skillet::runtime {

// The silicon and its kernel driver. Observations hold for this pair only.
struct DeviceIdentity {
  std::string chip;
  std::string kernel_driver;       // "rocket, Linux 6.18.2" (its release), "rocket, simulated", "rocket, virtual"
  std::vector<std::string> facts;  // "model=0x8000", "serial=..."

  std::string text() const;       // in one line
  std::string file_name() const;  // "a311d-etnaviv-1f2e3d4c5b6a7988.json"
  bool is_simulated() const { return kernel_driver.ends_with(", simulated"); }
  bool is_virtual() const { return kernel_driver.ends_with(", virtual"); }  // simulated in another process
  bool operator==(const DeviceIdentity&) const = default;
};
// Error names the field: device.chip.
Result<DeviceIdentity> parse_identity(const nlohmann::json& file);
nlohmann::ordered_json json_of(const DeviceIdentity& device);
DeviceIdentity identity_of(const std::string& chip, const capture::DeviceInfo& info, bool simulated);

// assumption: a row of npus/<v>/compiler/assumptions.def, by name. program: a part's compiled program, by a hash.
// operation: one that was wrong although all its assumptions hold, by a hash of it and its constants. cost: the
// measured value of a timing parameter, valid for any build.
enum class TrustKind : uint8_t { assumption, program, operation, cost };
inline constexpr std::array<std::string_view, 4> kTrustKindNames = {"assumption", "program", "operation", "cost"};

struct TrustEntry {
  TrustKind kind = TrustKind::assumption;
  std::string name;
  bool confirmed = false;  // false: refuted
  std::string build;       // of the compiler that made the jobs: it holds for this build only
  std::string date;        // 2026-11-24T13:37:00Z
  std::string evidence;    // for people, one line
  double value = 0;        // for a cost
  // For a program: its assumptions; none: not known (the entry is of an older build).
  std::optional<std::vector<std::string>> stands_on = {};

  bool operator==(const TrustEntry&) const = default;
};

// Entries of other builds say nothing about this build's jobs.
bool is_of_this_build(const TrustEntry& entry);
// For an assumption whose probe ran; `what`: the failure.
TrustEntry entry_of_probe(std::string_view assumption, bool holds, std::string_view what);

inline constexpr size_t kTrustFileMax = size_t{4} << 20;  // bytes
struct TrustFile {
  DeviceIdentity device;
  std::vector<TrustEntry> entries;
};
std::string print(const TrustFile& file);
// `text` is untrusted. The error names the field and what is wrong with it.
Result<TrustFile> parse_trust_file(std::string_view text);
std::string trust_date();  // now, in the format of TrustEntry::date

// Folder of the trust files: SKILLET_TRUST_DIR; else /var/lib/skillet/trust for root, the state folder of any other
// user (~/.local/state/skillet/trust). Empty: none. For simulated devices: only SKILLET_TRUST_DIR, or behind `skillet
// virtual` a folder that exists until that command ends.
std::string trust_folder(bool simulated);

// Thread-safe.
class Trust {
 public:
  // Reads the folder's file of this device. A file that is wrong, or that another user may write, is not used, and a
  // warning is logged. When an entry is added, a damaged file is kept as FILE.unreadable, and a file of a newer build
  // is left unchanged. Empty folder: entries live as long as the object. `patience`: how long to wait for another
  // process that holds the lock, counted from its last write; writing to a slow card may take seconds.
  Trust(DeviceIdentity device, std::string folder, std::chrono::milliseconds patience = std::chrono::seconds(10));

  // Entries from this build's jobs.
  std::optional<TrustEntry> find(TrustKind kind, std::string_view name) const;
  bool is_refuted(TrustKind kind, std::string_view name) const;
  bool refutes(TrustKind kind) const;              // any entry of this kind
  std::vector<sim::ParameterValue> costs() const;  // the newest of each name
  // Fills in build and date. Merges what other processes have written or removed meanwhile, then replaces the file. If
  // the file cannot be written, one warning is logged and the entries live as long as the object. Long evidence is
  // shortened, and the newest 512 entries of each kind are kept.
  void add(std::vector<TrustEntry> entries);
  // The same on a user's request. Returns names that were to be confirmed but remain refuted from before. Error: there
  // is no file, or it cannot be written.
  Result<std::vector<std::string>> add_kept(std::vector<TrustEntry> entries);
  Result<void> check_kept() const;  // error if there is no file
  // Removes entries of this name, of all kinds and builds; empty: all entries. Removing an assumption also removes
  // programs that stand on it, or may; removing an operation removes the refuted programs, so that they are compared
  // again. Error: the file cannot be written.
  Result<size_t> forget(std::string_view name);

  void warn_once(const std::string& line) const;  // every compilation reads the costs
  void detach() { path_.clear(); }  // later entries live as long as the object; call before threads share it
  TrustFile file() const;
  const std::string& path() const { return path_; }  // empty: none

 private:
  struct FileState {
    bool is_ours = false;        // it holds this device's entries, or does not exist; else its contents are unknown
    bool is_unbelieved = false;  // damaged, writable by others, or not readable
    bool is_newer = false;       // written by a newer build
    std::vector<TrustEntry> entries;
  };
  Result<void> add_all(std::vector<TrustEntry> entries);
  FileState read();
  void take_in(FileState state);
  OwnFileLock lock_file();                      // creates the folder if needed
  Result<void> write(const FileState& before);  // replaces the file in state `before`

  mutable std::mutex mutex_;
  mutable std::set<std::string> warned_;
  TrustFile file_;
  std::string path_;
  std::chrono::milliseconds patience_;
  bool is_in_step_ = false;     // the file and this object had the same entries
  bool is_unreadable_ = false;  // a warning was logged
  bool cannot_write_ = false;   // a warning was logged
  bool cannot_lock_ = false;    // a warning was logged; later locks do not wait
};

}  // namespace skillet::runtime
