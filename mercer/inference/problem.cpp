#include "mercer/inference/problem.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/likelihoods/gaussian.hpp"

namespace mercer::inference {

Problem::Problem(kernels::Kernel k, double noise, MeanKind m, std::vector<Index> left_out)
    : Problem(std::move(k), likelihoods::make_gaussian(noise), m, std::move(left_out)) {}

Problem::Problem(const Problem& other)
    : Problem(other.kernel, other.likelihood->clone(), other.mean, other.trend_left_out) {}

Problem& Problem::operator=(const Problem& other) {
  kernel = other.kernel;
  likelihood = other.likelihood->clone();
  mean = other.mean;
  trend_left_out = other.trend_left_out;
  return *this;
}

double Problem::noise() const {
  const auto variance = likelihood->gaussian_noise();
  if (!variance)
    throw InvalidArgument(
        fmt::format("exact inference needs Gaussian noise, which the likelihood {} has not",
                    likelihood->text()));
  return *variance;
}

void Problem::set_noise(double variance) { likelihood = likelihoods::make_gaussian(variance); }

Vector Problem::log_parameters() const {
  const Vector own = likelihood->log_parameters();
  Vector theta(kernel.num_parameters() + own.size());
  theta << kernel.log_parameters(), own;
  return theta;
}

void Problem::set_log_parameters(ConstVectorView theta) {
  const Index p = kernel.num_parameters();
  if (theta.size() < p)
    throw DimensionMismatch("problem: parameters given", theta.size(), "parameters of the kernel",
                            p);
  kernel.set_log_parameters(theta.head(p));
  likelihood->set_log_parameters(theta.tail(theta.size() - p));
}

std::vector<std::string> Problem::parameter_names() const {
  auto names = kernel.parameter_names();
  for (auto& name : likelihood->parameter_names()) names.push_back(std::move(name));
  return names;
}

}  // namespace mercer::inference
