#include "mercer/diagnostics/chains.hpp"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/diagnostics/not_a_number.hpp"

namespace mercer::diagnostics {
namespace {

// Draws that nothing can be said of: one is not finite, or all are equal.
bool says_nothing(const Matrix& x) {
  return x.size() == 0 || !x.allFinite() ||
         x.maxCoeff() - x.minCoeff() < std::numeric_limits<double>::epsilon();
}

// The halves of each chain as chains; the middle draw of an odd number is left out.
Matrix split(const Matrix& x) {
  if (x.rows() == 1) return x;
  const Index half = x.rows() / 2;
  Matrix out(half, 2 * x.cols());
  out << x.topRows(half), x.bottomRows(half);
  return out;
}

// Each draw by the normal quantile of its rank among all; ties share the mean of their ranks.
Matrix rank_normalised(const Matrix& x) {
  if (x.array().isNaN().any()) return Matrix::Constant(x.rows(), x.cols(), kNotANumber);
  const auto count = static_cast<std::size_t>(x.size());
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const double* value = x.data();
  std::sort(order.begin(), order.end(),
            [value](std::size_t a, std::size_t b) { return value[a] < value[b]; });
  Matrix z(x.rows(), x.cols());
  const boost::math::normal standard;
  for (std::size_t first = 0; first < count;) {
    std::size_t end = first + 1;
    while (end < count && value[order[end]] == value[order[first]]) ++end;
    const double rank = 0.5 * static_cast<double>(first + 1 + end);
    const double score =
        boost::math::quantile(standard, (rank - 0.375) / (static_cast<double>(count) + 0.25));
    for (; first < end; ++first) z.data()[order[first]] = score;
  }
  return z;
}

Matrix folded(const Matrix& x) { return (x.array() - quantile(x, 0.5)).abs(); }

double variance(const Vector& x) {
  return (x.array() - x.mean()).square().sum() / static_cast<double>(x.size() - 1);
}

double rhat_of(const Matrix& x) {
  if (says_nothing(x) || x.rows() < 2) return kNotANumber;
  const auto n = static_cast<double>(x.rows());
  const Vector means = x.colwise().mean();
  const double within = (x.rowwise() - means.transpose()).colwise().squaredNorm().mean() / (n - 1);
  return std::sqrt((n * variance(means) / within + n - 1) / n);
}

// Geyer's initial monotone sequence of correlations at lags t and t + 1, over all chains.
class Correlations {
 public:
  explicit Correlations(const Matrix& x)
      : centred_(x.rowwise() - x.colwise().mean()), n_(static_cast<double>(x.rows())) {
    mean_variance_ = covariance(0) * n_ / (n_ - 1);
    total_ = covariance(0);
    if (x.cols() > 1) total_ += variance(x.colwise().mean());
  }

  /// The sum over all lags, both signs: n draws are worth n / tau.
  double tau() {
    const Index n = centred_.rows();
    Vector rho = Vector::Zero(n + 1);
    double even = 1, odd = at(1);
    rho(0) = even;
    rho(1) = odd;
    Index t = 0;
    while (t < n - 5 && !std::isnan(even + odd) && even + odd > 0) {
      t += 2;
      even = at(t);
      odd = at(t + 1);
      if (even + odd >= 0) {
        rho(t) = even;
        rho(t + 1) = odd;
      }
    }
    const Index last = t;
    // Makes up for odd lags, which are left out at the end.
    if (even > 0) rho(last) = even;
    for (t = 2; t <= last - 2; t += 2)
      if (rho(t) + rho(t + 1) > rho(t - 2) + rho(t - 1))
        rho(t) = rho(t + 1) = 0.5 * (rho(t - 2) + rho(t - 1));
    // With no pair at all the first term stands for the sum, as in posterior.
    return -1 + 2 * rho.head(std::max<Index>(last, 1)).sum() + rho(last);
  }

 private:
  double covariance(Index lag) const {
    const Index left = centred_.rows() - lag;
    return centred_.topRows(left).cwiseProduct(centred_.bottomRows(left)).colwise().sum().mean() /
           n_;
  }
  double at(Index lag) const { return 1 - (mean_variance_ - covariance(lag)) / total_; }

