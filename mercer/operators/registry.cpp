#include "mercer/operators/registry.hpp"

#include "mercer/operators/stored_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::operators {

Registry<OperatorInfo>& operators() {
  // clang-format off
  static Registry<OperatorInfo> all("operator", {
      tiled_info(),
      stored_info(),
  });
  // clang-format on
  return all;
}

const OperatorInfo& default_operator() { return operators().all().front(); }

std::string refusal(const OperatorInfo& info, const kernels::Kernel& kernel, Index n, Index d) {
  return info.refusal == nullptr ? "" : info.refusal(kernel, n, d);
}

std::unique_ptr<KernelOperator> make(std::string_view name, const kernels::Kernel& kernel,
                                     const Matrix& x, Precision precision) {
  const auto& info = operators().find(name);
  const auto reason = refusal(info, kernel, x.rows(), x.cols());
  if (!reason.empty()) throw InvalidArgument(fmt::format("{}: {}", name, reason));
  return info.make(kernel, x, precision);
}

}  // namespace mercer::operators
