// Trust: what one device has been seen to compute, right or wrong, and the file where that is kept.
// Called by verify.h (asks and adds), compile_for() (what was wrong is refused) and tools (show it).
// Must not know: how it was found out, a vendor's anything.
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

// The silicon and who drives it: what was seen there holds for nobody else.
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

// assumption: a row of npus/<v>/compiler/assumptions.def, by name. program: what a part was compiled to, by a hash.
// operation: one that was wrong though all its assumptions hold, by a hash of it and its constants. cost: what a timing
// parameter was measured to be, whatever the build.
enum class TrustKind : uint8_t { assumption, program, operation, cost };
inline constexpr std::array<std::string_view, 4> kTrustKindNames = {"assumption", "program", "operation", "cost"};

struct TrustEntry {
  TrustKind kind = TrustKind::assumption;
  std::string name;
  bool confirmed = false;  // false: refuted
  std::string build;       // of the compiler that made the jobs: those of another one are not these
  std::string date;        // 2026-11-24T13:37:00Z
  std::string evidence;    // for people, one line
  double value = 0;        // of a cost
  // Of a program: the assumptions that it stands on; none: it is not known (of a build before).
  std::optional<std::vector<std::string>> stands_on = {};

  bool operator==(const TrustEntry&) const = default;
};

// Others say nothing of this build's jobs.
bool is_of_this_build(const TrustEntry& entry);
// Of an assumption whose probe ran; `what` was wrong with it.
TrustEntry entry_of_probe(std::string_view assumption, bool holds, std::string_view what);

inline constexpr size_t kTrustFileMax = size_t{4} << 20;  // bytes
struct TrustFile {
  DeviceIdentity device;
  std::vector<TrustEntry> entries;
};
std::string print(const TrustFile& file);
// Nothing in `text` is trusted. Error names the field and what is wrong with it.
Result<TrustFile> parse_trust_file(std::string_view text);
std::string trust_date();  // now, as in TrustEntry::date

// Where files of devices are kept: SKILLET_TRUST_DIR; else /var/lib/skillet/trust of the system's administrator, the
// state folder of any other user (~/.local/state/skillet/trust). Empty: nowhere. Simulated devices: only where
// SKILLET_TRUST_DIR says so, behind `skillet virtual` until that ends.
std::string trust_folder(bool simulated);

// Any number of threads may use one.
class Trust {
 public:
  // Reads the folder's file of this device. Of a file that is wrong, or that somebody else may write, nothing is
  // believed, and a warning says so; when something is added, a damaged one is kept as FILE.unreadable, and one of a
  // newer build stays as it is. Empty folder: what is added is gone with the object. `patience`: how long another
  // process that holds the lock is waited for after it last wrote; writing to a slow card may take seconds.
  Trust(DeviceIdentity device, std::string folder, std::chrono::milliseconds patience = std::chrono::seconds(10));

  // What was seen by this build's jobs.
  std::optional<TrustEntry> find(TrustKind kind, std::string_view name) const;
  bool is_refuted(TrustKind kind, std::string_view name) const;
  bool refutes(TrustKind kind) const;              // anything of it
  std::vector<sim::ParameterValue> costs() const;  // the newest of each name
  // Fills in build and date. Takes over what other processes have written or removed meanwhile, then replaces the file;
  // what cannot be written is said once, and holds for this object. Long evidence is shortened, and of each kind the
  // newest 512 entries are kept.
  void add(std::vector<TrustEntry> entries);
  // The same for a person who asks for it. Names of what is to be confirmed and stays refuted, as it was before. Error:
  // there is no file, or it cannot be written.
  Result<std::vector<std::string>> add_kept(std::vector<TrustEntry> entries);
  Result<void> check_kept() const;  // that there is a file
  // Removes entries of this name, of all kinds and builds; empty: all. With an assumption go the programs that stand on
  // it, or may, with an operation those that are refuted, so that they are compared again. Error: the file cannot be
  // written.
  Result<size_t> forget(std::string_view name);

  void warn_once(const std::string& line) const;  // each compilation asks for the costs
  void detach() { path_.clear(); }  // what is added from then on is gone with the object; before threads share it
  TrustFile file() const;
  const std::string& path() const { return path_; }  // empty: none

 private:
  struct FileState {
    bool is_ours = false;  // it says what this device was seen to do, or is not there; else nothing is known of it
    bool is_unbelieved = false;  // it is damaged, or others may write it, or it cannot be read
    bool is_newer = false;       // of a newer build
    std::vector<TrustEntry> entries;
  };
  Result<void> add_all(std::vector<TrustEntry> entries);
  FileState read();
  void take_in(FileState state);
  OwnFileLock lock_file();                      // makes the folder, too
  Result<void> write(const FileState& before);  // in the place of that

  mutable std::mutex mutex_;
  mutable std::set<std::string> warned_;
  TrustFile file_;
  std::string path_;
  std::chrono::milliseconds patience_;
  bool is_in_step_ = false;     // the file was what is known here
  bool is_unreadable_ = false;  // and that was said
  bool cannot_write_ = false;   // and that was said
  bool cannot_lock_ = false;    // and that was said: it is not waited for again
};

}  // namespace skillet::runtime