  Matrix centred_;
  double n_;
  double mean_variance_ = 0, total_ = 0;
};

double ess_of(const Matrix& x) {
  if (x.rows() < 3 || says_nothing(x)) return kNotANumber;
  const auto count = static_cast<double>(x.size());
  const double tau = Correlations(x).tau();
  // Antithetic chains may be worth more than their draws, but not by any factor.
  return count / std::max(tau, 1 / std::log10(count));
}

// std::max would hide what is not a number.
double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNotANumber : std::max(a, b);
}

void check_probability(double p) {
  if (!(p >= 0 && p <= 1)) throw InvalidArgument("quantile: the probability is outside 0 .. 1");
}

}  // namespace

double rhat(ConstMatrixView draws) {
  if (draws.size() == 0) return kNotANumber;
  return larger(rhat_of(rank_normalised(split(draws))),
                rhat_of(rank_normalised(split(folded(draws)))));
}

double ess_bulk(ConstMatrixView draws) {
  return draws.size() == 0 ? kNotANumber : ess_of(rank_normalised(split(draws)));
}

double ess_quantile(ConstMatrixView draws, double probability) {
  check_probability(probability);
  const Matrix x = draws;
  if (says_nothing(x)) return kNotANumber;
  const auto count = static_cast<double>(x.size());
  const double q = quantile(x, probability == 1 ? (count - 0.5) / count : probability);
  return ess_of(split((x.array() <= q).cast<double>()));
}

double ess_tail(ConstMatrixView draws) {
  const double low = ess_quantile(draws, 0.05), high = ess_quantile(draws, 0.95);
  return -larger(-low, -high);
}

double ess_basic(ConstMatrixView draws, bool splits) {
  if (draws.size() == 0) return kNotANumber;
  return ess_of(splits ? split(draws) : Matrix(draws));
}

double ess_mean(ConstMatrixView draws) { return ess_basic(draws); }

double mcse_mean(ConstMatrixView draws) {
  const Vector all = draws.reshaped();
  return std::sqrt(variance(all) / ess_mean(draws));
}

double mcse_sd(ConstMatrixView draws) {
  if (draws.size() == 0) return kNotANumber;
  const Matrix squares = (draws.array() - draws.mean()).square();
  const double var = squares.mean();
  const double of_var = (squares.array().square().mean() - var * var) / ess_mean(squares);
  return std::sqrt(of_var / var / 4);
}

// Half the distance of the quantiles that an interval of one standard deviation of the probability
// covers.
double mcse_quantile(ConstMatrixView draws, double probability) {
  const double ess = ess_quantile(draws, probability);
  if (std::isnan(ess)) return kNotANumber;
  const boost::math::beta_distribution<> belief(ess * probability + 1, ess * (1 - probability) + 1);
  Vector sorted = draws.reshaped();
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const double low = boost::math::quantile(belief, 0.1586553);
  const double high = boost::math::quantile(belief, 0.8413447);
  const auto from = static_cast<Index>(std::max(std::floor(low * count), 1.0));
  const auto to = static_cast<Index>(std::min(std::ceil(high * count), count));
  return 0.5 * (sorted(to - 1) - sorted(from - 1));
}

double quantile(ConstMatrixView draws, double probability) {
  check_probability(probability);
  if (draws.size() == 0 || draws.array().isNaN().any()) return kNotANumber;
  Vector sorted = draws.reshaped();
  std::sort(sorted.begin(), sorted.end());
  // Counted from one, as R does, so that it is rounded in the same way.
  const double place = 1 + static_cast<double>(sorted.size() - 1) * probability;
  const auto below = static_cast<Index>(std::floor(place)) - 1,
             above = static_cast<Index>(std::ceil(place)) - 1;
  // Equal neighbours are taken as they are: interpolation would round.
  if (sorted(below) == sorted(above)) return sorted(below);
  const double share = place - std::floor(place);
  return (1 - share) * sorted(below) + share * sorted(above);
}

}  // namespace mercer::diagnostics
