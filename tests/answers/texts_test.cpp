// What the functions for untrusted text answer, and what networks find: classes, boxes, masks and key points in outputs
// of many forms, as people and programs read it. See graphs_test.cpp.
#include <nlohmann/json.hpp>

#include "answers/changes.h"
#include "answers/lines.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/splitmix64.h"
#include "base/text.h"
#include "tools/run/found.h"
#include "tools/run/found_print.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr std::string_view kVerbs[] = {"run", "replay", "decode", "SIM:a311d", "capture", "x"};

// Each byte of texts of one to four bytes a letter changed, and each length of them.
TEST(Answers, OfTexts) {
  Hash printed, valid, near, cut;
  const auto ask = [&](const std::string& text) {
    printed.add(printable(text) + "|" + printable(text, true));
    valid.add(is_utf8(text) ? "yes" : "no");
    near.add(fmt::format("{}|{}", nearest(text, kVerbs), did_you_mean(text, kVerbs)));
    for (size_t most = 0; most <= text.size() + 1; ++most) cut.add(shortened(text, most));
  };
  for (const std::string text :
       {"replay --x",
        "d\xC3\xA9"
        "code\t\n",
        "\xE2\x82\xAC 5 run\x7F", "\xF0\x9F\x8D\xB3sim:a311",
        "\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"}) {
    ask(text);
    for (size_t at = 0; at < text.size(); ++at) {
      for (int byte = 0; byte < 256; byte += byte % 64 < 2 || byte % 64 > 60 ? 1 : 13) {
        std::string changed = text;
        changed[at] = static_cast<char>(byte);
        ask(changed);
      }
      ask(text.substr(0, at));
    }
  }
  for (const size_t letters : {0, 1, 2, 3, 199, 200, 201, 255, 256})
    near.add(nearest(std::string(letters, 'r'), std::array{std::string_view("rrrr"), std::string_view("rrr")}));
  for (size_t count = 0; count < 4; ++count) near.add(counted(count, "entry") + counted(count, "part"));
  expect_lines(kFile, "texts_of ",
               {{"texts_of people", fmt::format("printed {} valid {} near {} cut {} {}", printed.text(), valid.text(),
                                                near.text(), cut.count(), cut.text())}});
}

struct Form {
  tools::Task task;
  std::vector<ir::Shape> shapes;
};
const Form kForms[] = {{tools::Task::classes, {{1, 10}}},
                       {tools::Task::classes, {{1, 3}, {1, 1, 1, 7}}},
                       {tools::Task::ssd, {{1, 20, 4}, {1, 20}, {1, 20}, {1}}},
                       {tools::Task::ssd, {{1, 110}, {1, 110, 4}, {1}, {1, 110}}},
                       {tools::Task::yolov5, {{1, 378, 9}}},
                       {tools::Task::yolov5, {{1, 9, 378}}},
                       {tools::Task::yolov8, {{1, 7, 126}}},
                       {tools::Task::yolov8, {{1, 126, 7}}},
                       {tools::Task::yolov8, {{1, 7, 1200}}},
                       {tools::Task::nms, {{1, 30, 6}}},
                       {tools::Task::mask, {{1, 12, 13, 4}}},
                       {tools::Task::mask, {{1, 12, 13}}},
                       {tools::Task::pose, {{1, 1, 17, 3}}},
                       {tools::Task::pose, {{1, 6, 56}}}};

class Results {
 public:
  explicit Results(const Form& form, ir::DType dtype) : form_(form) {
    graph_.inputs = {graph_.add_tensor({.name = "picture", .dtype = ir::DType::uint8, .shape = {1, 64, 96, 3}})};
    for (const ir::Shape& shape : form.shapes) {
      ir::Tensor tensor{.name = fmt::format("out{}", graph_.outputs.size()), .dtype = dtype, .shape = shape};
      if (dtype == ir::DType::uint8) tensor.quant = {.scales = {1.0F / 128}, .zero_points = {3}};
      graph_.outputs.push_back(graph_.add_tensor(std::move(tensor)));
    }
  }

  void ask(uint64_t seed, float largest, Hash& hash) {
    SplitMix64 random(seed);
    std::vector<Bytes> outputs;
    for (const ir::TensorId id : graph_.outputs) {
      outputs.emplace_back(static_cast<size_t>(graph_.tensor(id).bytes()));
      if (graph_.tensor(id).dtype == ir::DType::uint8)
        for (uint8_t& byte : outputs.back()) byte = static_cast<uint8_t>(random.next() % 160);
      for (size_t at = 0; graph_.tensor(id).dtype == ir::DType::float32 && at < outputs.back().size(); at += 4)
        store_le(outputs.back().data() + at, static_cast<float>(random.next() % 1024) / 1024 * largest);
    }
    for (const std::optional<double> threshold : {std::optional<double>(), {0.0}, {0.25}, {0.9}}) {
      const tools::FindOptions options{.labels = {"cat", "dog", "egg"}, .threshold = threshold, .top = 4};
      const auto found = tools::find(form_.task, graph_, outputs, options);
      hash.add(found.ok() ? tools::print_found(*found) + tools::found_json(*found).dump() + tools::summary(*found)
                          : found.error().message);
    }
  }
  std::string forms() const {
    const auto task = tools::recognise(graph_);
    std::string out = fmt::format("{} {}", task ? tools::kTaskNames[static_cast<size_t>(*task)] : "-",
                                  tools::class_count(form_.task, graph_).value_or(-1));
    for (const tools::Task one : tools::possible(graph_)) out += fmt::format(" {}", static_cast<int>(one));
    for (size_t labels = 0; labels < 12; ++labels) out += tools::misfit_of_labels(form_.task, graph_, labels);
    return out + tools::why_nothing_is_drawn(graph_, "--task") + (tools::gives_scores(graph_, 0) ? "scores" : "");
  }

 private:
  const Form& form_;
  ir::Graph graph_;
};

TEST(Answers, OfFoundThings) {
  const log::ScopedLevel quiet(log::Level::error);
  Lines now;
  for (const Form& form : kForms) {
    std::string name(tools::kTaskNames[static_cast<size_t>(form.task)]);
    for (const ir::Shape& shape : form.shapes) name += " " + shape.to_string();
    for (const ir::DType dtype : {ir::DType::float32, ir::DType::uint8}) {
      Results results(form, dtype);
      Hash hash;
      hash.add(results.forms());
      for (uint64_t seed = 1; seed <= 3; ++seed)
        for (const float largest : {1.0F, 2.0F, 20.0F, 96.0F}) results.ask(seed, largest, hash);
      now[fmt::format("found {} {}", name, ir::dtype_name(dtype))] = hash.text();
    }
  }
  expect_lines(kFile, "found ", now);
}

}  // namespace
}  // namespace skillet::answers
