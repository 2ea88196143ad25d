// What a likelihood says about all N rows at given values of the C latent functions: log density,
// gradient and curvature, whether the functions are independent or coupled in a row.
#pragma once

#include <algorithm>

#include "mercer/inference/laplace/curvature_root.hpp"
#include "mercer/inference/observations.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// So many latent functions, and whether the likelihood couples them: what costs depend on.
struct FunctionCount {
  FunctionCount(Index functions, bool rows_coupled = false)  // NOLINT(google-explicit-constructor)
      : count(functions), coupled(rows_coupled) {}
  operator Index() const { return count; }  // NOLINT(google-explicit-constructor)
  Index count = 1;
  bool coupled = false;
};

/// Functions that are found together: one by one when they are independent, else all C.
struct FunctionGroups {
  FunctionGroups(const likelihoods::Likelihood& likelihood, Index functions)
      : coupled(likelihood.coupled()),
        count(coupled != nullptr ? 1 : functions),
        width(functions / std::max<Index>(count, 1)) {}
  const likelihoods::CoupledLikelihood* coupled;
  Index count, width;
  Curvature curvature(const Matrix& w) const { return {w, coupled != nullptr}; }
  // Sum over the functions of group j of the dots of their columns.
  double dot(const Matrix& a, const Matrix& b, Index j) const {
    double sum = a.col(j * width).dot(b.col(j * width));
    for (Index c = 1; c < width; ++c) sum += a.col(j * width + c).dot(b.col(j * width + c));
    return sum;
  }
  // The same of all groups.
  Vector dots(const Matrix& a, const Matrix& b) const {
    Vector out((a.array() * b.array()).colwise().sum());
    return width == 1 ? out : Vector(Vector::Constant(1, out.sum()));
  }
  auto of(Matrix& m, Index j) const { return m.middleCols(j * width, width); }
  auto of(const Matrix& m, Index j) const { return m.middleCols(j * width, width); }
};

/// Everything that depends on f, N x C.
struct LocalLikelihood {
  Vector log_density;  // of every group
  Matrix g, w;
  Matrix step_w;  // what Newton's method goes by: the observed curvature, where it is positive
};

LocalLikelihood likelihood_at(const likelihoods::Likelihood& likelihood, const Observations& data,
                              const Matrix& f);

/// The log density of group j alone, f being its functions.
double log_density(const likelihoods::Likelihood& likelihood, const Observations& data, Index j,
                   ConstMatrixView f);

/// The mean diagonal of W at f = offset, before any mode is known.
double mean_curvature(const likelihoods::Likelihood& likelihood, const Observations& data);

}  // namespace mercer::inference
MERCER_API_END
