// Reads boxes from the outputs of detectors: SSD with its PostProcess operation, and the heads of YOLO v5 and v8.
// Called by found.cpp.
// Must not know: drawing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tools/run/found.h"

namespace skillet::tools {

// Indices in Graph::outputs.
struct SsdOutputs {
  size_t boxes = 0, classes = 0, scores = 0, count = 0;
  bool is_told = true;  // roles are known from an operation; else guessed from shapes and values
};
// None if the outputs have another form.
std::optional<SsdOutputs> ssd_outputs(const ir::Graph& graph);
Result<std::vector<Detection>> find_ssd(SsdOutputs ssd, const ir::Graph& graph, std::span<const Bytes> outputs,
                                        const FindOptions& options);

// One output of a network with non-maximum suppression (YOLO v10; exports "with NMS"): 1 x n x (left, top, right,
// bottom, score, class), in parts of the picture or in pixels.
bool is_nms(const ir::Graph& graph);
Result<std::vector<Detection>> find_nms(const ir::Graph& graph, std::span<const Bytes> outputs,
                                        const FindOptions& options);

// Number of cells of the three grids of a YOLO network with this input; 0: the input is no picture.
int64_t yolo_cells(const ir::Graph& graph);
struct YoloOutput {
  size_t output = 0;  // index in Graph::outputs
  int64_t candidates = 0, classes = 0;
  bool candidates_last = false;  // 1 x numbers x candidates
  bool has_objectness = false;   // YOLO v5
};
// `any_count`: accepts any number of candidates; else it must be the number of cells of strides 8, 16 and 32 for the
// input (three per cell for v5). None for other tasks.
std::optional<YoloOutput> yolo_output(const ir::Graph& graph, Task task, bool any_count);
Result<std::vector<Detection>> find_yolo(const YoloOutput& yolo, const ir::Graph& graph, std::span<const Bytes> outputs,
                                         const FindOptions& options);

}  // namespace skillet::tools
