#include "mercer/kernels/registry.hpp"

#include <fmt/format.h>

#include <array>

#include "mercer/core/error.hpp"

namespace mercer::kernels {
namespace {

constexpr std::array<LeafInfo, 9> kAll = {{
    {LeafKind::rbf, "rbf", Family::distance, true, "", 0, false, "exp(-r^2/2), smooth"},
    {LeafKind::matern12, "matern12", Family::distance, true, "", 0, false, "exp(-r), rough"},
    {LeafKind::matern32, "matern32", Family::distance, true, "", 0, false,
     "(1+a) exp(-a), a = sqrt(3) r, once differentiable"},
    {LeafKind::matern52, "matern52", Family::distance, true, "", 0, false,
     "(1+a+a^2/3) exp(-a), a = sqrt(5) r, twice differentiable"},
    {LeafKind::rq, "rq", Family::distance, true, "alpha", 1.0, false,
     "(1 + r^2/(2 alpha))^-alpha, a mixture of rbf lengthscales"},
    {LeafKind::periodic, "periodic", Family::distance, true, "period", 1.0, false,
     "exp(-2 sum_c sin^2(pi (x_c-x'_c)/period) / l_c^2)"},
    {LeafKind::linear, "linear", Family::dot, true, "", 0, false,
     "sum_c x_c x'_c / l_c^2 (linear:iso: x'x')"},
    {LeafKind::poly, "poly", Family::dot, true, "offset", 1.0, true,
     "(sum_c x_c x'_c / l_c^2 + offset)^degree, written poly:2"},
    {LeafKind::constant, "constant", Family::constant, false, "", 0, false, "1 everywhere"},
}};

}  // namespace

std::span<const LeafInfo> kernels_registry() { return kAll; }

const LeafInfo& leaf_info(LeafKind kind) {
  for (const auto& info : kAll)
    if (info.kind == kind) return info;
  throw Error("kernel registry: unknown kind");
}

const LeafInfo& leaf_info(std::string_view name) {
  for (const auto& info : kAll)
    if (info.name == name) return info;
  std::string names;
  for (const auto& info : kAll) names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  throw InvalidArgument(fmt::format("unknown kernel '{}'; there are: {}", name, names));
}

}  // namespace mercer::kernels
