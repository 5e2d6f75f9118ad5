// What stands in for conjugate gradients on a device in a build without CUDA.
#include "cuda/conjugate_gradient.hpp"

namespace isofold::cuda {
namespace {

Status absent() {
  return {StatusCode::unsupported, "backend: this build of isofold has no CUDA executor (ISOFOLD_CUDA)", -1,
          -1};
}

}  // namespace

Status cg_start(const CgState&, const Executor&) { return absent(); }
Status cg_after_residual(const CgState&, bool, const Executor&) { return absent(); }
Status cg_move(const CgState&, const Executor&) { return absent(); }
Status cg_direct(const CgState&, const Executor&) { return absent(); }
Status cg_active(const CgState&, const Executor&, std::int64_t*) { return absent(); }
Status apply(const CompressedRows&, DataType, const void*, void*, const Executor&) { return absent(); }
Status apply(const Banded&, DataType, const void*, void*, const Executor&) { return absent(); }
Status apply(const BlockDiagonal&, DataType, const void*, void*, const Executor&) { return absent(); }
Status add_scaled(DataType, double, const void*, void*, std::int64_t, const Executor&) { return absent(); }
Status with_device_scratch(const Executor&, std::int64_t, const std::function<Status(void*)>&) {
  return absent();
}

}  // namespace isofold::cuda
