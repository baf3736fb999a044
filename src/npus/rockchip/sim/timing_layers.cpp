// Layers without weights, as the vendor's compiler maps them: an addition goes into the convolution before it, a
// concatenation into its producers, which write in place; features go through the CBUF in slices of rows.
#include <algorithm>
#include <map>
#include <set>

#include "npus/rockchip/sim/timing.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int64_t kPackedChannelsMax = 4;

bool is_dense(const Layer& layer) { return layer.op == "conv" || layer.op == "fc"; }
bool is_free(const Layer& layer) {
  return layer.op == "input" || layer.op == "output" || layer.op == "reshape" || layer.op == "quantize" ||
         layer.op == "dequantize";
}

class Mapping {
 public:
  Mapping(const TimingParameters& parameters, std::span<const Layer> layers, Fusion fusion)
      : parameters_(parameters), rates_(rates_of(parameters)), layers_(layers), fusion_(fusion) {
    for (const Layer& layer : layers) {
      by_id_[layer.id] = &layer;
      for (const int id : layer.inputs) ++uses_[id];
    }
    if (fusion == Fusion::network) fuse_additions();
    limit_memory();
  }

  std::vector<Cost> price_all() const {
    std::vector<Cost> costs;
    for (const Layer& layer : layers_) {
      const bool merged = is_free(layer) || layer.op == "concat" || vanished_.contains(layer.id);
      if (merged && fusion_ == Fusion::network) continue;
      costs.push_back(price(rates_, work(layer), layer.op));
      costs.back().id = layer.id;
    }
    return costs;
  }

 private:
  // The addition goes into the later of its producers that is a convolution and has no other reader.
  void fuse_additions() {
    for (const Layer& layer : layers_) {
      if (layer.op != "add") continue;
      const Layer* into = nullptr;
      for (const int id : layer.inputs) {
        const auto from = by_id_.find(id);
        if (from == by_id_.end() || from->second->op != "conv" || uses_[id] != 1) continue;
        if (into == nullptr || id > into->id) into = from->second;
      }
      if (into == nullptr || !reads_second_.insert(into->id).second) continue;
      vanished_.insert(layer.id);
    }
  }

  // Boards differ in memory and memory clock. A table with the estimator's cycles shows the highest rate of its board.
  void limit_memory() {
    std::vector<double> rates;
    for (const Layer& layer : layers_) {
      if (layer.op != "conv" || layer.memory_cycles == 0) continue;
      const Work once = work(layer);
      rates.push_back((once.read_bytes + once.written_bytes) / static_cast<double>(layer.memory_cycles));
    }
    if (rates.empty()) return;
    const auto middle = rates.begin() + static_cast<ptrdiff_t>(rates.size() / 2);
    std::nth_element(rates.begin(), middle, rates.end());
    rates_.dram_gbps = std::min(rates_.dram_gbps, *middle * rates_.clock_ghz);
  }

  int64_t bytes(const Layer& layer, int64_t pixels, int64_t channels) const {
    const auto atom_bytes = static_cast<int64_t>(parameters_.get("atom_bytes"));
    return pixels * align_up(channels * (layer.fp16 ? 2 : 1), atom_bytes);
  }

  Work work(const Layer& layer) const {
    const int64_t in = bytes(layer, layer.in_h * layer.in_w, layer.in_c);
    const int64_t out = bytes(layer, layer.out_h * layer.out_w, layer.out_c);
    Work work{.read_bytes = static_cast<double>(in), .written_bytes = static_cast<double>(out)};
    if (is_dense(layer) || layer.op == "dwconv" || layer.op == "convtranspose") convolve(layer, work);
    if (layer.op == "reshape") return {};
    if (layer.op == "maxpool" || layer.op == "avgpool") work.pooled_bytes = static_cast<double>(in);
    if (layer.op == "transpose") work.transposed_bytes = static_cast<double>(in + out);
    // A multiplier is small as a rule: a factor for each channel.
    if (layer.op == "add" && (layer.inputs.size() > 1 || fusion_ == Fusion::alone))
      work.read_bytes += static_cast<double>(in), work.second_bytes = static_cast<double>(in);
    if (layer.fused_add || reads_second_.contains(layer.id)) work.read_bytes += static_cast<double>(out);
    if (layer.act == "swish" || layer.act == "sigmoid")
      work.table_elements = static_cast<double>(table_elements(layer.out_h * layer.out_w, layer.out_c));
    return work;
  }

  Lanes lanes(const Layer& layer) const { return layer.fp16 ? rates_.lanes.halved() : rates_.lanes; }
  static int64_t element_bytes(const Layer& layer) { return layer.fp16 ? 2 : 1; }

  void convolve(const Layer& layer, Work& work) const {
    const Lanes lanes = this->lanes(layer);
    const bool connected = layer.op == "fc", spread = layer.op == "convtranspose";
    const bool packed = layer.op == "conv" && layer.in_c <= kPackedChannelsMax && !layer.fp16;
    Window window{.pixels = connected ? 1 : layer.out_h * layer.out_w,
                  .channels = connected ? layer.in_elements() : layer.in_c,
                  .kernels = layer.out_c,
                  .rows = connected ? 1 : layer.kh,
                  .columns = connected ? 1 : layer.kw,
                  .depthwise = layer.op == "dwconv" || spread,
                  .packed = packed};
    if (spread) window.pixels = layer.in_h * layer.in_w;
    // Dilated taps are fetched as if they were dense: the window is longer in one direction.
    if (window.depthwise && layer.dilation > 1 && parameters_.get("depthwise_spans_dilation") > 0)
      window.rows = (layer.kh - 1) * layer.dilation + 1;
    work.conv_cycles = static_cast<double>(conv_cycles(lanes, window));
    const int64_t taps = connected ? 1 : layer.kh * layer.kw;
    const int64_t weights = element_bytes(layer) * taps *
                            (window.depthwise ? align_up(layer.out_c, lanes.depthwise)
                                              : align_up(layer.out_c, lanes.kernels) *
                                                    (packed ? layer.in_c : align_up(window.channels, kPixelsAtOnce)));
    const int64_t row = packed ? layer.in_w * layer.in_c : bytes(layer, layer.in_w, layer.in_c);
    // Depthwise filters are sliced by channels, if at all, so nothing is read twice.
    const Slices slices = connected || window.depthwise
                              ? Slices{layer.in_h, 1}
                              : slices_of(static_cast<int64_t>(parameters_.get("cbuf_banks")), row, weights, layer.in_h,
                                          layer.out_h, window.rows, std::max<int64_t>(layer.stride, 1));
    work.loaded_bytes = static_cast<double>(row) * static_cast<double>(slices.rows);
    work.read_bytes += work.loaded_bytes + static_cast<double>(weights) * static_cast<double>(slices.weight_reads) -
                       static_cast<double>(bytes(layer, layer.in_h * layer.in_w, layer.in_c));
  }

  const TimingParameters& parameters_;
  Rates rates_;
  std::span<const Layer> layers_;
  Fusion fusion_;
  std::map<int, const Layer*> by_id_;
  std::map<int, int> uses_;
  std::set<int> vanished_, reads_second_;
};

}  // namespace

Result<std::vector<Cost>> price_layers(const TimingParameters& parameters, std::span<const Layer> layers,
                                       Fusion fusion) {
  return Mapping(parameters, layers, fusion).price_all();
}

}  // namespace skillet::sim::rockchip
