#include "mercer/krylov/ulisse.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "mercer/core/rng.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/detail/conjugate_gradients.hpp"

namespace mercer::krylov {
namespace {

using detail::Column;

// Of one right-hand side, by its column of b.
struct Draw {
  std::array<double, 2> u = {};
  double start = 0;           // |r| of the first guess
  double first = 0;           // |r| at the early tolerance
  double last = 0;            // |r| after the last step
  double survival = 1;        // S of the next step
  double taken = 1;           // S of the last step after the early tolerance
  std::vector<Vector> steps;  // whole_run: what was added to x, and with which S
  std::vector<double> survivals;
  RandomStop report;
};

class UnbiasedGradients final : public detail::ConjugateGradients {
 public:
  UnbiasedGradients(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                    Matrix* second, const SolverOptions& options, const SolverContext& context)
      : ConjugateGradients(a, b, x, options, context, std::nullopt),
        rule_(options.random_stop.value_or(RandomStopOptions{})),
        second_(second),
        copies_(second != nullptr ? 2 : 1),
        draws_(static_cast<std::size_t>(t_)),
        weights_(Matrix::Zero(copies_, t_)) {
    for (auto& e : excess_) e = Matrix::Zero(n_, &e - excess_.data() < copies_ ? t_ : 0);
    for (Index j = 0; j < t_; ++j) {
      Rng rng(rule_.seed, "ulisse", rule_.first_stream + static_cast<std::uint64_t>(j));
      for (double& u : of(j).u) u = rng.uniform();
    }
  }

 private:
  void settle(bool all) override;
  bool ended(Index slot) override;
  bool measures_all() const override {
    return rule_.measure_residuals || context_.low_precision == nullptr;
  }
  void finish() override;

  Draw& of(Index column) { return draws_[static_cast<std::size_t>(column)]; }
  /// S of step j where it does not depend on residuals.
  double scheduled(double j) const {
    return std::exp(-rule_.beta *
                    (rule_.continuation == Continuation::geometric ? j : j * (j + 1) / 2));
  }
  /// The probability that a step which each copy takes with probability S is taken at all.
  double any_takes(double s) const { return copies_ == 1 ? s : s * (2 - s); }
  void count_step(const Column& c, Draw& d) const;
  void look_ahead(const Column& c, bool complete, Draw& d) const;
  void measure_variances();

  const RandomStopOptions rule_;
  Matrix* second_;
  const Index copies_;
  std::vector<Draw> draws_;
  std::array<Matrix, 2> excess_;  // xhat - x of each copy, by column of b
  Matrix weights_;                // copies x slots: of the last step in the excess
};

// After every step, and at the start: whether all copies of the column have stopped.
bool UnbiasedGradients::ended(Index slot) {
  const Column& c = at(slot);
  Draw& d = of(c.id);
  const double early = rule_.early_tolerance * c.norm_b;
  if (!(early > c.target) || c.id < rule_.whole_columns) return false;  // there is no draw
  d.last = c.residual();
  if (d.start == 0) d.start = d.last;
  auto& report = d.report;
  if (!report.early_iterations) {
    // Where this step reaches the tolerance itself, the check decides whether it is enough.
    if (!(d.last <= early) || d.last <= c.target) return false;
    report.early_iterations = c.iterations;
    d.first = d.last;
  }
  const int next = report.extra_iterations + 1;
  if (rule_.continuation != Continuation::residual)
    d.survival = scheduled(next);
  else if (next > 1 && d.last < d.survival * d.first)
    d.survival = d.last / d.first;
  if (rule_.whole_run) return false;
  for (Index k = 0; k < copies_; ++k)
    if (d.u[static_cast<std::size_t>(k)] < d.survival) return false;
  return true;
}

// Iterations and variances of a step with probability d.survival.
void UnbiasedGradients::count_step(const Column& c, Draw& d) const {
  const double s = d.survival, chance = any_takes(s);
  // |alpha p|_A^2 = alpha <r, z>, of x without its scale.
  const double energy = c.alpha * c.g / c.scale / c.scale;
  d.taken = s;
  ++d.report.extra_iterations;
  d.report.expected_extra_iterations += chance;
  d.report.energy_variance += energy * (1 / s - 1) / (rule_.whole_run ? 1.0 : chance);
}

// x += alpha p has been done. A copy that takes the step wants alpha p / S of it, one that does not
// nothing: excess += (1 / S - 1) alpha p, or -alpha p.
void UnbiasedGradients::settle(bool /*all*/) {
  bool any = false;
  for (Index slot = 0; slot < stepping_; ++slot) {
    const Column& c = at(slot);
    Draw& d = of(c.id);
    const bool counts = d.report.early_iterations && !c.broken;
    for (Index k = 0; k < copies_; ++k) {
      const bool takes = d.u[static_cast<std::size_t>(k)] < d.survival;
      weights_(k, slot) = !counts ? 0.0 : c.alpha * (takes ? 1 / d.survival - 1 : -1.0);
      any = any || weights_(k, slot) != 0;
    }
    if (!counts) continue;
    count_step(c, d);
    if (!rule_.whole_run) continue;
    d.steps.emplace_back(c.alpha / c.scale * p_.col(slot));
    d.survivals.push_back(d.survival);
  }
  if (!any) return;
  detail::for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
    const double* p = p_.col(slot).data() + first;
    for (Index k = 0; k < copies_; ++k) {
      const double weight = weights_(k, slot);
      if (weight == 0) continue;
      double* e = excess_[static_cast<std::size_t>(k)].col(at(slot).id).data() + first;
      for (Index i = 0; i < rows; ++i) e[i] += weight * p[i];
    }
  });
}

