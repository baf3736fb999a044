// What the TensorFlow Lite delegate takes of each recorded model of one operation, what it reports and computes, also
// after its host gave an input other sizes. See graphs_test.cpp.
#include <memory>

#include "answers/known_graphs.h"
#include "answers/lines.h"
#include "base/log.h"
#include "frontend/tflite_delegate/plugin.h"
#include "frontend/tflite_delegate/testing/fake_host.h"
#include "graph/import/import.h"
#include "graph/ref/ref.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr const char* kDevices[] = {"sim:a311d", "sim:rk3588", "sim:imx93"};

std::string reported;
void collect(const char* text) { reported += text; }

// A host with the delegate of a device, and all that is said of one graph.
class Delegated {
 public:
  Delegated(const ir::Graph& graph, const char* device) : graph_(graph), host_(graph) {
    const char *const keys[] = {"device", "partition", "unproven"}, *const values[] = {device, "all", "take"};
    reported.clear();
    delegate_.reset(delegate::create(keys, values, std::size(keys), collect));
    said_ = reported;
  }

  std::string run() {
    if (delegate_ == nullptr) return said_;
    said_ += fmt::format("applied {} parts {}", static_cast<int>(host_.apply(delegate_.get())), host_.partitions());
    for (size_t i = 0; i < host_.partitions(); ++i) said_ += fmt::format(" of {}", host_.partition(i).size());
    invoke();
    if (host_.partitions() == 1 && host_.partition(0).size() == graph_.ops.size() && !graph_.inputs.empty()) resize();
    for (const std::string& one : host_.errors) said_ += "\n" + one;
    return said_;
  }

 private:
  void invoke() {
    for (const ir::TensorId id : graph_.inputs) {
      uint32_t state = 7;
      for (uint8_t& byte : host_.bytes(id)) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    }
    said_ += fmt::format(" ran {}", static_cast<int>(host_.invoke()));
    for (const ir::TensorId id : graph_.outputs) {
      const std::span<uint8_t> bytes = host_.bytes(id);
      said_ += fmt::format(" {:x} of {}", XXH3_64bits(bytes.data(), bytes.size()), bytes.size());
    }
  }
  // Each dimension of the first input one larger, then its own shape again.
  void resize() {
    const ir::TensorId input = graph_.inputs[0];
    for (int32_t i = 0; i <= graph_.tensor(input).shape.rank(); ++i) {
      ir::Shape shape = graph_.tensor(input).shape;
      if (i < shape.rank()) ++shape.dims[static_cast<size_t>(i)];
      host_.resize(input, shape);
      const TfLiteStatus prepared = host_.prepare();
      said_ += fmt::format("\n{} prepared {}", shape.to_string(), static_cast<int>(prepared));
      if (prepared == kTfLiteOk) invoke();
    }
  }

  const ir::Graph& graph_;
  std::unique_ptr<TfLiteDelegate, void (*)(TfLiteDelegate*)> delegate_{nullptr, delegate::destroy};
  delegate::FakeHost host_;
  std::string said_;
};

TEST(Answers, OfManyDelegates) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const auto& [name, texts] : known_graphs()) {
    std::string line;
    for (const char* device : kDevices) {
      Hash hash;
      for (const std::string& text : texts) {
        const auto graph = ir::parse(text);
        if (graph.ok() && ref::Interpreter::create(*graph).ok()) hash.add(Delegated(*graph, device).run());
      }
      line += fmt::format(" {} {}", hash.count(), hash.text());
    }
    now["delegate " + name] = line.substr(1);
  }
  expect_lines(kFile, "delegate ", now);
}

}  // namespace
}  // namespace skillet::answers
