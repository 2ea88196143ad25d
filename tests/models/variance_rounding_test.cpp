// The bound on the standard deviations against dense algebra in long double (64 bits of mantissa),
// on problems whose condition number eats most of the digits of double.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "mercer/core/rng.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/models/fit.hpp"

namespace mercer::models {
namespace variance_rounding_test {

using Real = long double;
using RealMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
using RealVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

enum class Shape { rbf, matern32 };

Real kernel_value(Shape shape, Real variance, Real lengthscale, const RealVector& difference) {
  const Real r = difference.norm() / lengthscale;
  if (shape == Shape::rbf) return variance * std::exp(-r * r / 2);
  const Real s = std::sqrt(Real{3}) * r;
  return variance * (1 + s) * std::exp(-s);
}

RealMatrix kernel_matrix(Shape shape, Real variance, Real lengthscale, const Matrix& a,
                         const Matrix& b) {
  RealMatrix k(a.rows(), b.rows());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < b.rows(); ++j) {
      const RealVector difference = a.row(i).cast<Real>() - b.row(j).cast<Real>();
      k(i, j) = kernel_value(shape, variance, lengthscale, difference);
    }
  return k;
}

// Posterior standard deviations of f, universal kriging, target units.
Vector exact_sd(const KernelMachine& model, Shape shape, const Matrix& at) {
  const auto& kernel = model.problem.kernel;
  const Real variance = std::exp(Real{kernel.log_parameters()(0)});
  const Real lengthscale = std::exp(Real{kernel.log_parameters()(1)});
  Matrix xs = at;
  model.scaling.scale_inputs(xs);
  RealMatrix h = kernel_matrix(shape, variance, lengthscale, model.x, model.x);
  h.diagonal() += model.noise().vector(h.rows()).cast<Real>();
  const RealMatrix ks = kernel_matrix(shape, variance, lengthscale, model.x, xs);
  const Eigen::LLT<RealMatrix> llt(h);
  const RealMatrix v = llt.matrixL().solve(ks);
  RealVector latent =
      RealVector::Constant(at.rows(), variance) - v.colwise().squaredNorm().transpose();
  const RealMatrix a = model.problem.basis(model.x).cast<Real>();
  if (a.cols() > 0) {
    const RealMatrix ha = llt.solve(a);
    const RealMatrix m = a.transpose() * ha;
    const RealMatrix q = model.problem.basis(xs).cast<Real>().transpose() - ha.transpose() * ks;
    const RealMatrix mq = m.llt().solve(q);
    latent += (q.array() * mq.array()).colwise().sum().matrix().transpose();
  }
  return (latent.cwiseMax(Real{0}).cwiseSqrt() * Real{model.scaling.target_sd}).cast<double>();
}

struct Case {
  Shape shape;
  Index n;
  double lengthscale, noise;
  const char* mean;
  const char* solver;
};

class SdErrorBound : public ::testing::TestWithParam<Case> {};

TEST_P(SdErrorBound, HoldsAgainstLongDouble) {
  const Case c = GetParam();
  const auto sample = data::scattered_field(c.n, 0.05, 3);
  const auto data = data::make_dataset(sample.inputs, sample.target);
  FitOptions options;
  options.method.kernel = c.shape == Shape::rbf ? "rbf:iso" : "matern32:iso";
  options.method.lengthscale = {c.lengthscale};
  options.method.signal_variance = 1.5;
  options.method.noise = c.noise;
  options.method.mean = c.mean;
  options.train.train = "none";
  const auto model = fit(data, options).model;
  Rng rng(4, "rounding-test");
  Matrix at = 1.4 * data::uniform_points(50, 2, rng).array() - 0.2;  // some outside the data
  at.topRows(10) = sample.inputs.topRows(10);                        // some on it

  PredictOptions predict_options;
  predict_options.solver = c.solver;
  const auto p = Predictor(model, predict_options).predict(at);

  const double error = (p.latent_sd - exact_sd(model, c.shape, at)).cwiseAbs().maxCoeff();
  EXPECT_LE(error, *p.sd_error_bound);
  EXPECT_GT(*p.sd_error_bound, 0);
  // Useful as well: on ordinary problems far below any noise.
  if (c.noise >= 1e-2) {
    EXPECT_LE(*p.sd_error_bound, 1e-3 * std::sqrt(c.noise));
  }
  // And with little noise, where rounding of a factor alone would leave nothing, by refinement.
  if (c.noise >= 1e-10) {
    EXPECT_LE(*p.sd_error_bound, 0.1 * std::sqrt(c.noise));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Problems, SdErrorBound,
    ::testing::Values(Case{Shape::rbf, 60, 1.0, 1e-2, "zero", "cholesky"},
                      Case{Shape::rbf, 300, 3.0, 1e-6, "zero", "cholesky"},
                      Case{Shape::rbf, 300, 3.0, 1e-10, "zero", "cholesky"},
                      Case{Shape::rbf, 120, 30.0, 1e-12, "zero", "cholesky"},
                      Case{Shape::matern32, 300, 1.0, 1e-2, "constant", "cholesky"},
                      Case{Shape::matern32, 300, 10.0, 1e-10, "linear", "cholesky"},
                      Case{Shape::matern32, 120, 1e3, 1e-12, "constant", "cholesky"},
                      Case{Shape::matern32, 300, 1.0, 1e-2, "linear", "cg"},
                      Case{Shape::rbf, 120, 3.0, 1e-4, "zero", "cg"}));

}  // namespace variance_rounding_test
}  // namespace mercer::models
