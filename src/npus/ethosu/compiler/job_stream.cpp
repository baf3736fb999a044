#include "npus/ethosu/compiler/job_stream.h"

#include "npus/ethosu/compiler/support.h"
#include "program/program.h"

namespace skillet::npus::ethosu {
namespace {

// For a register with a region number: returns `word` with the arena instead of fast memory.
uint32_t with_arena(uint32_t word) {
  switch (hw::code_of(word)) {
    case hw::IfmRegion::kAddress:
    case hw::Ifm2Region::kAddress:
    case hw::OfmRegion::kAddress:
    case hw::WeightRegion::kAddress:
    case hw::ScaleRegion::kAddress: break;
    case hw::Dma0SrcRegion::kAddress:
    case hw::Dma0DstRegion::kAddress:
      if (bits::read<hw::Dma0SrcRegion>(std::array{word & ~hw::kCodeMask, 0U}).internal) return word;
      break;
    default: return word;
  }
  constexpr uint32_t kShift = 16, kMask = (hw::kRegions - 1) << kShift;
  return (word & kMask) == kFastRegion << kShift ? (word & ~kMask) | kArenaRegion << kShift : word;
}

// True for weights or scales of the second core if their length is set but not their base.
template <typename Base, typename Length>
bool lacks_base(std::span<const uint32_t> stream) {
  for (size_t at = 0; at < stream.size();) {
    const uint32_t code = hw::code_of(stream[at]);
    if (code == Base::kAddress || code == Length::kAddress) return code == Length::kAddress;
    at += hw::words_of_code(code);
  }
  return false;
}

// True for a pool before which no scales of channels were set.
bool pools_without_scales(std::span<const uint32_t> stream) {
  for (size_t at = 0; at < stream.size();) {
    const uint32_t code = hw::code_of(stream[at]);
    if (code == hw::ScaleRegion::kAddress || code == hw::OpPool::kAddress) return code == hw::OpPool::kAddress;
    at += hw::words_of_code(code);
  }
  return false;
}

// Vela sets no base for weights without bytes, e.g. of the second core for a single channel. Pools of older Velas have
// scales of channels, which are not read. Linux's driver requires a base.
std::vector<uint32_t> with_bases(std::span<const uint32_t> stream) {
  std::vector<uint32_t> words;
  if (pools_without_scales(stream)) {
    add_command(words, hw::ScaleRegion{});
    add_command(words, hw::ScaleBase{});
    add_command(words, hw::ScaleLength{});
  }
  if (lacks_base<hw::Weight1Base, hw::Weight1Length>(stream)) add_command(words, hw::Weight1Base{});
  if (lacks_base<hw::Scale1Base, hw::Scale1Length>(stream)) add_command(words, hw::Scale1Base{});
  words.insert(words.end(), stream.begin(), stream.end());
  return words;
}

}  // namespace

void add_witness(std::vector<uint32_t>& words) {
  add_command(words, hw::OpKernelWait{});
  add_command(words, hw::OpDmaWait{});
  add_command(words, hw::Dma0SrcRegion{.region = kArenaRegion});
  add_command(words, hw::Dma0Src{});
  add_command(words, hw::Dma0DstRegion{.region = kWitnessRegion});
  add_command(words, hw::Dma0Dst{});
  add_command(words, hw::Dma0Len{.value = npu::kWitnessBytes});
  add_command(words, hw::OpDmaStart{});
  add_command(words, hw::OpDmaWait{});
}

Result<JobStream> job_stream_of(const ir::Graph& graph, const ir::Op& op) {
  SK_TRY_ASSIGN(const Payload payload, read_payload(graph.tensor(op.inputs[kCommands]).data));
  const auto generation = payload.config.product == hw::ConfigProduct::u85 ? hw::Generation::u85 : hw::Generation::u5x;
  const std::vector<uint32_t> stream = with_bases(payload.stream);
  SK_TRY_ASSIGN(const hw::StreamNeeds vela, hw::needs_of(stream, generation));
  if (vela.writes[kConstantsRegion]) return error(ErrorCode::malformed, "it writes its constants");
  for (uint32_t region = kFastRegion + 1; region < hw::kRegions; ++region) {
    if (vela.bytes[region] != 0)
      return error(ErrorCode::malformed, "it uses region {}, for which the file has no data", region);
  }
  JobStream made;
  const bool is_fast_in_arena = op.inputs[kFast] == op.inputs[kArena];
  for (size_t at = 0; at + 1 < stream.size();) {
    const uint32_t code = hw::code_of(stream[at]), count = hw::words_of_code(code);
    made.operations += code >= hw::OpConv::kAddress && code < hw::OpDmaStart::kAddress ? 1 : 0;
    made.words.push_back(is_fast_in_arena ? with_arena(stream[at]) : stream[at]);
    if (count == 2) made.words.push_back(stream[at + 1]);
    at += count;
  }
  add_witness(made.words);
  made.words.push_back(stream.back());
  SK_TRY_ASSIGN(made.needs, hw::needs_of(made.words, generation));
  return made;
}

}  // namespace skillet::npus::ethosu
