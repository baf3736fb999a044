#include "sim_layers.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "graph/import/import.h"
#include "kernels/etnaviv/recorder/replay.h"
#include "npus/vivante/hw/vivante.h"
#include "sim_reference.h"

namespace skillet::golden {
namespace {

namespace hw = ::skillet::vivante::hw;
using kernels::etnaviv::Replay;

// The words of a stream from one NN job (exclusive) to the next (inclusive), with the TP jobs before it.
struct Piece {
  size_t submission = 0;
  std::vector<uint32_t> words;
  uint32_t first_job = 0, nn_job = 0;  // descriptor addresses
  bool first_is_nn = false;
};

std::vector<Piece> split_jobs(const capture::Capture& capture) {
  std::vector<Piece> pieces;
  for (size_t s = 0; s < capture.submissions.size(); ++s) {
    Piece piece{.submission = s};
    const auto words = capture::words_of(capture.submissions[s]);
    if (!words.ok()) continue;
    const std::span<const uint32_t> stream = *words;
    for (size_t i = 0; i + 1 < stream.size(); i += 2) {  // recorded packets are pairs of words
      piece.words.insert(piece.words.end(), {stream[i], stream[i + 1]});
      const bool nn = stream[i] == hw::load_state_word(hw::State::nn_instruction_address);
      const bool tp = stream[i] == hw::load_state_word(hw::State::tp_instruction_address);
      const uint32_t address = stream[i + 1] & ~uint32_t{63};
      if ((nn || tp) && piece.first_job == 0) {
        piece.first_job = address;
        piece.first_is_nn = nn;
      }
      if (!nn) continue;
      piece.nn_job = address;
      // Each piece runs as its own stream.
      piece.words.insert(piece.words.end(), {hw::load_state_word(hw::State::wait_event), 0});
      for (int flush = 0; flush < 2; ++flush)
        piece.words.insert(piece.words.end(), {hw::load_state_word(hw::State::flush_cache), hw::kFlushBatch});
      pieces.push_back(std::move(piece));
      piece = Piece{.submission = s};
    }
  }
  return pieces;
}

// Returns the pieces as submissions.
capture::Capture recorded_pieces(const capture::Capture& capture, const std::vector<Piece>& pieces) {
  capture::Capture out{.device = capture.device, .submissions = {}};
  for (const Piece& piece : pieces) {
    out.submissions.push_back(
        {.jobs = capture::one_list(piece.words), .buffers = capture.submissions[piece.submission].buffers});
  }
  keep_results(out);
  return out;
}

template <typename T>
Result<T> read_instruction(Replay& memory, uint32_t address, uint32_t words) {
  SK_TRY_ASSIGN(const auto bytes, memory.at(address, words * 4));
  std::vector<uint32_t> raw(words);
  std::memcpy(raw.data(), bytes.data(), bytes.size());
  return bits::unpack<T>(raw).fields;
}

Result<uint64_t> input_address(Replay& memory, const Piece& piece) {
  if (piece.first_is_nn) {
    SK_TRY_ASSIGN(const auto nn, read_instruction<hw::NnInstruction>(memory, piece.first_job, hw::kNnInstructionWords));
    return nn.in_address.offset;
  }
  SK_TRY_ASSIGN(const auto tp, read_instruction<hw::TpInstruction>(memory, piece.first_job, hw::kTpInstructionWords));
  return tp.in_base_address.offset;
}

// Inside the chip, signed tensors are unsigned: 128 is added.
Bytes flipped(const ir::Tensor& tensor, Bytes bytes) {
  if (tensor.dtype == ir::DType::int8) std::for_each(bytes.begin(), bytes.end(), [](uint8_t& byte) { byte ^= 0x80; });
  return bytes;
}

// Returns the NN job's output in the model's layout; `planar`: the bytes are planes of the op's output tensor.
Result<Bytes> read_output(Replay& memory, const Piece& piece, const ir::Tensor& tensor, bool planar_bytes) {
  SK_TRY_ASSIGN(const auto nn, read_instruction<hw::NnInstruction>(memory, piece.nn_job, hw::kNnInstructionWords));
  SK_TRY_ASSIGN(const auto at, memory.at(nn.out_address.offset, static_cast<uint64_t>(tensor.bytes())));
  const Bytes planar(at.begin(), at.end());
  if (!planar_bytes) return flipped(tensor, planar);
  const auto channels = static_cast<size_t>(tensor.shape.back(0));
  const size_t pixels = planar.size() / channels;
  Bytes nhwc(planar.size());
  for (size_t p = 0; p < pixels; ++p) {
    for (size_t c = 0; c < channels; ++c) nhwc[p * channels + c] = planar[c * pixels + p];
  }
  return flipped(tensor, std::move(nhwc));
}

// Returns whether the recorded driver takes the op: additions, and convolutions with one scale for the whole filter.
bool is_layer(const ir::Graph& graph, const ir::Op& op) {
  if (op.kind == ir::OpKind::add) return true;
  if (op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d) return false;
  return graph.tensor(op.inputs[1]).quant.scales.size() == 1;
}

class LayerReplay {
 public:
  LayerReplay(const ReplayCase& c, const ir::Graph& graph, const std::vector<Piece>& pieces,
              const capture::Capture& capture, Replay& device)
      : case_(c), graph_(graph), pieces_(pieces), capture_(capture), device_(device), reference_(graph) {}

