// The register commands of the pooling unit, in the order of the vendor's compiler. Specification of the RK3576,
// section 8.
#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/commands.h"
#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

namespace r = hw::rk3576;

constexpr int32_t kSmallest = -128, kReciprocalOne = 65536;

// Rows or columns of the image that windows reach.
uint32_t consumed(int32_t size, int32_t outputs, int32_t stride, int32_t kernel, int32_t before) {
  return u(std::min(size, (outputs - 1) * stride + kernel - before));
}
class Writer {
 public:
  Writer(const Pool& pool, const PoolPlaces& at)
      : p_(pool),
        at_(at),
        in_width_(consumed(pool.in.width, pool.out.width, pool.stride_x, pool.kernel_width, pool.pad_left)),
        in_height_(consumed(pool.in.height, pool.out.height, pool.stride_y, pool.kernel_height, pool.pad_top)),
        right_(behind(pool.out.width, pool.stride_x, pool.kernel_width, pool.pad_left, pool.in.width)),
        bottom_(behind(pool.out.height, pool.stride_y, pool.kernel_height, pool.pad_top, pool.in.height)) {}

  Result<Commands> run() {
    list_.put(hw::PpuSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    list_.put(hw::PpuRdmaSPointer{.pointer_pp_en = true, .executer_pp_en = true, .pointer_pp_mode = 1});
    cube();
    window();
    output();
    reader();
    list_.command(hw::Target::none, 0, 0);
    list_.put(hw::PcRegisterAmounts{});
    list_.start({.ppu = true, .ppu_rdma = true});
    return list_.take();
  }

 private:
  uint32_t lanes() const { return u(align_up(p_.in.channels, kAtom)); }
  bool skips_pads() const { return !p_.maximum && (p_.pad_top > 0 || p_.pad_left > 0 || right_ > 0 || bottom_ > 0); }
  int32_t pad_value(int32_t times) const {
    if (p_.maximum) return kSmallest;
    return skips_pads() ? 0 : times * (p_.input_zero - kZeroPoint);
  }

  void cube() {
    list_.put(hw::PpuDataCubeInWidth{.cube_in_width = in_width_});
    list_.put(hw::PpuDataCubeInHeight{.cube_in_height = in_height_});
    list_.put(hw::PpuDataCubeInChannel{.cube_in_channel = lanes()});
    list_.put(hw::PpuDataCubeOutWidth{.cube_out_width = u(p_.out.width)});
    list_.put(hw::PpuDataCubeOutHeight{.cube_out_height = u(p_.out.height)});
    list_.put(hw::PpuDataCubeOutChannel{.cube_out_channel = lanes()});
  }

  void window() {
    list_.put(r::PpuOperationModeCfg{.pooling_method = p_.maximum ? hw::Pooling::max : hw::Pooling::average,
                                     .skips_pads = skips_pads(),
                                     .flying_mode = hw::PoolingSource::memory});
    list_.put(hw::PpuPoolingKernelCfg{.kernel_width = u(p_.kernel_width),
                                      .kernel_height = u(p_.kernel_height),
                                      .kernel_stride_width = u(p_.stride_x),
                                      .kernel_stride_height = u(p_.stride_y)});
    const auto reciprocal = [&](int32_t size) { return p_.maximum ? 0 : u(kReciprocalOne / size); };
    list_.put(hw::PpuRecipKernelWidth{.recip_kernel_width = reciprocal(p_.kernel_width)});
    list_.put(hw::PpuRecipKernelHeight{.recip_kernel_height = reciprocal(p_.kernel_height)});
    list_.put(hw::PpuPoolingPaddingCfg{
        .pad_left = u(p_.pad_left), .pad_top = u(p_.pad_top), .pad_right = right_, .pad_bottom = bottom_});
    list_.put(r::PpuPadValue1{.pad_value = pad_value(1)});
    list_.put(r::PpuPadValue2{.pad_value = pad_value(2)});
    list_.put(r::PpuPadValue3{.pad_value = pad_value(3)});
    list_.put(r::PpuPadValue4{.pad_value = pad_value(4)});
    list_.zeros<r::PpuZero6054, r::PpuZero6058, r::PpuZero605C>();
  }

  void output() {
    const uint32_t surface = u(in_fours(p_.out.pixels()) * kAtom);
    list_.put(hw::PpuDstBaseAddr{.dst_base_addr = at_.output});
    list_.put(hw::PpuDstSurfStride{.dst_surf_stride = surface});
    list_.put(hw::PpuDataFormat{.index_add = surface});
    list_.put(hw::PpuMiscCtrl{});
  }

  void reader() {
    list_.put(hw::PpuRdmaCubeInWidth{.cube_in_width = in_width_});
    list_.put(hw::PpuRdmaCubeInHeight{.cube_in_height = in_height_});
    list_.put(hw::PpuRdmaCubeInChannel{.cube_in_channel = lanes()});
    list_.put(hw::PpuRdmaSrcBaseAddr{.src_base_addr = at_.input});
    list_.put(hw::PpuRdmaSrcLineStride{.src_line_stride = u(int64_t{p_.in.width} * kAtom)});
    list_.put(hw::PpuRdmaSrcSurfStride{.src_surf_stride = u(in_fours(p_.in.pixels()) * kAtom)});
    list_.put(r::PpuRdmaDataFormat{.always = true});
  }

  const Pool& p_;
  const PoolPlaces& at_;
  const uint32_t in_width_, in_height_, right_, bottom_;
  CommandList list_;
};

}  // namespace

Result<Commands> write_pool(const Pool& pool, const PoolPlaces& at) { return Writer(pool, at).run(); }

}  // namespace skillet::npus::rockchip::rk3576
