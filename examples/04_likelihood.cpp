// The log marginal likelihood and its gradient, by Cholesky: what learning climbs.
#include <cstdio>

#include "mercer/mercer.hpp"

using namespace mercer;

int main() {
  Matrix x(120, 2);
  Rng(4, "points").fill_uniform(x);
  Vector y = (5.0 * x.col(0)).array().sin() + x.col(1).array();
  Rng noise(4, "noise");
  for (Index i = 0; i < y.size(); ++i) y[i] += 0.1 * noise.normal();

  inference::Problem problem(kernels::Kernel::parse("matern52", 2), 0.05,
                             inference::MeanKind::constant);
  const auto here = inference::exact_evidence(problem, {x, y}, /*with_gradient=*/true);
  std::printf("log marginal likelihood %.6f\n", here.value);

  // Each slope against a central difference; its error is of the order of the step squared.
  const auto names = problem.parameter_names();
  const Vector theta = problem.log_parameters();
  constexpr double step = 1e-5;
  double worst = 0;
  for (Index p = 0; p < theta.size(); ++p) {
    const auto value_at = [&](double shift) {
      Vector moved = theta;
      moved[p] += shift;
      auto there = problem;
      there.set_log_parameters(moved);
      return inference::exact_evidence(there, {x, y}, false).value;
    };
    const double difference = (value_at(step) - value_at(-step)) / (2 * step);
    std::printf("  d / d log %-24s %12.6f (difference %12.6f)\n",
                names[static_cast<std::size_t>(p)].c_str(), here.gradient[p], difference);
    worst = std::max(worst, std::abs(here.gradient[p] - difference));
  }
  return worst < 1e-5 * here.gradient.norm() ? 0 : 1;
}