  Result<std::vector<ReplayRow>> run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) reference_.value(graph_.inputs[i]) = case_.golden.inputs[i].bytes;
    for (size_t op = 0; op < graph_.ops.size(); ++op) {
      const auto id = static_cast<ir::OpId>(op);
      auto done = is_layer(graph_, graph_.op(id)) && next_ < pieces_.size() ? layer(id) : reference_.run(id);
      SK_TRY(std::move(done).with_context(ir::describe_op(graph_, id)));
    }
    if (next_ != pieces_.size())
      return error(ErrorCode::malformed, "{} NN jobs, but only {} layers", pieces_.size(), next_);
    SK_TRY(whole_network());
    return std::move(rows_);
  }

 private:
  // Compares the outputs after all simulated layers with the recording.
  Result<void> whole_network() {
    SK_TRY_ASSIGN(const std::vector<Bytes> expected, expected_outputs(case_));
    std::vector<Bytes> simulated;
    for (const ir::TensorId output : graph_.outputs) simulated.push_back(reference_.value(output));
    rows_.push_back(compare_outputs(case_, simulated, expected));
    return {};
  }

  Result<void> layer(ir::OpId id) {
    const Piece& piece = pieces_[next_];
    SK_TRY(device_.place(capture_.submissions[next_]));
    if (next_ == 0 || pieces_[next_ - 1].submission != piece.submission) SK_TRY(start_submission(piece, id));
    ++next_;
    const auto start = std::chrono::steady_clock::now();
    SK_TRY(device_.run_placed());
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    const ir::TensorId output = graph_.op(id).outputs[0];
    SK_TRY_ASSIGN(Bytes simulated, read_output(device_, piece, graph_.tensor(output), planar_));
    SK_TRY(reference_.run(id));
    rows_.push_back(compare_bytes(fmt::format("{}:{}", case_.name(), id), simulated, reference_.value(output),
                                  graph_.tensor(output).dtype == ir::DType::int8));
    rows_.back().reason = ir::op_name(graph_.op(id));
    rows_.back().simulated_ms = time.count();
    reference_.value(output) = std::move(simulated);
    return {};
  }

