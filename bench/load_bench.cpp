// CPU time of a load: compiling and loading a network for each chip, without and with a folder of compiled programs.
// The device is null, which takes jobs and does nothing. Prints the least of several loads, in ms:
//   compile, the session's load without and with the folder, the delegate's load in a host without and with it
// usage: load_bench RUNS CHIP[,CHIP...] [KEY=VALUE...] MODEL.tflite...     (KEY: an option of sessions)
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>

#include "base/log.h"
#include "frontend/tflite_delegate/plugin.h"
#include "frontend/tflite_delegate/testing/fake_host.h"
#include "graph/import/import.h"
#include "runtime/session.h"
#include "runtime/session_keys.h"

namespace skillet {
namespace {

double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double least_ms(int runs, const std::function<bool()>& work) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = cpu_ms();
    if (!work()) return -1;
    least = std::min(least, cpu_ms() - start);
  }
  return least;
}

bool apply(const std::string& device, const std::vector<std::pair<std::string, std::string>>& given,
           const ir::Graph& graph, const std::string& folder) {
  std::vector<const char*> keys = {"device"}, values = {device.c_str()};
  for (const auto& [key, value] : given) keys.push_back(key.c_str()), values.push_back(value.c_str());
  if (!folder.empty()) keys.push_back("cache_dir"), values.push_back(folder.c_str());
  TfLiteDelegate* delegate = delegate::create(keys.data(), values.data(), keys.size(), nullptr);
  if (delegate == nullptr) return false;
  bool is_done = false;
  {
    delegate::FakeHost host(graph);
    is_done = host.apply(delegate) == kTfLiteOk;
  }
  delegate::destroy(delegate);
  return is_done;
}

void measure(int runs, const std::string& chip, const std::vector<std::pair<std::string, std::string>>& given,
             const std::string& model) {
  const std::string device = "null:" + chip, folder = "/tmp/skillet-load-bench-" + std::to_string(::getpid());
  const auto graph = tflite::import_file(model);
  const auto target = runtime::open_target(device);
  if (!graph.ok() || !target.ok()) {
    std::fprintf(stderr, "%s, %s: %s\n", model.c_str(), device.c_str(),
                 (graph.ok() ? target.error() : graph.error()).message.c_str());
    return;
  }
  runtime::SessionOptions options;
  for (const auto& [key, value] : given) {
    if (!runtime::set_option(options, key, value).ok()) std::abort();
  }
  const auto compile = [&] { return runtime::compile_for(*target, *graph, options).ok(); };
  const auto load = [&] { return runtime::Session::create(*graph, *target, options).ok(); };
  const double compiled = least_ms(runs, compile), loaded = least_ms(runs, load);
  options.cache_dir = folder;
  load();
  const double cached = least_ms(runs, load);
  const double hosted = least_ms(runs, [&] { return apply(device, given, *graph, ""); });
  apply(device, given, *graph, folder);
  const double hosted_cached = least_ms(runs, [&] { return apply(device, given, *graph, folder); });
  std::printf("%-8s %-44s %7.2f %7.2f %7.2f %7.2f %7.2f\n", chip.c_str(), std::filesystem::path(model).stem().c_str(),
              compiled, loaded, cached, hosted, hosted_cached);
  std::fflush(stdout);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

int run(int argc, char** argv) {
  std::vector<std::pair<std::string, std::string>> given;
  std::vector<std::string> models;
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t is = text.find('=');
    if (is == std::string::npos)
      models.push_back(text);
    else
      given.emplace_back(text.substr(0, is), text.substr(is + 1));
  }
  if (models.empty()) {
    std::fprintf(stderr, "usage: load_bench RUNS CHIP[,CHIP...] [KEY=VALUE...] MODEL.tflite...\n");
    return 2;
  }
  const log::ScopedLevel quiet(log::Level::error);
  std::printf("%-8s %-44s compile    load  cached    host  cached\n", "chip", "model");
  for (const std::string& model : models) {
    std::string chips = argv[2];
    while (!chips.empty()) {
      const size_t end = std::min(chips.find(','), chips.size());
      measure(std::atoi(argv[1]), chips.substr(0, end), given, model);
      chips.erase(0, end + 1);
    }
  }
  return 0;
}

}  // namespace
}  // namespace skillet

int main(int argc, char** argv) { return skillet::run(argc, argv); }
