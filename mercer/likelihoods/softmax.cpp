#include "mercer/likelihoods/softmax.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/bernoulli_logit.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"
#include "mercer/likelihoods/detail/binary.hpp"
#include "mercer/likelihoods/detail/options.hpp"

namespace mercer::likelihoods {
namespace {

constexpr Index kMostByDraws = 20;  // classes
// Draws are pairs m + A z, m - A z: so many independent shifts of a lattice of so many points.
constexpr Index kShifts = 16, kPoints = 128;
constexpr std::uint64_t kSeed = 0x736f66746d6178;

// log sum exp(f) in two parts: the largest f, and what the others add to it.
struct LogSum {
  double top = 0, rest = 0;
};

// p = softmax(f).
LogSum softmax(ConstVectorView f, Vector& p) {
  const double top = f.maxCoeff();
  p = (f.array() - top).exp();
  const double sum = p.sum();
  p /= sum;
  return {top, std::log(sum)};
}

// z of a randomly shifted Kronecker lattice (Richtmyer 1951): frac(k sqrt(prime_c) + shift), mapped
// to normal numbers. Each point is uniform, so that the mean over every shift is unbiased, and the
// shifts are independent, so that their spread is the error. Row c belongs to class c, whatever
// their number; columns run over points, then shifts.
const Matrix& common_normals() {
  static const Matrix all = [] {
    constexpr std::array<int, kMostByDraws> primes = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29,
                                                      31, 37, 41, 43, 47, 53, 59, 61, 67, 71};
    const boost::math::normal normal;
    Matrix z(kMostByDraws, kShifts * kPoints);
    for (Index c = 0; c < kMostByDraws; ++c) {
      Rng rng(kSeed, "softmax", static_cast<std::uint64_t>(c));
      const double step = std::sqrt(static_cast<double>(primes[static_cast<std::size_t>(c)]));
      for (Index s = 0; s < kShifts; ++s) {
        const double shift = rng.uniform();
        for (Index k = 0; k < kPoints; ++k) {
          const double u = std::fmod(static_cast<double>(k) * step + shift, 1.0);
          z(c, s * kPoints + k) = boost::math::quantile(normal, std::clamp(u, 1e-12, 1 - 1e-12));
        }
      }
    }
    return z;
  }();
  return all;
}

class Softmax final : public CoupledLikelihood {
 public:
  std::unique_ptr<Likelihood> clone() const override { return std::make_unique<Softmax>(*this); }
  std::string text() const override { return "softmax"; }
  bool is_binary() const override { return true; }
  std::string fault(double y) const override { return detail::binary_fault(y); }

  double row_log_density(ConstVectorView y, ConstVectorView f) const override {
    Vector p;
    const auto sum = softmax(f, p);
    return (y.dot(f) - sum.top) - sum.rest;
  }

  double row_derivatives(ConstVectorView y, ConstVectorView f, VectorView g,
                         VectorView w) const override {
    Vector p;
    const auto sum = softmax(f, p);
    g = y - p;
    w = p;
    return (y.dot(f) - sum.top) - sum.rest;
  }

  // With dp/df_k = W e_k,
  //   dW/df_k = 1/2 (W e_k (e_k - p)' + (e_k - p) e_k'W) - p_k W,
  // so tr(Sigma dW/df_k) = E_kk - (E'p)_k - p_k tr(E).
  void curvature_slope(ConstVectorView f, ConstMatrixView e, VectorView out) const override {
    Vector p;
    softmax(f, p);
    out = e.diagonal() - e.transpose() * p - e.trace() * p;
  }

  ClassProbabilities class_probabilities(ConstVectorView mean,
                                         ConstMatrixView covariance) const override {
    if (covariance.rows() != mean.size() || covariance.cols() != mean.size())
      throw DimensionMismatch("softmax: rows of the covariance", covariance.rows(), "functions",
                              mean.size());
    if (covariance.isZero(0)) {
      ClassProbabilities known;
      softmax(mean, known.p);
      return known;
    }
    if (mean.size() == 2) return of_difference(mean, covariance);
    return mean.size() <= kMostByDraws ? by_draws(mean, covariance) : mean_field(mean, covariance);
  }

