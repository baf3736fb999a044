#include "call_table.h"

#include "kernels/ethosu/abi.h"
#include "kernels/etnaviv/abi.h"
#include "kernels/rocket/abi.h"

namespace skillet::kernel_test {
namespace {

namespace drm = kernels::drm;
namespace vivante = kernels::etnaviv;
namespace rocket = kernels::rocket;
namespace arm = kernels::ethosu;

#define FIELD(type, name, ...) \
  Field { #name, offsetof(type, name), sizeof(type::name), ##__VA_ARGS__ }

std::vector<CallRow> core_calls() {
  using enum Kind;
  std::vector<Field> words;
  static constexpr std::string_view kWords[] = {"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"};
  for (size_t i = 0; i < std::size(kWords); ++i) words.push_back({kWords[i], 4 * i, 4});
  return {
      {"version",
       drm::kVersion,
       {FIELD(drm::Version, version_major, out), FIELD(drm::Version, version_minor, out),
        FIELD(drm::Version, version_patch, out), FIELD(drm::Version, name_len, out), FIELD(drm::Version, name),
        FIELD(drm::Version, date_len, out), FIELD(drm::Version, date), FIELD(drm::Version, desc_len, out),
        FIELD(drm::Version, desc)}},
      {"get_unique", drm::kGetUnique, {FIELD(drm::Unique, unique_len, out), FIELD(drm::Unique, unique)}},
      {"get_magic", drm::kGetMagic, {FIELD(drm::Auth, magic, out)}},
      {"set_version",
       drm::kSetVersion,
       {FIELD(drm::SetVersion, di_major, out), FIELD(drm::SetVersion, di_minor, out),
        FIELD(drm::SetVersion, dd_major, out), FIELD(drm::SetVersion, dd_minor, out)}},
      {"get_cap", drm::kGetCap, {FIELD(drm::GetCap, capability), FIELD(drm::GetCap, value, out)}},
      {"gem_close", drm::kGemClose, {FIELD(drm::GemClose, handle), FIELD(drm::GemClose, pad)}},
      {"prime_handle_to_fd",
       drm::kPrimeHandleToFd,
       {FIELD(drm::PrimeHandle, handle), FIELD(drm::PrimeHandle, flags), FIELD(drm::PrimeHandle, fd, descriptor)}},
      {"prime_fd_to_handle",
       drm::kPrimeFdToHandle,
       {FIELD(drm::PrimeHandle, handle, out), FIELD(drm::PrimeHandle, flags), FIELD(drm::PrimeHandle, fd)}},
      {"number", _IOWR(drm::kType, 0, uint32_t[8]), words},
  };
}

std::vector<CallRow> etnaviv_calls() {
  using enum Kind;
  using namespace vivante;
  const auto time = [](size_t at) {
    return std::vector<Field>{{"sec", at + offsetof(Timespec, sec), 8}, {"nsec", at + offsetof(Timespec, nsec), 8}};
  };
  const auto with_time = [&](std::vector<Field> fields, size_t at) {
    for (const Field& one : time(at)) fields.push_back(one);
    return fields;
  };
  return {
      {"get_param", kGetParam, {FIELD(GetParam, pipe), FIELD(GetParam, param), FIELD(GetParam, value, out)}},
      {"gem_new", kGemNew, {FIELD(GemNew, size), FIELD(GemNew, flags), FIELD(GemNew, handle, out)}},
      {"gem_info", kGemInfo, {FIELD(GemInfo, handle), FIELD(GemInfo, pad), FIELD(GemInfo, offset, layout)}},
      {"gem_cpu_prep", kGemCpuPrep,
       with_time({FIELD(GemCpuPrep, handle), FIELD(GemCpuPrep, op)}, offsetof(GemCpuPrep, timeout))},
      {"gem_cpu_fini", kGemCpuFini, {FIELD(GemCpuFini, handle), FIELD(GemCpuFini, flags)}},
      {"submit",
       kGemSubmit,
       {FIELD(GemSubmit, fence, out), FIELD(GemSubmit, pipe), FIELD(GemSubmit, exec_state), FIELD(GemSubmit, nr_bos),
        FIELD(GemSubmit, nr_relocs), FIELD(GemSubmit, stream_size), FIELD(GemSubmit, bos), FIELD(GemSubmit, relocs),
        FIELD(GemSubmit, stream), FIELD(GemSubmit, flags), FIELD(GemSubmit, fence_fd, descriptor),
        FIELD(GemSubmit, pmrs), FIELD(GemSubmit, nr_pmrs), FIELD(GemSubmit, pad)}},
      {"wait_fence", kWaitFence,
       with_time({FIELD(WaitFence, pipe), FIELD(WaitFence, fence), FIELD(WaitFence, flags), FIELD(WaitFence, pad)},
                 offsetof(WaitFence, timeout))},
      {"gem_userptr",
       kGemUserptr,
       {FIELD(GemUserptr, user_ptr), FIELD(GemUserptr, user_size), FIELD(GemUserptr, flags),
        FIELD(GemUserptr, handle, out)}},
      {"gem_wait", kGemWait,
       with_time({FIELD(GemWait, pipe), FIELD(GemWait, handle), FIELD(GemWait, flags), FIELD(GemWait, pad)},
                 offsetof(GemWait, timeout))},
      {"pm_query_dom",
       kPmQueryDomain,
       {FIELD(PmDomain, pipe), FIELD(PmDomain, iter, out), FIELD(PmDomain, id, out), FIELD(PmDomain, signal_count, out),
        FIELD(PmDomain, name, Kind::name)}},
      {"pm_query_sig",
       kPmQuerySignal,
       {FIELD(PmSignal, pipe), FIELD(PmSignal, domain), FIELD(PmSignal, pad), FIELD(PmSignal, iter, out),
        FIELD(PmSignal, id, out), FIELD(PmSignal, name, Kind::name)}},
  };
}

std::vector<CallRow> rocket_calls() {
  using enum Kind;
  using namespace rocket;
  return {
      {"create_bo",
       kCreateBo,
       {FIELD(CreateBo, size), FIELD(CreateBo, handle, out), FIELD(CreateBo, dma_address, out),
        FIELD(CreateBo, offset, layout)}},
      {"submit",
       kSubmit,
       {FIELD(Submit, jobs), FIELD(Submit, job_count), FIELD(Submit, job_struct_size), FIELD(Submit, reserved)}},
      {"prep_bo", kPrepBo, {FIELD(PrepBo, handle), FIELD(PrepBo, reserved), FIELD(PrepBo, timeout_ns)}},
      {"fini_bo", kFiniBo, {FIELD(FiniBo, handle), FIELD(FiniBo, reserved)}},
  };
}

std::vector<CallRow> ethosu_calls() {
  using enum Kind;
  using namespace arm;
  return {
      {"dev_query", kDevQuery, {FIELD(DevQuery, type), FIELD(DevQuery, size, out), FIELD(DevQuery, pointer)}},
      {"bo_create", kBoCreate, {FIELD(BoCreate, size, out), FIELD(BoCreate, flags, out), FIELD(BoCreate, handle, out)}},
      {"bo_wait", kBoWait, {FIELD(BoWait, handle), FIELD(BoWait, pad), FIELD(BoWait, timeout_ns)}},
      {"bo_mmap_offset",
       kBoMmapOffset,
       {FIELD(BoMmapOffset, handle), FIELD(BoMmapOffset, pad), FIELD(BoMmapOffset, offset, layout)}},
      {"cmdstream_bo_create",
       kCmdstreamBoCreate,
       {FIELD(CmdstreamBoCreate, size), FIELD(CmdstreamBoCreate, flags, out), FIELD(CmdstreamBoCreate, data),
        FIELD(CmdstreamBoCreate, handle, out), FIELD(CmdstreamBoCreate, pad)}},
      {"submit", kSubmit, {FIELD(Submit, jobs), FIELD(Submit, job_count), FIELD(Submit, perfmon_id)}},
  };
}

#undef FIELD

}  // namespace

std::vector<CallRow> calls_of(std::string_view driver) {
  std::vector<CallRow> rows = core_calls();
  std::vector<CallRow> own;
  if (driver == vivante::kDriverName) own = etnaviv_calls();
  if (driver == rocket::kDriverName) own = rocket_calls();
  if (driver == arm::kDriverName) own = ethosu_calls();
  rows.insert(rows.end(), own.begin(), own.end());
  return rows;
}

}  // namespace skillet::kernel_test
