// What the readers of files and texts report for inputs with one change, and what they read from those they accept. See
// graphs_test.cpp.
#include <algorithm>
#include <filesystem>

#include "answers/changes.h"
#include "answers/lines.h"
#include "answers/reports.h"
#include "answers/small_graph.h"
#include "base/log.h"
#include "capture/capture.h"
#include "compile/build_id.h"
#include "compile/compile.h"
#include "compile/tuning_file.h"
#include "frontend/onnx/import.h"
#include "graph/import/import.h"
#include "npu/driver.h"
#include "program/testing/repaired.h"
#include "runtime/compiled_model.h"
#include "runtime/proof_report.h"
#include "runtime/record_program.h"
#include "runtime/testing/repaired.h"
#include "runtime/trust.h"
#include "tools/jobs/edit_text.h"
#include "tools/tensors/exif.h"
#include "tools/tensors/tensor_file.h"
#include "tools/tensors/zip_file.h"
#include "tools/time/layer_file.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
std::string_view text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
Bytes in_folder(const std::string& path) { return read_file(in_tree(path)).value(); }

// Reads a file: returns the error message, or a text of the contents.
using Reader = std::function<std::string(const Bytes&)>;

template <typename T>
std::string said(const Result<T>& read, const std::function<std::string(const T&)>& print) {
  return read.ok() ? print(*read) : read.error().message;
}

class Line {
 public:
  explicit Line(Reader reader) : reader_(std::move(reader)) {}

  // Changes about `most` places of the file.
  void add(const Bytes& file, size_t most = 400) {
    hash_.add(reader_(file));
    each_change(file, std::max<size_t>(file.size() / most, 1), [&](const Bytes& one) { hash_.add(reader_(one)); });
  }
  void add_text(const std::string& text) {
    static constexpr std::string_view kValues[] = {"true", "false", "null"};
    static constexpr Words kWords[] = {kValues};
    add(bytes_of(text), text.size());
    TextChanges(text, kWords).each([&](const std::string& one) { hash_.add(reader_(bytes_of(one))); });
  }
  std::string text() const { return fmt::format("changes {} said {}", hash_.count(), hash_.text()); }

 private:
  Reader reader_;
  Hash hash_;
};

npu::Program program_for(const char* name, const ir::Graph& graph) {
  const npu::Chip chip = npu::find_chip(name).value();
  return npu::driver_of(chip).value()->compile(chip, graph, {.unproven = npu::Unproven::take}).value();
}
capture::Capture capture_for(const char* chip, const ir::Graph& graph) {
  return runtime::record_programs(chip, {{program_for(chip, graph), &graph, {}}}).value().capture;
}
std::string print_graph(const ir::Graph& graph) { return ir::print(graph); }

TEST(Answers, OfModelFilesWithOneByteChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  Line tflite([](const Bytes& file) { return said<ir::Graph>(tflite::import(file, "m"), print_graph); });
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(in_tree("tests/conformance/models/kernels")))
    files.push_back(entry.path());
  std::ranges::sort(files);
  for (size_t i = 0; i < files.size(); i += 17) tflite.add(read_file(files[i]).value(), 250);

  Line onnx([](const Bytes& file) { return said<ir::Graph>(onnx::import(file, "m"), print_graph); });
  files.clear();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(in_tree("tests/models/onnx")))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const std::string& file : files) onnx.add(read_file(file).value(), 500);
  expect_lines(kFile, "model ", {{"model tflite", tflite.text()}, {"model onnx", onnx.text()}});
}

TEST(Answers, OfArraysWithOneByteChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  Line line([](const Bytes& file) {
    const auto members = tools::zip_members(file);
    if (!members.ok()) return members.error().message;
    std::string out;
    for (const tools::ZipMember& one : *members) {
      const auto npy = tools::unpack(one, 1 << 16);
      out += fmt::format("{} {} {}\n", one.name, one.size_bytes, npy.ok() ? "fine" : npy.error().message);
      if (!npy.ok()) continue;
      for (const auto& [type, dims] :
           {std::pair(ir::DType::float32, std::vector<int32_t>{1, 10}), {ir::DType::uint8, {1, 1, 28, 28}}}) {
        ir::Tensor tensor{.name = "t", .dtype = type, .shape = {}, .quant = {}, .data = {}};
        tensor.shape.dims = dims;
        const auto read = tools::parse_npy(*npy, tensor);
        out += read.ok() ? fmt::format("{} bytes\n", read->size()) : read.error().message;
      }
    }
    return out;
  });
  for (const char* name : {"lenet_in", "lenet_out", "shapes_in"})
    line.add(in_folder(fmt::format("tests/models/onnx/{}.npz", name)));
  expect_lines(kFile, "arrays", {{"arrays", line.text()}});
}

// A JPEG or PNG with an orientation tag; `is_long`: a chunk of more than 64 KiB precedes the tag.
Bytes turned_picture(bool is_jpeg, bool is_big_endian, bool is_long) {
  const auto number = [&](uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * (is_big_endian ? bytes - 1 - i : i));
    return out;
  };
  const std::string tiff = std::string(is_big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) +
                           number(0x0100, 2) + number(3, 2) + number(1, 4) + number(5, 2) + number(0, 2) +
                           number(0x0112, 2) + number(is_long ? 4 : 3, 2) + number(1, 4) + number(6, is_long ? 4 : 2) +
                           (is_long ? "" : number(0, 2)) + number(0, 4);
  const auto big = [](uint32_t value, int bytes) {
    std::string out;
    for (int i = bytes; i-- > 0;) out += static_cast<char>(value >> 8 * i);
    return out;
  };
  if (is_jpeg)
    return bytes_of("\xFF\xD8\xFF\xE0" + big(4, 2) + "ab\xFF\xE1" + big(static_cast<uint32_t>(tiff.size()) + 8, 2) +
                    std::string("Exif\0\0", 6) + tiff + "\xFF\xDA");
  return bytes_of("\x89PNG\r\n\x1a\n" + big(0x10203, 4) + "abcd" + std::string(0x10203 + 4, 'x') +
                  big(static_cast<uint32_t>(tiff.size()), 4) + "eXIf" + tiff + "sums");
}

TEST(Answers, OfTurnedPicturesWithOneByteChanged) {
  Line line([](const Bytes& file) { return std::to_string(tools::exif_orientation(file)); });
  for (const bool is_jpeg : {true, false}) {
    for (const bool is_big_endian : {true, false}) {
      for (const bool is_long : {true, false}) {
        const Bytes file = turned_picture(is_jpeg, is_big_endian, is_long);
        EXPECT_EQ(tools::exif_orientation(file), 6) << is_jpeg << is_big_endian << is_long;
        line.add(file);
      }
    }
  }
  expect_lines(kFile, "turned", {{"turned pictures", line.text()}});
}

// Overwrites the build's ID in the model, which differs after each change of the compiler's sources.
Bytes of_any_build(Bytes model) {
  const std::string_view build = compile::build_id();
  const auto found = std::search(model.begin(), model.end(), build.begin(), build.end());
  EXPECT_NE(found, model.end());
  if (found != model.end()) std::fill_n(found, build.size(), uint8_t{'b'});
  return runtime::repaired(std::move(model));
}

