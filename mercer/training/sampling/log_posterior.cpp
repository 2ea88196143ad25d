#include "mercer/training/sampling/log_posterior.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/training/rules.hpp"

namespace mercer::training {
namespace {

// Rows whose mode is found, and those of large data sets (Filippone & Engler 2015).
constexpr Index kModeRows = 500, kManyModeRows = 1000, kManyRows = 20000;
constexpr double kLeastVariance = 1e-6, kMostVariance = 1;
// Step of the central differences that the Hessian is taken from: their error is of order h^2, and
// gradients are exact to about 1e-10.
constexpr double kModeDifference = 1e-3;

// Eigenvalues of the inverse within limits; what is not positive has the largest.
Matrix limited_inverse(const Matrix& precision, double scale) {
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(precision);
  Vector values = eigen.eigenvalues();
  for (Index i = 0; i < values.size(); ++i)
    values(i) = values(i) > 0 ? std::clamp(scale / values(i), kLeastVariance, kMostVariance)
                              : kMostVariance;
  return eigen.eigenvectors() * values.asDiagonal() * eigen.eigenvectors().transpose();
}

// Minus the log posterior of the rows of a mode per entry, as a function to minimise.
class ModeObjective {
 public:
  ModeObjective(const inference::Problem& problem, const JointPrior& prior,
                const inference::Observations& rows, inference::Inference& method)
      : problem_(problem), prior_(prior), share_(1 / Search::entries(rows)), method_(method) {}

  double operator()(ConstVectorView phi, VectorView gradient) {
    problem_.set_log_parameters(phi);
    const auto evidence = method_.evaluate(problem_, {});
    gradient = evidence.gradient;
    prior_.add_gradient(phi, gradient);
    gradient *= -share_;
    return -share_ * (evidence.value + prior_.log_density(phi));
  }
  double share() const { return share_; }

 private:
  inference::Problem problem_;
  const JointPrior& prior_;
  double share_;
  inference::Inference& method_;
};

// Of minus the log posterior; empty where it cannot be computed.
Matrix mode_hessian(ModeObjective& f, const Vector& phi) {
  const Index p = phi.size();
  Matrix out(p, p);
  Vector up(p), down(p);
  try {
    for (Index i = 0; i < p; ++i) {
      Vector moved = phi;
      moved(i) += kModeDifference;
      f(moved, up);
      moved(i) = phi(i) - kModeDifference;
      f(moved, down);
      out.col(i) = (up - down) / (2 * kModeDifference * f.share());
    }
  } catch (const NotPositiveDefinite&) {
    return {};
  }
  return out.allFinite() ? Matrix(0.5 * (out + out.transpose())) : Matrix();
}

}  // namespace

bool LogPosterior::inside(ConstVectorView phi) const {
  return phi.allFinite() && (phi.array() >= box_.lower().array()).all() &&
         (phi.array() <= box_.upper().array()).all();
}

LogPosterior::Value LogPosterior::at(ConstVectorView phi, const inference::Ask& ask) {
  Value out;
  if (!inside(phi)) return out;
  problem_.set_log_parameters(phi);
  inference::Evidence evidence;
  try {
    evidence = method_->evaluate(problem_, ask);
  } catch (const NotPositiveDefinite&) {
    return out;
  }
  if (evidence.stop == StopReason::interrupted) throw Interrupted("interrupted while sampling");
  if (ask.gradient && !evidence.gradient.allFinite()) return out;
  const double value = evidence.value + prior_.log_density(phi);
  if (std::isnan(value)) return out;
  out.log_density = value;
  out.iterations = evidence.iterations;
  out.solved = evidence.stop == StopReason::converged || evidence.stop == StopReason::random_stop;
  out.random_stops = evidence.random_stops;
  out.error = evidence.value_error;
  out.gradient = std::move(evidence.gradient);
  if (out.gradient.size() > 0) prior_.add_gradient(phi, out.gradient);
  return out;
}

optim::Box sampling_box(const optim::Box& search, const JointPrior& prior) {
  Vector lower = search.lower(), upper = search.upper();
  for (Index i = 0; i < prior.size(); ++i) {
    const auto bounds = prior.of(i).bounds();
    if (!bounds) continue;
    const double least = std::max(lower(i), bounds->first);
    const double most = std::min(upper(i), bounds->second);
    if (!(least < most))
      throw InvalidArgument(fmt::format(
          "`prior`: between the bounds of {} for {} lies none of the values that can be sampled, "
          "{:.3g} to {:.3g}; other start values (`lengthscale`, `signal_variance`, `noise`) move "
          "these",
          prior.of(i).text(), prior.names()[static_cast<std::size_t>(i)], std::exp(lower(i)),
          std::exp(upper(i))));
    lower(i) = least;
    upper(i) = most;
  }
  return {std::move(lower), std::move(upper)};
}

PosteriorMode find_posterior_mode(Search& search, const JointPrior& prior, const optim::Box& box) {
  const Index all = search.choice().rows;
  const auto rows = search.rows(std::min(all, all > kManyRows ? kManyModeRows : kModeRows));
  const auto problem = search.problem_on(rows);
  const auto method =
      inference::make(inference::evidence_method(problem, inference::EvidenceBy::factorisation),
                      problem, search.setup(rows));
  ModeObjective f(problem, prior, rows, *method);
  const int starts = 1 + search.options().restarts;
  optim::MinimizeResult best;
  best.value = HUGE_VAL;
  for (int s = 0; s < starts; ++s) {
    const Vector start = box.inside(s == 0 ? search.start().log_parameters()
                                           : random_start(search.start(), box, search.seed(), s));
    const Observer observer = [&](const Iteration& it) {
      return search.stopped("sample (mode)", static_cast<double>(s) / starts,
                            fmt::format("step {}, start {} of {}", it.number, s + 1, starts))
                 ? Action::stop
                 : Action::proceed;
    };
    auto found =
        optim::lbfgs([&](ConstVectorView phi, VectorView gradient) { return f(phi, gradient); },
                     start, box, {}, observer);
    if (found.stop == StopReason::interrupted) throw Interrupted("interrupted at the mode");
    search.report.evaluations += found.evaluations;
    if (found.value < best.value) best = std::move(found);
  }
  if (!std::isfinite(best.value))
    throw ToleranceNotReached(
        "sampling cannot begin: at no start value is the evidence a number in double precision; "
        "begin with more `noise`, or another `lengthscale` or `signal_variance`, or scale the "
        "data");
  PosteriorMode out;
  out.phi = best.theta;
  out.rows = rows.size();
  Matrix hessian = mode_hessian(f, out.phi);
  if (hessian.size() == 0) hessian = Matrix::Identity(out.phi.size(), out.phi.size());
  out.covariance_of_rows = limited_inverse(hessian, 1);
  out.covariance = limited_inverse(
      hessian, static_cast<double>(rows.size()) / static_cast<double>(std::max<Index>(1, all)));
  return out;
}

Matrix covariance_root(const Matrix& covariance) {
  const Eigen::LLT<Matrix> factor(covariance);
  if (factor.info() != Eigen::Success)
    throw NotPositiveDefinite("the covariance of the draws is not positive definite", 0);
  return factor.matrixL();
}

}  // namespace mercer::training
