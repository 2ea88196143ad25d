#include "mercer/likelihoods/student_t.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <charconv>
#include <cmath>
#include <numbers>

#include "mercer/likelihoods/detail/options.hpp"
#include "mercer/likelihoods/detail/quadrature.hpp"
#include "mercer/likelihoods/detail/special.hpp"

namespace mercer::likelihoods {
namespace {

constexpr double kDefaultDf = 4;
constexpr double kStartScale = 0.3;

// Averages over f ~ N(0, variance) without a narrow density in the integrand. Student's t is normal
// given its precision: with x the log of a Gamma(k, k) variable, k = df/2, y given x is normal with
// variance V(x) = variance + scale^2 exp(-x). The integral over x is smooth whatever the ratio of
// scale and variance.
class PrecisionMixture {
 public:
  /// At y = `error` from the mean.
  PrecisionMixture(double df, double scale, double variance, double error)
      : k_(0.5 * df), square_(scale * scale), variance_(variance), error_(error) {
    // Beyond these ends less than exp(-45) of the integral is left. With g = exp(x) - 1 - x the
    // density of x falls as exp(-k g); g >= t^2/(2 + t) at x = -t, g >= x^2/2 at x > 0.
    const double c = (45 + 0.5 * error * error / (variance_ + square_)) / k_;
    const double steep = 0.5 * (c + std::sqrt(c * (c + 8)));
    // Once scale^2 exp(-x) is the largest of variances and error^2, the rest falls as exp(k x).
    const double flat = std::log(std::max({error * error, variance_, square_}) / square_) + 45 / k_;
    range_ = {-std::min(steep, flat), std::sqrt(2 * 60 / k_)};
    step_ = std::min(0.25, 0.5 / std::sqrt(k_));
  }

  /// log of the density of y.
  double log_density() const {
    const auto log_g = [&](double x) {
      const double v = total(x);
      return log_weight(x) - 0.5 * (detail::log_2pi + std::log(v) + error_ * error_ / v);
    };
    double top = log_g(0);  // there may be two peaks: near 0 and where V(x) = error^2
    for (double x = range_.lower; x < range_.upper; x += step_) top = std::max(top, log_g(x));
    return top + std::log(integral([&](double x) { return std::exp(log_g(x) - top); }));
  }

  /// P(Y <= mean + error), for an error that is not positive.
  double lower_tail() const {
    return integral([&](double x) {
      return std::exp(log_weight(x)) * detail::normal_cdf(error_ / std::sqrt(total(x)));
    });
  }

 private:
  double total(double x) const { return variance_ + square_ * std::exp(-x); }
  double log_weight(double x) const { return -k_ * (std::expm1(x) - x); }
  template <class G>
  double integral(const G& g) const {
    return detail::trapezoid(g, range_, step_) * std::sqrt(k_ / (2 * std::numbers::pi)) *
           std::exp(-detail::stirling_error(k_));
  }

  double k_, square_, variance_, error_, step_ = 0;
  detail::Interval range_;
};

class StudentT final : public Likelihood {
 public:
  explicit StudentT(double df)
      : df_(df),
        // Gamma((df + 1)/2) / (Gamma(df/2) sqrt(pi df))
        constant_(-std::log(boost::math::tgamma_delta_ratio(0.5 * df, 0.5, detail::Policy())) -
                  0.5 * std::log(std::numbers::pi * df)) {}

  std::unique_ptr<Likelihood> clone() const override { return std::make_unique<StudentT>(*this); }
  std::string text() const override { return fmt::format("student-t:df={}", df_); }
  bool log_concave() const override { return false; }
  bool scalable() const override { return true; }
  std::string fault(double y) const override { return std::isfinite(y) ? "" : "must be finite"; }
  /// The median, which outliers do not move.
  double offset(ConstVectorView y) const override {
    if (y.size() == 0) return 0;
    std::vector<double> sorted(y.begin(), y.end());
    std::sort(sorted.begin(), sorted.end());
    const auto half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
  }

