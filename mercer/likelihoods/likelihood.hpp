// How an observation y follows from the latent function f at its point: any density that factorises
// over the points. Inference needs log p(y | f) and its derivatives in f, and predictions are
// averages over a Gaussian belief about f. One likelihood is one file; registry.cpp lists them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/registry.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::likelihoods {

/// log p(y | f) and its first three derivatives in f.
struct LogDensity {
  double value = 0, first = 0, second = 0, third = 0;
};

/// W of Newton's method and of Laplace's approximation, and its derivative in f. Never negative.
struct Curvature {
  double value = 0, slope = 0;
};

/// Derivatives in one log parameter of the likelihood, y and f held.
struct ParameterSlope {
  double value = 0;      // of log p(y | f)
  double first = 0;      // of its first derivative in f
  double curvature = 0;  // of W
};

/// y, when f is normal.
struct Predictive {
  double mean = 0, variance = 0;
};

class CoupledLikelihood;

class Likelihood {
 public:
  virtual ~Likelihood() = default;
  virtual std::unique_ptr<Likelihood> clone() const = 0;
  /// As the user types it, with what is fixed: "poisson", "student-t:df=4". make() reads it back.
  virtual std::string text() const = 0;
  /// True: y says whether a row belongs to a class, coded 0 and 1, and the predictive mean is the
  /// probability that it does.
  virtual bool is_binary() const { return false; }
  /// Itself when an observation depends on all latent functions of its row (softmax); null when it
  /// depends on one, as what follows supposes. See coupled_likelihood.hpp.
  virtual const CoupledLikelihood* coupled() const { return nullptr; }
  /// The variance of the noise when y is f plus normal noise, so that inference is exact; unset for
  /// every other likelihood.
  virtual std::optional<double> gaussian_noise() const { return {}; }
  /// True: -log p is convex in f for every y, so that the mode is unique.
  virtual bool log_concave() const { return true; }
  /// True: y may be standardised (shifted and scaled) before learning.
  virtual bool scalable() const { return false; }
  /// Why y cannot be observed ("must be a count: 0, 1, 2, ..."); empty when it can.
  virtual std::string fault(double y) const = 0;
  /// A constant to add to f so that the data's typical y are likely at f = 0.
  virtual double offset(ConstVectorView /*y*/) const { return 0; }

  virtual LogDensity log_density(double y, double f) const = 0;
  /// The observed information -d^2 log p/df^2, unless that may be negative: then the expected one.
  virtual Curvature curvature(double y, double f) const;

  /// Parameters of the likelihood itself, in logs.
  virtual std::vector<std::string> parameter_names() const { return {}; }
  virtual Vector log_parameters() const { return {}; }
  virtual void set_log_parameters(ConstVectorView theta);
  /// One entry per parameter.
  virtual void parameter_slopes(double y, double f, std::span<ParameterSlope> out) const;

  /// Of f ~ N(mean, variance): log of the average density of y; mean and variance of y;
  /// P(Y <= y). By quadrature to about 1e-12 unless there is a closed form.
  virtual double log_predictive(double y, double mean, double variance) const;
  virtual Predictive predictive(double mean, double variance) const;
  virtual double predictive_cdf(double y, double mean, double variance) const;
  /// The smallest y with P(Y <= y) >= p, 0 < p < 1.
  virtual double predictive_quantile(double p, double mean, double variance) const = 0;

 protected:
  virtual Predictive moments(double f) const = 0;    // of y given f
  virtual double cdf(double y, double f) const = 0;  // P(Y <= y | f)
};

/// A name with what it fixes, e.g. "student-t:df=7". Throws InvalidArgument that lists the names.
std::unique_ptr<Likelihood> make(std::string_view text);

struct LikelihoodInfo {
  std::string_view name;
  std::string_view summary;  // for --help and docs
  /// `options`: what follows the name and its colon, empty when nothing does.
  std::unique_ptr<Likelihood> (*make)(std::string_view options);
};
Registry<LikelihoodInfo>& likelihoods();

}  // namespace mercer::likelihoods
MERCER_API_END
