// Sparse approximations over rows that are not in memory: one pass for the evidence and the
// posterior, a second one for the gradient; O(m^2 + m d) bytes and those of a few thousand rows.
//   The gradient cannot share the pass of the value: its weights of a row need B^-1, which the last
//   row completes. To sum derivatives of V D^-1 V' instead would take p times the flops and bytes.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "mercer/inference/inference.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// Hands all rows, on the scale of the model, block by block to `each`, in the same order at every
/// call. Rows that were merged within a block have their replicates there.
using RowPass = std::function<void(const std::function<void(const Observations& block)>& each)>;

/// A method of the registry with Abilities::streams, with these base points. An evaluation takes
/// one pass, with its gradient two; a posterior one. What the last evaluation and the best one
/// summed is kept: their gradients take one pass, their posterior none. Gradients in the base
/// points too where the method has them. Throws InvalidArgument when the method cannot.
std::unique_ptr<Inference> make_streamed(std::string_view method, const Problem& problem,
                                         RowPass pass, Matrix base);

}  // namespace mercer::inference
MERCER_API_END
