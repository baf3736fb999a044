#include "drivers/rockchip/support.h"

namespace skillet::drivers::rockchip {

using driver::Support;

Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  if (!chip.has(hw::kRegisters3588))
    return Support::no("the {} packs its registers in a way of its own, which is not written yet", chip.title);
  return Support::no("no {} yet", ir::op_name(graph.op(id)));
}

}  // namespace skillet::drivers::rockchip
