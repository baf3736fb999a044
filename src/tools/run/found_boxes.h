// Boxes from the outputs of detectors: SSD after its PostProcess operation, and the heads of YOLO v5 and v8.
// Called by found.cpp.
// Must not know: how boxes are drawn.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tools/run/found.h"

namespace skillet::tools {

// Places in Graph::outputs.
struct SsdOutputs {
  size_t boxes = 0, classes = 0, scores = 0, count = 0;
  bool is_told = true;  // which is which, by an operation; else by their shapes, and their values
};
// Nothing where the outputs are not of that form.
std::optional<SsdOutputs> ssd_outputs(const ir::Graph& graph);
Result<std::vector<Detection>> find_ssd(SsdOutputs ssd, const ir::Graph& graph, std::span<const Bytes> outputs,
                                        const FindOptions& options);

// One output of a network with non-maximum suppression (YOLO v10; exports "with NMS"): 1 x n x (left, top, right,
// bottom, score, class), in parts of the picture or in pixels.
bool is_nms(const ir::Graph& graph);
Result<std::vector<Detection>> find_nms(const ir::Graph& graph, std::span<const Bytes> outputs,
                                        const FindOptions& options);

// Of the three grids that a YOLO network of this input has; 0: it has no picture.
int64_t yolo_cells(const ir::Graph& graph);
struct YoloOutput {
  size_t output = 0;  // in Graph::outputs
  int64_t candidates = 0, classes = 0;
  bool candidates_last = false;  // 1 x numbers x candidates
  bool has_objectness = false;   // v5
};
// `any_count`: else there must be as many candidates as cells of strides 8, 16 and 32 (three each, v5) fit the input.
// Nothing for other tasks.
std::optional<YoloOutput> yolo_output(const ir::Graph& graph, Task task, bool any_count);
Result<std::vector<Detection>> find_yolo(const YoloOutput& yolo, const ir::Graph& graph, std::span<const Bytes> outputs,
                                         const FindOptions& options);

}  // namespace skillet::tools
