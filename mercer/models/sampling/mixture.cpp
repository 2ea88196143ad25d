#include "mercer/models/sampling/mixture.hpp"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <numbers>

#include "mercer/models/log_normal.hpp"

namespace mercer::models {
namespace {

using Parts = std::vector<Predictions>;

// Equal weights, entry by entry.
template <class Get>
auto mean_of(const Parts& parts, const Get& get) {
  auto sum = get(parts.front());
  for (std::size_t k = 1; k < parts.size(); ++k) sum += get(parts[k]);
  sum /= static_cast<double>(parts.size());
  return sum;
}

// The law of total variance: sqrt(mean of sd^2 + variance of the means).
template <class Mean, class Sd>
Matrix total_sd(const Parts& parts, const Mean& mean, const Sd& sd) {
  const Matrix centre = mean_of(parts, [&](const Predictions& p) { return Matrix(mean(p)); });
  return mean_of(parts,
                 [&](const Predictions& p) {
                   return Matrix((Matrix(sd(p)).array().square() +
                                  (Matrix(mean(p)) - centre).array().square())
                                     .matrix());
                 })
      .cwiseSqrt();
}

// P(Y <= y) of row i under one draw.
double part_cdf(const Predictions& p, const KernelMachine& model, Index i, double y) {
  if (model.schema.log_target) {
    const auto part = log_normal_of_ratio(p.latent_mean(i, 0), p.sd_obs(i) / p.mean(i));
    return y > 0 ? standard_normal_cdf(part.z(y)) : 0.0;
  }
  if (model.problem.gaussian()) return standard_normal_cdf((y - p.mean(i)) / p.sd_obs(i));
  const auto& s = model.scaling;
  const double sd = p.latent_sd(i, 0) / s.target_sd;
  return model.problem.likelihood->predictive_cdf(
      (y - s.target_mean) / s.target_sd, (p.latent_mean(i, 0) - s.target_mean) / s.target_sd,
      sd * sd);
}

// The smallest y with F(y) >= p, between the quantiles of the draws. Where these are whole numbers
// (counts) so is that of the mixture.
template <class Cdf>
double mixture_quantile(double p, const Vector& of_parts, const Cdf& cdf) {
  double low = of_parts.minCoeff(), high = of_parts.maxCoeff();
  if (low == high) return low;
  if ((of_parts.array() == of_parts.array().floor()).all()) {
    if (cdf(low) >= p) return low;
    while (high - low > 1) {
      const double middle = std::floor(low + 0.5 * (high - low));
      (cdf(middle) >= p ? high : low) = middle;
    }
    return high;
  }
  const double at_low = cdf(low) - p, at_high = cdf(high) - p;
  if (at_low >= 0) return low;  // to rounding
  if (at_high <= 0) return high;
  std::uintmax_t most = 100;
  const auto [a, b] = boost::math::tools::toms748_solve(
      [&](double y) { return cdf(y) - p; }, low, high, at_low, at_high,
      [](double x, double y) { return std::abs(x - y) <= 1e-12 * (std::abs(x) + std::abs(y)); },
      most);
  return 0.5 * (a + b);
}

// `get` is the quantile of a draw, for all rows.
template <class Get>
Vector quantiles_of(double p, const Parts& parts, const MixtureSetting& setting, const Get& get) {
  const Index rows = parts.front().rows();
  const auto count = static_cast<Index>(parts.size());
  Vector out(rows), of_parts(count);
  for (Index i = 0; i < rows; ++i) {
    for (Index k = 0; k < count; ++k) of_parts(k) = get(parts[static_cast<std::size_t>(k)])(i);
    out(i) = mixture_quantile(p, of_parts, [&](double y) {
      double sum = 0;
      for (std::size_t k = 0; k < parts.size(); ++k)
        sum += part_cdf(parts[k], *setting.models[k], i, y);
      return sum / static_cast<double>(parts.size());
    });
  }
  return out;
}

void mix_latent(const Parts& parts, Index joint_samples, Predictions& out) {
  const auto mean = [](const Predictions& p) -> const Matrix& { return p.latent_mean; };
  out.latent_mean = mean_of(parts, [&](const Predictions& p) { return mean(p); });
  if (parts.front().latent_sd.size() > 0)
    out.latent_sd =
        total_sd(parts, mean, [](const Predictions& p) -> const Matrix& { return p.latent_sd; });
  out.error_bound = mean_of(parts, [](const Predictions& p) { return p.error_bound; });
  out.error_estimate = mean_of(parts, [](const Predictions& p) { return p.error_estimate; });
  const auto count = static_cast<Index>(parts.size()), functions = out.latent_mean.cols();
  out.samples.resize(out.rows(), functions * joint_samples);
  const Index each = parts.front().samples.cols() / functions;
  for (Index c = 0; c < functions; ++c)
    for (Index s = 0; s < joint_samples; ++s)
      out.samples.col(c * joint_samples + s) =
          parts[static_cast<std::size_t>(s % count)].samples.col(c * each + s / count);
}

// What is known of the numbers themselves: bounds, counts.
void mix_reports(const Parts& parts, Predictions& out) {
  out.sd_error_bound = 0.0;
  out.probability_error = 0.0;
  double mean_error = 0;
  out.clamped_variances = 0;
  out.jitter = 0;
  out.matvecs = 0;
  for (const auto& p : parts) {
    if (out.sd_error_bound && p.sd_error_bound)
      out.sd_error_bound = std::max(*out.sd_error_bound, *p.sd_error_bound);
    else
      out.sd_error_bound.reset();
    if (out.probability_error && p.probability_error)
      out.probability_error = std::max(*out.probability_error, *p.probability_error);
    else
      out.probability_error.reset();
    if (p.error_bound.size() > 0) mean_error = std::max(mean_error, p.error_bound.maxCoeff());
    out.clamped_variances += p.clamped_variances;
    out.jitter = std::max(out.jitter, p.jitter);
    out.matvecs += p.matvecs;
  }
  if (out.sd_error_bound) *out.sd_error_bound += mean_error;
}

void mix_spread(const Parts& parts, const MixtureSetting& setting, Predictions& out) {
  const auto column = [](const Vector& v) { return Matrix(v); };
  out.sd_obs = total_sd(
                   parts, [&](const Predictions& p) { return column(p.mean); },
                   [&](const Predictions& p) { return column(p.sd_obs); })
                   .col(0);
  const bool log_target = setting.models.front()->schema.log_target;
  if (parts.front().noise_free_sd.size() > 0)
    out.noise_free_sd = total_sd(
                            parts,
                            [&](const Predictions& p) {
                              if (!log_target) return column(p.mean);
                              Matrix means(p.rows(), 1);
                              for (Index i = 0; i < p.rows(); ++i)
                                means(i) = LogNormal{p.latent_mean(i, 0), p.latent_sd(i, 0)}.mean();
                              return means;
                            },
                            [&](const Predictions& p) { return column(p.noise_free_sd); })
                            .col(0);
  using Get = const Vector& (*)(const Predictions&);
  const auto quantile = [&](double p, Get get) { return quantiles_of(p, parts, setting, get); };
  out.q025 = quantile(0.025, [](const Predictions& p) -> const Vector& { return p.q025; });
  out.q05 = quantile(0.05, [](const Predictions& p) -> const Vector& { return p.q05; });
  out.q95 = quantile(0.95, [](const Predictions& p) -> const Vector& { return p.q95; });
  out.q975 = quantile(0.975, [](const Predictions& p) -> const Vector& { return p.q975; });
  out.quantiles.resize(out.rows(), static_cast<Index>(setting.quantiles.size()));
  for (Index j = 0; j < out.quantiles.cols(); ++j) {
    const double p = setting.quantiles[static_cast<std::size_t>(j)];
    out.quantiles.col(j) = p == 0.05   ? out.q05
                           : p == 0.95 ? out.q95
                                       : quantiles_of(p, parts, setting, [&](const Predictions& q) {
                                           return q.quantiles.col(j);
                                         });
  }
}

// E|X| of X ~ N(m, v): twice the density plus m times the sign, smoothed.
double mean_absolute(double m, double sd) {
  if (!(sd > 0)) return std::abs(m);
  const double z = m / sd;
  return 2 * sd * std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi) +
         m * (2 * standard_normal_cdf(z) - 1);
}

}  // namespace

