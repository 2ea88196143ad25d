#include "mercer/inference/variance_check.hpp"

#include <algorithm>
#include <cmath>

namespace mercer::inference {
namespace {

// The relative residual to begin with, which mostly suffices.
constexpr double kFirstTolerance = 2e-3;
// What the check leaves open of a standard deviation: this share of the largest error that is being
// measured, or this share of the standard deviation, below which no error matters.
constexpr double kShareOfError = 0.05, kShareOfSd = 2e-3;

}  // namespace

double sd_excess(double variance, double less) {
  return std::sqrt(std::max(0.0, variance)) - std::sqrt(std::max(0.0, variance - less));
}

void CheckedVariances::put(Index first_row, Index first_function, const CheckedVariances& some) {
  const Index rows = some.variance.rows(), functions = some.variance.cols();
  for (const auto part :
       {&CheckedVariances::variance, &CheckedVariances::truncated, &CheckedVariances::bound})
    (this->*part).block(first_row, first_function, rows, functions) = some.*part;
  iterations += some.iterations;
  matvecs += some.matvecs;
}

CheckTolerance::CheckTolerance(double exact, std::optional<double> given)
    : value_(given.value_or(std::max(exact, kFirstTolerance))), least_(given.value_or(exact)) {}

// What is left open falls with the square of the residual.
bool CheckTolerance::suffices(ConstMatrixView sd, ConstMatrixView variance,
                              ConstMatrixView truncated) {
  double error = 0, open = 0;
  for (Index c = 0; c < sd.cols(); ++c)
    for (Index i = 0; i < sd.rows(); ++i) {
      const double checked = std::sqrt(std::max(0.0, variance(i, c)));
      error = std::max(error, std::abs(sd(i, c) - checked));
      open = std::max(open, sd_excess(variance(i, c), truncated(i, c)) - kShareOfSd * checked);
    }
  const double allowed = kShareOfError * error;
  if (open <= allowed || value_ <= least_) return true;
  value_ =
      std::clamp(value_ * std::sqrt(0.5 * allowed / open), least_, std::max(least_, 0.5 * value_));
  return false;
}

}  // namespace mercer::inference