TEST(Answers, OfProgramFilesWithOneByteChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  const ir::Graph graph = small_graph();
  Line programs([](const Bytes& file) {
    const bool has_header = file.size() >= npu::testing::kHeaderBytes;
    std::string out = npu::deserialise(file).ok() ? "" : npu::deserialise(file).error().message;
    if (has_header)
      out += said<npu::Program>(npu::deserialise(npu::testing::repaired(file)),
                                [](const npu::Program& one) { return npu::print(one); });
    return out;
  });
  Line models([](const Bytes& file) {
    const bool has_header = file.size() >= runtime::kHeaderBytes;
    const auto read = runtime::read_compiled(has_header ? runtime::repaired(file) : file);
    return said<runtime::CompiledModel>(
        read, [](const auto& one) { return one.note + one.options + one.chips() + ir::print(one.graph); });
  });
  for (const char* chip : {"a311d", "rk3588", "imx93"}) {
    const npu::Program program = program_for(chip, graph);
    programs.add(npu::serialise(program, false).value(), 500);
    runtime::CompiledModel model{.graph = graph, .note = "a note", .options = "tuning=proven"};
    models.add(of_any_build(runtime::save_compiled(model).value()), 500);
  }
  expect_lines(kFile, "program ", {{"program file", programs.text()}, {"program models", models.text()}});
}

TEST(Answers, OfCapturesWithOneByteChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  const ir::Graph graph = small_graph();
  Line files([](const Bytes& file) {
    return said<capture::Capture>(capture::parse(file), [](const capture::Capture& one) {
      std::string out = capture::print(one.device);
      for (const capture::Submission& submission : one.submissions) {
        out += fmt::format("\n{} jobs", submission.jobs.size());
        for (const capture::BufferSnapshot& b : submission.buffers)
          out += fmt::format(" {}:{:x}+{} {}{}{}{}{}", b.handle, b.address, b.size_bytes, b.read, b.write, b.listed,
                             b.bytes.size(), b.holds_input);
      }
      return out;
    });
  });
  Line texts([](const Bytes& text) {
    const auto parsed = tools::parse_edit_text(text_of(text), "");
    if (!parsed.ok()) return parsed.error().message;
    const auto file = capture::serialise(*parsed);
    return file.ok() ? fmt::format("{:x}", XXH3_64bits(file->data(), file->size())) : file.error().message;
  });
  for (const char* chip : {"a311d", "rk3588", "imx93"}) {
    capture::Capture capture = capture_for(chip, graph);
    if (capture.device.compatible.empty() && chip[0] == 'a') capture.device.compatible = "vivante,gc";
    files.add(capture::serialise(capture).value(), 500);
    capture::Reader reader = capture::Reader::of(capture);
    texts.add(bytes_of(tools::edit_text(reader, "").value()), 150);
  }
  expect_lines(kFile, "capture ", {{"capture file", files.text()}, {"capture text", texts.text()}});
}

TEST(Answers, OfTextsWithOneThingChanged) {
  const log::ScopedLevel quiet(log::Level::error);
  Line trust([](const Bytes& text) {
    return said<runtime::TrustFile>(runtime::parse_trust_file(text_of(text)),
                                    [](const auto& one) { return print(one); });
  });
  trust.add_text(print(trust_file()));
  Line proofs([](const Bytes& text) {
    return said<runtime::ProofReport>(runtime::parse_proof_report(text_of(text)),
                                      [](const auto& one) { return print(one); });
  });
  proofs.add_text(print(proof_report()));
  Line tunings([](const Bytes& text) {
    return said<compile::TuningFile>(compile::parse_tuning_file(text_of(text)),
                                     [](const auto& one) { return print(one); });
  });
  tunings.add_text(print(tuning_file()));
  Line layers([](const Bytes& text) {
    const auto read = tools::parse_layers(text_of(text), "x");
    return read.ok() ? fmt::format("{} layers", read->layers.size()) : read.error().message;
  });
  layers.add_text(
      "id,name,op,inputs,in_h,in_w,in_c,out_h,out_w,out_c,kh,kw,sh,sw,dh,dw,act,weight_elems\n"
      "0,in,input,,8,8,3,8,8,3,0,0,1,1,1,1,none,0\n1,c,conv,0,8,8,3,4,4,16,3,3,2,2,1,1,relu6,432\n");
  expect_lines(kFile, "text ",
               {{"text trust", trust.text()},
                {"text proof", proofs.text()},
                {"text tuning", tunings.text()},
                {"text layers", layers.text()}});
}

}  // namespace
}  // namespace skillet::answers