Predictions mixed(Parts parts, const MixtureSetting& setting) {
  Predictions out;
  const auto& first = parts.front();
  mix_latent(parts, setting.joint_samples, out);
  mix_reports(parts, out);
  out.sd_error = first.sd_error;
  if (first.probabilities.size() > 0) {
    out.probabilities = mean_of(parts, [](const Predictions& p) { return p.probabilities; });
  } else {
    out.mean = mean_of(parts, [](const Predictions& p) { return p.mean; });
    out.mean_error_bound = mean_of(parts, [](const Predictions& p) { return p.mean_error_bound; });
    out.mean_error_estimate =
        mean_of(parts, [](const Predictions& p) { return p.mean_error_estimate; });
    if (first.sd_obs.size() > 0) mix_spread(parts, setting, out);
  }
  out.parts = std::move(parts);
  return out;
}

Vector log_mean_exp(const Matrix& values) {
  Vector out(values.rows());
  for (Index i = 0; i < values.rows(); ++i) {
    const double most = values.row(i).maxCoeff();
    out(i) =
        std::isfinite(most) ? most + std::log((values.row(i).array() - most).exp().mean()) : most;
  }
  return out;
}

double normal_mixture_crps(double y, const Vector& mean, const Vector& sd) {
  const auto count = static_cast<double>(mean.size());
  double first = 0, second = 0;
  for (Index i = 0; i < mean.size(); ++i) {
    first += mean_absolute(y - mean(i), sd(i));
    for (Index j = 0; j < mean.size(); ++j)
      second += mean_absolute(mean(i) - mean(j), std::hypot(sd(i), sd(j)));
  }
  return first / count - 0.5 * second / (count * count);
}

}  // namespace mercer::models
