// exits DEVICE MODEL HOW [MS]: a host linked with the C library that calls exit() with everything open.
//   idle:    after one inference, MS later
//   flight:  with an unfinished inference, MS later
//   threads: while other threads go on with inferences, MS later
// Prints nothing; exit code 0, or 2 when it could not begin.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "skillet/skillet.h"

namespace {

skillet_model* load(const char* device_name, const char* path) {
  skillet_device* device = nullptr;
  const skillet_options options{.struct_bytes = sizeof(skillet_options), .allow_unproven = 1};
  skillet_model* model = nullptr;
  if (skillet_open(device_name, &device) == SKILLET_OK &&
      skillet_load_file(device, path, &options, &model) == SKILLET_OK)
    return model;
  std::fprintf(stderr, "%s\n", skillet_last_error());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string how = argv[3];
  std::vector<skillet_model*> models;
  for (int i = 0; i < (how == "threads" ? 3 : 1); ++i) models.push_back(load(argv[1], argv[2]));
  if (how == "threads") {
    for (skillet_model* const model : models) {
      std::thread([model] {
        while (true) skillet_run(model);
      }).detach();
    }
  } else if ((how == "flight" ? skillet_start : skillet_run)(models[0]) != SKILLET_OK) {
    std::fprintf(stderr, "%s\n", skillet_last_error());
    return 2;
  }
  if (argc > 4) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[4])));
  std::exit(0);
}