  // With t = (y - f) / (scale sqrt(df)) and w = 1 / (1 + t^2).
  LogDensity log_density(double y, double f) const override {
    const double unit = scale_ * std::sqrt(df_), t = (y - f) / unit, w = 1 / (1 + t * t);
    const double n = df_ + 1;
    return {constant_ - log_scale_ - 0.5 * n * std::log1p(t * t), n * t * w / unit,
            n * (t * t - 1) * w * w / (unit * unit),
            2 * n * t * (t * t - 3) * w * w * w / (unit * unit * unit)};
  }
  Curvature curvature(double /*y*/, double /*f*/) const override {
    return {(df_ + 1) / ((df_ + 3) * scale_ * scale_), 0};
  }

  std::vector<std::string> parameter_names() const override { return {"scale"}; }
  Vector log_parameters() const override { return Vector::Constant(1, log_scale_); }
  void set_log_parameters(ConstVectorView theta) override {
    scale_ = detail::only_parameter("student-t", theta);
    log_scale_ = theta(0);
  }
  void parameter_slopes(double y, double f, std::span<ParameterSlope> out) const override {
    detail::check_one_slope("student-t", out.size());
    const double unit = scale_ * std::sqrt(df_), t = (y - f) / unit, w = 1 / (1 + t * t);
    out[0].value = (df_ + 1) * t * t * w - 1;
    out[0].first = -2 * (df_ + 1) * t * w * w / unit;
    out[0].curvature = -2 * curvature(y, f).value;
  }

  double log_predictive(double y, double mean, double variance) const override {
    if (variance == 0) return log_density(y, mean).value;
    return PrecisionMixture(df_, scale_, variance, y - mean).log_density();
  }
  Predictive predictive(double mean, double variance) const override {
    return {mean, variance + moments(mean).variance};
  }
  double predictive_cdf(double y, double mean, double variance) const override {
    if (variance == 0 || std::isinf(y)) return cdf(y, mean);
    const double tail = PrecisionMixture(df_, scale_, variance, -std::abs(y - mean)).lower_tail();
    return y <= mean ? tail : 1 - tail;
  }
  double predictive_quantile(double p, double mean, double variance) const override {
    // In the lower tail, by symmetry, and in logs: both ends of (0, 1) keep their digits.
    const double unit = std::sqrt(variance + scale_ * scale_);
    const double target = std::log(std::min(p, 1 - p));
    const auto excess = [&](double z) {
      return std::log(predictive_cdf(z * unit, 0, variance)) - target;
    };
    double lower = -1, upper = 0;
    if (excess(upper) <= 0) return mean;  // p is 1/2, but for rounding
    while (excess(lower) > 0) {
      upper = lower;
      lower *= 2;
    }
    std::uintmax_t iterations = 100;
    const auto root = boost::math::tools::toms748_solve(
        excess, lower, upper, boost::math::tools::eps_tolerance<double>(46), iterations);
    const double distance = -0.5 * (root.first + root.second) * unit;
    return p < 0.5 ? mean - distance : mean + distance;
  }

 protected:
  Predictive moments(double f) const override { return {f, scale_ * scale_ * df_ / (df_ - 2)}; }
  double cdf(double y, double f) const override {
    if (std::isinf(y)) return y > 0 ? 1 : 0;
    const boost::math::students_t_distribution<double, detail::Policy> t(df_);
    return boost::math::cdf(t, (y - f) / scale_);
  }

 private:
  double df_, constant_;
  double scale_ = kStartScale, log_scale_ = std::log(kStartScale);
};

double read_df(std::string_view options) {
  if (options.empty()) return kDefaultDf;
  constexpr std::string_view key = "df=";
  const char* end = options.data() + options.size();
  double df = 0;
  if (options.substr(0, key.size()) == key) {
    const auto [rest, error] = std::from_chars(options.data() + key.size(), end, df);
    if (error == std::errc{} && rest == end && std::isfinite(df) && df > 2) return df;
  }
  throw InvalidArgument(fmt::format(
      "the likelihood 'student-t' takes df=NUMBER with a number above 2, not '{}'", options));
}

}  // namespace

LikelihoodInfo student_t_info() {
  return {.name = "student-t",
          .summary = "measurements with outliers; df=4 degrees of freedom",
          .make = [](std::string_view options) -> std::unique_ptr<Likelihood> {
            return std::make_unique<StudentT>(read_df(options));
          }};
}

}  // namespace mercer::likelihoods