  // The first job of a submission reads the layer's input in the model's layout; the operands of an addition are
  // contiguous. All jobs use NHWC unless the submission begins with a transpose.
  Result<void> start_submission(const Piece& piece, ir::OpId id) {
    const ir::Op& op = graph_.op(id);
    SK_TRY_ASSIGN(uint64_t address, input_address(device_, piece));
    planar_ = !piece.first_is_nn;
    for (size_t i = 0; i < (op.kind == ir::OpKind::add ? 2 : 1); ++i) {
      const Bytes bytes = flipped(graph_.tensor(op.inputs[i]), reference_.value(op.inputs[i]));
      SK_TRY_ASSIGN(const auto to, device_.at(address, bytes.size()));
      std::ranges::copy(bytes, to.begin());
      address += bytes.size();
    }
    return {};
  }

  const ReplayCase& case_;
  const ir::Graph& graph_;
  const std::vector<Piece>& pieces_;
  const capture::Capture& capture_;  // the pieces as submissions
  Replay& device_;
  LayerReference reference_;
  size_t next_ = 0;
  bool planar_ = false;
  std::vector<ReplayRow> rows_;
};

}  // namespace

ReplayRow compare_bytes(std::string name, std::span<const uint8_t> simulated, std::span<const uint8_t> expected,
                        bool is_signed) {
  ReplayRow row{.name = std::move(name), .elements = static_cast<int64_t>(expected.size())};
  if (simulated.size() != expected.size()) {
    row.reason = fmt::format("{} bytes, the reference has {}", simulated.size(), expected.size());
    row.result = ReplayClass::fault;
    return row;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const int a = is_signed ? static_cast<int8_t>(simulated[i]) : simulated[i];
    const int b = is_signed ? static_cast<int8_t>(expected[i]) : expected[i];
    row.max_difference = std::max(row.max_difference, std::abs(a - b));
    row.differing += a != b;
  }
  row.output_hash = XXH64(simulated.data(), simulated.size(), 0);
  row.result = row.differing == 0        ? ReplayClass::exact
               : row.max_difference == 1 ? ReplayClass::within_1
                                         : ReplayClass::worse;
  return row;
}

uint64_t hash_of(const std::vector<Bytes>& outputs) {
  uint64_t hash = 0;
  for (const Bytes& one : outputs) hash = XXH64(one.data(), one.size(), hash);
  return hash;
}

ReplayRow compare_outputs(const ReplayCase& c, const std::vector<Bytes>& simulated,
                          const std::vector<Bytes>& expected) {
  ReplayRow all{.name = c.name(), .result = ReplayClass::exact, .output_hash = hash_of(simulated)};
  for (size_t i = 0; i < simulated.size(); ++i) {
    const ReplayRow one = compare_bytes(c.name(), simulated[i], expected[i], c.golden.outputs[i].type == "INT8");
    all.elements += one.elements;
    all.differing += one.differing;
    all.max_difference = std::max(all.max_difference, one.max_difference);
    if (one.result > all.result) all.result = one.result;
    if (!one.reason.empty()) all.reason = one.reason;
  }
  return all;
}

void keep_results(capture::Capture& capture) {
  std::set<std::pair<uint32_t, uint64_t>> placed;
  for (capture::Submission& submission : capture.submissions) {
    for (capture::BufferSnapshot& one : submission.buffers) {
      if (!one.listed || placed.emplace(one.handle, one.address).second) continue;
      one.content = capture::Content::unknown;
      one.bytes = {};
    }
  }
}

Result<std::vector<ReplayRow>> simulate_layers(const ReplayCase& c, const capture::Capture& capture,
                                               const fake::SimulatedCore& core) {
  SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(c.golden.model_path));
  if (graph.inputs.size() != c.golden.inputs.size())
    return error(ErrorCode::malformed, "inputs of case.json and model differ");
  const std::vector<Piece> pieces = split_jobs(capture);
  const capture::Capture as_submissions = recorded_pieces(capture, pieces);
  SK_TRY_ASSIGN(Replay device, Replay::create(core.core, core.calls));
  return LayerReplay(c, graph, pieces, as_submissions, device).run();
}

}  // namespace skillet::golden