// Steps that were not taken, from the mean rate of the run: how many there would have been, how
// likely, and whether S ends above the square of what the residual would have fallen by.
void UnbiasedGradients::look_ahead(const Column& c, bool complete, Draw& d) const {
  double end = d.taken, reached = d.last;
  const double rate = c.iterations > 0 ? std::log(d.start / d.last) / c.iterations : 0.0;
  if (!complete && rate > 0) {
    // In double first: a tiny rate makes more iterations than an int holds.
    const int left =
        static_cast<int>(std::min(std::ceil(std::log(d.last / c.target) / rate),
                                  static_cast<double>(options_.max_iterations - c.iterations)));
    for (int k = 1; k <= left; ++k) {
      end = rule_.continuation == Continuation::residual ? d.survival * std::exp(-rate * (k - 1))
                                                         : scheduled(d.report.extra_iterations + k);
      d.report.expected_extra_iterations += any_takes(end);
    }
    reached = c.target;
  }
  d.report.heavy_tail = std::log(end) < 2 * std::log(reached / d.first);
}

// E |xhat - x|^2 = sum_j (1 / S_j - 1) (|delta_j|^2 + 2 <delta_j, sum_{k > j} delta_k>).
void UnbiasedGradients::measure_variances() {
  std::vector<double> sums(draws_.size());
  for (std::size_t column = 0; column < draws_.size(); ++column) {
    const Draw& d = draws_[column];
    Vector later = Vector::Zero(n_);
    for (std::size_t j = d.steps.size(); j-- > 0;) {
      const Vector& step = d.steps[j];
      sums[column] += (1 / d.survivals[j] - 1) * (step.squaredNorm() + 2 * step.dot(later));
      later += step;
    }
  }
  space_.reduce(sums);
  for (std::size_t column = 0; column < draws_.size(); ++column)
    if (draws_[column].report.early_iterations) draws_[column].report.variance = sums[column];
}

void UnbiasedGradients::finish() {
  if (second_ != nullptr) second_->resize(n_, t_);
  if (context_.last_iterate != nullptr) context_.last_iterate->resize(n_, t_);
  for (Index slot = 0; slot < t_; ++slot) {
    Column& c = at(slot);
    Draw& d = of(c.id);
    auto x = x_.col(c.id);
    if (second_ != nullptr) second_->col(c.id) = (x + excess_[1].col(c.id)) / c.scale;
    if (context_.last_iterate != nullptr) context_.last_iterate->col(c.id) = x / c.scale;
    auto& stop = result_.column_stops[static_cast<std::size_t>(c.id)];
    if (d.report.early_iterations) look_ahead(c, stop != StopReason::random_stop, d);
    if (d.report.extra_iterations == 0) continue;
    x += excess_[0].col(c.id);
    c.exact = false;
    if (stop == StopReason::converged) stop = StopReason::random_stop;
  }
  if (rule_.whole_run) measure_variances();
  result_.random_stops.reserve(draws_.size());
  for (const Draw& d : draws_) result_.random_stops.push_back(d.report);
}

SolveResult run(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x, Matrix* second,
                const SolverOptions& options, const SolverContext& context) {
  check_arguments("ulisse", a, b, x, options, context);
  refuse_option("ulisse", options.window.has_value(), "window", "fcg");
  refuse_option("ulisse", options.window_restarts, "window_restarts", "fcg");
  refuse_option("ulisse", options.restart.has_value(), "restart", "gmres and fgmres");
  refuse_option("ulisse", options.keep_coefficients, "keep_coefficients", "cg");
  return UnbiasedGradients(a, b, x, second, options, context).run();
}

double ulisse_bytes(Index n, Index columns, bool preconditioned) {
  return cg_bytes(n, columns, preconditioned) +
         8.0 * static_cast<double>(n) * static_cast<double>(columns);
}

double ulisse_flops(Index n, Index columns) {
  return cg_flops(n, columns) + 2.0 * static_cast<double>(n) * static_cast<double>(columns);
}

}  // namespace

SolveResult ulisse(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                   const SolverOptions& options, const SolverContext& context) {
  return run(a, b, x, nullptr, options, context);
}

SolveResult ulisse_pair(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                        Matrix& second, const SolverOptions& options,
                        const SolverContext& context) {
  return run(a, b, x, &second, options, context);
}

SolverInfo ulisse_info() {
  return {.name = "ulisse",
          .summary = "conjugate gradients stopped by a draw: right on average",
          .solve = ulisse,
          .needs_positive_definite = true,
          .flexible = false,
          .unbiased = true,
          .bytes = ulisse_bytes,
          .flops = ulisse_flops};
}

}  // namespace mercer::krylov
