// The inference methods that are a member of one family (sparse_sums.hpp): base points, Lambda, and
// what predictions need besides. Each has a file of its own that says which member it is.
#pragma once

#include <functional>
#include <string_view>

#include "mercer/inference/inference.hpp"
#include "mercer/inference/sparse/sparse_sums.hpp"
#include "mercer/inference/sparse/streamed.hpp"

namespace mercer::inference {

struct ReducedMethod {
  std::string_view name;
  SparseModel model;
  bool optimizes_base = false;
  /// Adds to the posterior what predictions need of the rows; null: nothing.
  void (*keep_rows)(const Problem& at, const Observations& rows, const BaseFactor& base,
                    const SparseSolution& solution, SparsePosterior& out) = nullptr;
};

/// The members, each in its own file.
ReducedMethod srm_method();
ReducedMethod dtc_method();
ReducedMethod vfe_method();
ReducedMethod fitc_method();

/// Why a method that needs Gaussian noise does not go with the problem; empty when it does.
std::string sparse_needs_gaussian_noise(const Problem& problem, const Observations& rows);

std::unique_ptr<Inference> make_reduced(const ReducedMethod& method, const InferenceSetup& setup);
/// Over rows in passes; Lambda must have no blocks, and keep_rows must be null.
std::unique_ptr<Inference> make_reduced_stream(const ReducedMethod& method, RowPass pass,
                                               Matrix base);

/// Cost of an evaluation with its gradient: sums, gradient and the base points.
EvaluationCost reduced_cost(const ReducedMethod& method, const CostSetting& setting);

/// Rows of a block of pitc and pic: at most so many, so that blocks cost no more than base points.
Index usual_block_rows(Index base_points);

/// What the sums gave. Throws DataError when the columns of the mean are dependent.
SparseSolution finish_posterior(SparseSums& sums);
SparseSolution posterior_solution(const std::function<SparseSolution()>& find);

/// A posterior with one function from what the sums gave, with beta and its weights on the base
/// points as a latent function, and the evidence.
Posterior sparse_result(const BaseFactor& base, const SparseSolution& solution,
                        std::shared_ptr<SparsePosterior> sparse);
/// The evidence of an approximation as it is reported.
LikelihoodValue sparse_evidence(std::string_view method, double value, Index rows);

/// Entries of a state, for save() and load(): base points, blocks.
void save_base(const Matrix& base, bool given, State& state);
void save_blocks(const approximations::Clusters& blocks, State& state);
Matrix load_base(const State& state, Index d, bool& given);
approximations::Clusters load_blocks(const State& state, Index rows);

}  // namespace mercer::inference
