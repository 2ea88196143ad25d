#include "mercer/training/sampling/prior.hpp"

#include <algorithm>
#include <boost/math/distributions/gamma.hpp>
#include <boost/math/distributions/inverse_gamma.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "mercer/core/options_text.hpp"

namespace mercer::training {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::string both_positive(double a, double b) {
  return a > 0 && b > 0 ? "" : "both numbers must be positive";
}

// Gamma: log p(phi) = a log b - log Gamma(a) + a phi - b exp(phi).
PriorInfo gamma_info() {
  return {.name = "gamma",
          .summary = "gamma(SHAPE,RATE): mean SHAPE/RATE",
          .fault = both_positive,
          .log_density =
              [](double phi, double a, double b) {
                return a * std::log(b) - std::lgamma(a) + a * phi - b * std::exp(phi);
              },
          .slope = [](double phi, double a, double b) { return a - b * std::exp(phi); },
          .quantile =
              [](double p, double a, double b) {
                return boost::math::quantile(boost::math::gamma_distribution<>(a, 1 / b), p);
              },
          .mean = [](double a, double b) { return a / b; },
          .variance = [](double a, double b) { return a / (b * b); }};
}

// 1/theta is gamma: log p(phi) = a log b - log Gamma(a) - a phi - b exp(-phi).
PriorInfo inverse_gamma_info() {
  return {.name = "inverse-gamma",
          .summary = "inverse-gamma(SHAPE,SCALE): 1/theta is gamma; none near zero",
          .fault = both_positive,
          .log_density =
              [](double phi, double a, double b) {
                return a * std::log(b) - std::lgamma(a) - a * phi - b * std::exp(-phi);
              },
          .slope = [](double phi, double a, double b) { return b * std::exp(-phi) - a; },
          .quantile =
              [](double p, double a, double b) {
                return boost::math::quantile(boost::math::inverse_gamma_distribution<>(a, b), p);
              },
          .mean = [](double a, double b) { return a > 1 ? b / (a - 1) : kInfinite; },
          .variance =
              [](double a, double b) {
                return a > 2 ? b * b / ((a - 1) * (a - 1) * (a - 2)) : kInfinite;
              }};
}

PriorInfo log_normal_info() {
  return {
      .name = "log-normal",
      .summary = "log-normal(MEAN,SD): of log theta",
      .fault = [](double, double s) -> std::string {
        return s > 0 ? "" : "the standard deviation must be positive";
      },
      .log_density =
          [](double phi, double m, double s) {
            const double z = (phi - m) / s;
            return -0.5 * z * z - std::log(s) - 0.5 * std::log(2 * std::numbers::pi);
          },
      .slope = [](double phi, double m, double s) { return (m - phi) / (s * s); },
      .quantile =
          [](double p, double m, double s) {
            return std::exp(m + s * boost::math::quantile(boost::math::normal(), p));
          },
      .mean = [](double m, double s) { return std::exp(m + 0.5 * s * s); },
      .variance = [](double m, double s) { return std::expm1(s * s) * std::exp(2 * m + s * s); }};
}

PriorInfo half_normal_info() {
  return {.name = "half-normal",
          .summary = "half-normal(SCALE): the absolute value of a normal one",
          .parameters = 1,
          .fault = [](double s, double) -> std::string {
            return s > 0 ? "" : "the scale must be positive";
          },
          .log_density =
              [](double phi, double s, double) {
                const double z = std::exp(phi) / s;
                return 0.5 * std::log(2 / std::numbers::pi) - std::log(s) - 0.5 * z * z + phi;
              },
          .slope =
              [](double phi, double s, double) {
                const double z = std::exp(phi) / s;
                return 1 - z * z;
              },
          .quantile =
              [](double p, double s, double) {
                return s * boost::math::quantile(boost::math::normal(), 0.5 + 0.5 * p);
              },
          .mean = [](double s, double) { return s * std::sqrt(2 / std::numbers::pi); },
          .variance = [](double s, double) { return s * s * (1 - 2 / std::numbers::pi); }};
}

PriorInfo log_uniform_info() {
  return {.name = "log-uniform",
          .summary = "log-uniform(LEAST,MOST): log theta is uniform between their logarithms",
          .fault = [](double l, double u) -> std::string {
            return l > 0 && l < u ? "" : "the bounds must be positive, the first below the second";
          },
          .log_density =
              [](double phi, double l, double u) {
                if (phi < std::log(l) || phi > std::log(u)) return -kInfinite;
                return -std::log(std::log(u / l));
              },
          .slope = [](double, double, double) { return 0.0; },
          .quantile = [](double p, double l, double u) { return l * std::pow(u / l, p); },
          .mean = [](double l, double u) { return (u - l) / std::log(u / l); },
          .variance =
              [](double l, double u) {
                const double mean = (u - l) / std::log(u / l);
                return 0.5 * (u * u - l * l) / std::log(u / l) - mean * mean;
              },
          .bounded = true};
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// Split where no bracket is open.
std::vector<std::string> outer_parts(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += (c == '(' || c == '[') ? 1 : (c == ')' || c == ']') ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

[[noreturn]] void refuse_prior(std::string_view text, const std::string& why) {
  throw InvalidArgument(fmt::format("`prior`: '{}': {}", text, why));
}

// "rbf_1.lengthscale[0,2]" is also called "rbf_1.lengthscale", "lengthscale[0,2]" and
// "lengthscale"; "signal_variance1" also "signal_variance".
bool is_called(const std::string& parameter, const std::string& name) {
  const auto without_index = [](const std::string& text) {
    const auto end = text.find('[');
    if (end != std::string::npos) return text.substr(0, end);
    return text.substr(0, text.find_last_not_of("0123456789") + 1);
  };
  const auto dot = parameter.find('.');
  const auto own = dot == std::string::npos ? parameter : parameter.substr(dot + 1);
  return name == parameter || name == own || name == without_index(parameter) ||
         name == without_index(own);
}

}  // namespace

Registry<PriorInfo>& priors() {
  static Registry<PriorInfo> all("prior", {gamma_info(), inverse_gamma_info(), log_normal_info(),
                                           half_normal_info(), log_uniform_info()});
  return all;
}

std::string describe_priors() {
  std::string text;
  for (const auto& info : priors()) text += fmt::format("  {}\n", info.summary);
  return text;
}

Prior Prior::parse(std::string_view text) {
  const auto open = text.find('(');
  const std::string name = trimmed(text.substr(0, open));
  if (name == "flat" || name == "uniform" || name == "improper")
    refuse_prior(text,
                 "a flat prior is improper, and the posterior may not exist: the likelihood does "
                 "not vanish as a parameter goes to zero or to infinity. Take log-uniform(LEAST,"
                 "MOST) with bounds, or another of the priors there are");
  if (!priors().contains(name))
    refuse_prior(text, fmt::format("there is no prior '{}'; there are: {}", name,
                                   fmt::join(priors().names(), ", ")));
  const auto& info = priors().find(name);
  const std::string rest = open == std::string_view::npos ? "" : trimmed(text.substr(open));
  if (rest.size() < 2 || rest.back() != ')')
    refuse_prior(text, fmt::format("it is written as {}", info.summary));
  const auto parts = outer_parts(std::string_view(rest).substr(1, rest.size() - 2));
  if (static_cast<int>(parts.size()) != info.parameters)
    refuse_prior(text, fmt::format("it takes {} numbers: {}", info.parameters, info.summary));
  double values[2] = {0, 0};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    values[i] = parse_number<double>("`prior`", trimmed(parts[i]));
    if (!std::isfinite(values[i])) refuse_prior(text, "its numbers must be finite");
  }
  if (const auto why = info.fault(values[0], values[1]); !why.empty()) refuse_prior(text, why);
  return {info, values[0], values[1]};
}

std::optional<double> Prior::mean() const {
  const double value = info_->mean(a_, b_);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> Prior::sd() const {
  const double value = info_->variance(a_, b_);
  return std::isfinite(value) ? std::optional(std::sqrt(value)) : std::nullopt;
}

std::optional<std::pair<double, double>> Prior::bounds() const {
  if (!info_->bounded) return {};
  return std::pair(std::log(a_), std::log(b_));
}

std::string Prior::text() const {
  return info_->parameters == 1 ? fmt::format("{}({})", info_->name, a_)
                                : fmt::format("{}({},{})", info_->name, a_, b_);
}

JointPrior::JointPrior(std::vector<std::string> names, const std::vector<std::string>& given)
    : names_(std::move(names)),
      priors_(names_.size(), Prior::parse(kDefaultPrior)),
      default_(names_.size(), true) {
  if (given.empty()) return;
  for (const auto& part : outer_parts(fmt::format("{}", fmt::join(given, ",")))) {
    const auto equals = part.find('=');
    if (equals == std::string::npos)
      refuse_prior(part, "a prior is given as NAME=FAMILY(..), as in lengthscale=gamma(2,2)");
    const std::string name = trimmed(std::string_view(part).substr(0, equals));
    const auto prior = Prior::parse(trimmed(std::string_view(part).substr(equals + 1)));
    bool any = false;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!is_called(names_[i], name)) continue;
      any = true;
      priors_[i] = prior;
      default_[i] = false;
    }
    if (!any)
      refuse_prior(part, fmt::format("there is no parameter '{}'; there are: {}", name,
                                     fmt::join(names_, ", ")));
  }
}

double JointPrior::log_density(ConstVectorView phi) const {
  double sum = 0;
  for (Index i = 0; i < size(); ++i) sum += of(i).log_density(phi(i));
  return sum;
}

void JointPrior::add_gradient(ConstVectorView phi, VectorView gradient) const {
  for (Index i = 0; i < size(); ++i) gradient(i) += of(i).slope(phi(i));
}

}  // namespace mercer::training
