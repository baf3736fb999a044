// forks DEVICE MODEL COUNT SEED: threads run a model on DEVICE while the process forks COUNT times. SEED decides what
// each child does with the objects inherited from its parent: closes them, tries to use them, opens a device of its own
// and runs there, or ends at once. Prints how many children hung (did not end in time) and how many failed; the exit
// code is 0 when none did.
#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "skillet/skillet.h"

namespace {

constexpr unsigned kSecondsOfAChild = 60;
constexpr int kThreads = 3;

std::vector<char> g_file;
std::string g_device;

skillet_model* load(skillet_device* device) {
  const skillet_options options{.struct_bytes = sizeof(skillet_options), .allow_unproven = 1};
  skillet_model* model = nullptr;
  return skillet_load_memory(device, g_file.data(), g_file.size(), &options, &model) == SKILLET_OK ? model : nullptr;
}

skillet_device* open() {
  skillet_device* device = nullptr;
  return skillet_open(g_device.c_str(), &device) == SKILLET_OK ? device : nullptr;
}

bool runs_on_its_own() {
  skillet_device* const device = open();
  skillet_model* const model = device == nullptr ? nullptr : load(device);
  const bool ok = model != nullptr && skillet_run(model) == SKILLET_OK;
  skillet_close_model(model);
  skillet_close(device);
  return ok;
}

enum Act : unsigned { kCloses = 1, kRuns = 2, kOpensItsOwn = 4, kExits = 8 };

// The exit code of a child.
int in_child(unsigned acts, skillet_device* device, const std::vector<skillet_model*>& models) {
  if ((acts & kRuns) != 0 && skillet_run(models[0]) == SKILLET_OK) return 2;  // the parent's model
  if ((acts & kCloses) != 0) {
    for (skillet_model* const model : models) skillet_close_model(model);
    skillet_close(device);
  }
  if ((acts & kOpensItsOwn) != 0 && !runs_on_its_own()) return 3;
  return 0;
}

// Prints where a child hangs (for addr2line), then ends it as alarm() alone would.
void tell_where(int number) {
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, std::size(frames)), STDERR_FILENO);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  g_device = argv[1];
  const int count = std::atoi(argv[3]);
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[4])));
  std::ifstream in(argv[2], std::ios::binary);
  g_file.assign(std::istreambuf_iterator<char>(in), {});
  skillet_device* const device = open();
  std::vector<skillet_model*> models;
  for (int i = 0; i < kThreads; ++i) models.push_back(device == nullptr ? nullptr : load(device));
  if (models[0] == nullptr) {
    std::fprintf(stderr, "%s: %s\n", g_device.c_str(), skillet_last_error());
    return 2;
  }
  std::atomic<bool> stops{false};
  std::atomic<int> failed_runs{0};
  std::vector<std::thread> threads;
  for (skillet_model* const model : models) {
    threads.emplace_back([&, model] {
      while (!stops) failed_runs += skillet_run(model) == SKILLET_OK ? 0 : 1;
    });
  }
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads the code for it: a child could not
  int hung = 0, failed = 0;
  for (int i = 0; i < count; ++i) {
    const unsigned acts = random() % 16;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGALRM, tell_where);
      ::alarm(kSecondsOfAChild);
      const int code = in_child(acts, device, models);
      if ((acts & kExits) != 0) std::exit(code);  // through all destructors
      ::_exit(code);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    const bool hangs = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    hung += hangs ? 1 : 0;
    failed += !hangs && status != 0 ? 1 : 0;
    if (status != 0) std::fprintf(stderr, "child %d (acts %u) ended with status %#x\n", i, acts, status);
  }
  stops = true;
  for (std::thread& thread : threads) thread.join();
  for (skillet_model* const model : models) skillet_close_model(model);
  skillet_close(device);
  std::printf("%s: %d forks, %d hung, %d failed, %d runs of the parent failed\n", argv[1], count, hung, failed,
              failed_runs.load());
  return hung + failed + failed_runs.load() == 0 ? 0 : 1;
}