 private:
  // P(class 1) = E sigma(f_1 - f_0); the rarer one is computed, so that both keep their digits.
  static ClassProbabilities of_difference(ConstVectorView mean, ConstMatrixView covariance) {
    const double difference = mean(1) - mean(0);
    const double variance =
        std::max(0.0, covariance(0, 0) + covariance(1, 1) - covariance(0, 1) - covariance(1, 0));
    const auto logit = bernoulli_logit_info().make({});
    const Index rarer = difference > 0 ? 0 : 1;
    ClassProbabilities out{Vector(2)};
    out.p(rarer) = logit->predictive(-std::abs(difference), variance).mean;
    out.p(1 - rarer) = 1 - out.p(rarer);
    return out;
  }

  static ClassProbabilities by_draws(ConstVectorView mean, ConstMatrixView covariance) {
    const Index c = mean.size();
    // A A' = covariance, which may be singular; a negative pivot is rounding.
    const Eigen::LDLT<Matrix> ldlt(covariance);
    const Matrix lower = ldlt.matrixL();
    const Matrix scaled =
        lower * Vector(ldlt.vectorD().cwiseMax(0).cwiseSqrt()).asDiagonal().toDenseMatrix();
    const Matrix root = ldlt.transpositionsP().transpose() * scaled;
    const auto& z = common_normals();
    Vector total = Vector::Zero(c), squares = total, sum(c), step(c), up(c), down(c), centre(c);
    softmax(mean, centre);
    for (Index s = 0; s < kShifts; ++s) {
      sum.setZero();
      for (Index k = 0; k < kPoints; ++k) {
        step.noalias() = root * z.col(s * kPoints + k).head(c);
        softmax(mean + step, up);
        softmax(mean - step, down);
        // Differences from p at the mean: small variances keep their digits.
        sum += 0.5 * (up + down) - centre;
      }
      sum /= static_cast<double>(kPoints);
      total += sum;
      squares += sum.cwiseAbs2();
    }
    constexpr auto count = static_cast<double>(kShifts);
    const Vector shift = total / count;
    const Vector variance = (squares / count - shift.cwiseAbs2()).cwiseMax(0);
    const Vector average = (centre + shift).cwiseMax(0);
    return {average / average.sum(), std::sqrt(variance.maxCoeff() / (count - 1))};
  }

  // 1 / sum_d exp(-(m_c - m_d) / sqrt(1 + pi/8 var(f_c - f_d))), normalised.
  static ClassProbabilities mean_field(ConstVectorView mean, ConstMatrixView covariance) {
    const Index c = mean.size();
    ClassProbabilities out{Vector(c), std::nullopt};
    Vector logs(c);
    for (Index k = 0; k < c; ++k) {
      const Vector variance =
          (covariance.diagonal().array() + covariance(k, k) - 2 * covariance.col(k).array())
              .cwiseMax(0);
      logs = (mean.array() - mean(k)) / (1 + std::numbers::pi / 8 * variance.array()).sqrt();
      const double top = logs.maxCoeff();
      out.p(k) = -top - std::log((logs.array() - top).exp().sum());
    }
    const Vector unnormalised = out.p;
    softmax(unnormalised, out.p);
    return out;
  }
};

}  // namespace

LikelihoodInfo softmax_info() {
  return {.name = "softmax",
          .summary = "classes that compete, one latent function each",
          .make = [](std::string_view options) -> std::unique_ptr<Likelihood> {
            detail::refuse_options("softmax", options);
            return std::make_unique<Softmax>();
          }};
}

}  // namespace mercer::likelihoods
