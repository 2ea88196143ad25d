// Priors of hyperparameters. Every parameter theta is positive and is sampled as phi = log theta,
// so a density here is that of phi: the one of theta times the Jacobian theta.
//   gamma(a, b)           shape a, rate b
//   inverse-gamma(a, b)   shape a, scale b
//   log-normal(m, s)      phi is normal with mean m and standard deviation s
//   half-normal(s)        |normal| with mean 0 and standard deviation s
//   log-uniform(l, u)     phi is uniform between log l and log u
// A flat prior is refused. It is improper, and the likelihood does not mend that: for lengthscales
// that grow without bound the likelihood tends to a constant that is not zero, so the posterior has
// no finite integral.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mercer/core/registry.hpp"
#include "mercer/core/rng.hpp"

MERCER_API_BEGIN
namespace mercer::training {

/// A family of priors with two parameters at most, a and b.
struct PriorInfo {
  std::string_view name;
  std::string_view summary;  // for --help and docs
  int parameters = 2;
  /// What is wrong with these parameters; empty when nothing is.
  std::string (*fault)(double a, double b);
  /// Of phi, and its derivative.
  double (*log_density)(double phi, double a, double b);
  double (*slope)(double phi, double a, double b);
  /// Of theta.
  double (*quantile)(double p, double a, double b);
  double (*mean)(double a, double b);      // infinite where it does not exist
  double (*variance)(double a, double b);  // the same
  bool bounded = false;                    // theta lies between a and b
};
Registry<PriorInfo>& priors();
/// One line for each, for help pages.
std::string describe_priors();

/// The prior of one parameter. A value.
class Prior {
 public:
  /// "gamma(2, 2)". Throws InvalidArgument.
  static Prior parse(std::string_view text);

  /// Log density of phi = log theta; minus infinity where it is zero.
  double log_density(double phi) const { return info_->log_density(phi, a_, b_); }
  double slope(double phi) const { return info_->slope(phi, a_, b_); }
  /// Of theta.
  double quantile(double p) const { return info_->quantile(p, a_, b_); }
  double draw(Rng& rng) const { return quantile(rng.uniform()); }
  std::optional<double> mean() const;
  std::optional<double> sd() const;
  /// Least and largest phi, where there are any.
  std::optional<std::pair<double, double>> bounds() const;
  /// As it is parsed.
  std::string text() const;

 private:
  Prior(const PriorInfo& info, double a, double b) : info_(&info), a_(a), b_(b) {}
  const PriorInfo* info_;
  double a_, b_;
};

/// Of every parameter that no option names, on standardised data.
inline constexpr std::string_view kDefaultPrior = "gamma(2,2)";

/// The joint prior: independent ones, in the order of the parameters.
class JointPrior {
 public:
  /// `given`: parts of "NAME=FAMILY(..)" or several of these with commas, in any division. A name
  /// without its [..] is that of all its lengthscales, and one without its term ("rbf_1.") that of
  /// all terms. Throws InvalidArgument.
  JointPrior(std::vector<std::string> names, const std::vector<std::string>& given);

  Index size() const { return static_cast<Index>(priors_.size()); }
  const Prior& of(Index i) const { return priors_[static_cast<std::size_t>(i)]; }
  const std::vector<std::string>& names() const { return names_; }
  /// Of phi; the gradient is added to.
  double log_density(ConstVectorView phi) const;
  void add_gradient(ConstVectorView phi, VectorView gradient) const;
  /// Whether no option names the prior of this parameter.
  bool is_default(Index i) const { return default_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<std::string> names_;
  std::vector<Prior> priors_;
  std::vector<bool> default_;
};

}  // namespace mercer::training
MERCER_API_END
