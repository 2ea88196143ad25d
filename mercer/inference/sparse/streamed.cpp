#include "mercer/inference/sparse/streamed.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {

std::unique_ptr<Inference> make_streamed(std::string_view method, const Problem& problem,
                                         RowPass pass, Matrix base) {
  const auto& entry = methods().find(method);
  if (!entry.abilities.streams)
    throw InvalidArgument(
        fmt::format("the inference method {} does not learn from rows in passes", entry.name));
  if (const auto why = sparse_needs_gaussian_noise(problem, {}); !why.empty())
    throw InvalidArgument(
        fmt::format("inference by {}, in passes over the rows: {}", entry.name, why));
  check_base(base, problem.kernel.num_inputs());
  for (const auto& known : {srm_method(), dtc_method(), vfe_method(), fitc_method()})
    if (known.name == method) return make_reduced_stream(known, std::move(pass), std::move(base));
  throw InvalidArgument(fmt::format("the inference method {} has no form in passes", entry.name));
}

}  // namespace mercer::inference
