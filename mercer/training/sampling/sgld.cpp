// Stochastic gradient Langevin dynamics with the gradients of the evidence that solves give:
//   phi += (e/2) M (g + grad log prior) + N(0, e M),   e = A (B + t)^-0.55.
// M is the covariance of the posterior by the Hessian at the mode of some rows. Gradients of so
// many columns as there are probes are noisy; with a small step the noise that is injected drowns
// theirs,
//   ratio = (e/4) lambda_max(M^1/2 V M^1/2),   V the covariance of g over a batch of iterations,
// and the draws are those of Langevin's diffusion. There the step is frozen, and draws are kept
// from there on.
//   Source: Welling & Teh (2011); Filippone & Engler (2015), with this M, ratio and schedule.
//   Cost:   one gradient by solves an iteration; solutions start from the last ones while probes
//           are the same. About one independent draw in 4/e iterations.
//   Bias:   with a frozen step e the variance of a normal posterior is too large by about e/4 and,
//           while probes stay the same for m iterations, by up to m times the ratio of their noise.
//           There is no acceptance step that would remove it. See docs/methods/sampling.md.
//   When not: where exact evidences are affordable: hmc.
#include <Eigen/Eigenvalues>

#include "mercer/training/sampling/chain.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

constexpr double kStepDecay = 0.55;
constexpr Index kPhaseBatch = 100;
constexpr Index kSgldIterations = 20000;
// Of the solves: an error of this share of the gradient's terms is far below its noise.
constexpr double kLangevinTolerance = 1e-4;
// Before the phase, where a start may be far out, a drift is at most so many standard deviations
// for each parameter.
constexpr double kLongestDrift = 1;

// e = A (B + t)^-0.55 with the first step at t = 0 and the last after half of the iterations.
struct StepSchedule {
  StepSchedule(const SampleOptions& options, Index iterations) {
    const double fall = std::max(1 + 1e-9, options.first_step / options.last_step);
    b = 0.5 * static_cast<double>(iterations) / (std::pow(fall, 1 / kStepDecay) - 1);
    a = options.first_step * std::pow(b, kStepDecay);
  }
  double at(Index t) const { return a * std::pow(b + static_cast<double>(t), -kStepDecay); }
  double a = 0, b = 0;
};

class LangevinChain final : public Chain {
 public:
  explicit LangevinChain(ChainSetup given)
      : Chain(std::move(given)),
        schedule_(setup().options, setup().iterations),
        root_(covariance_root(setup().mode.covariance)) {}

 protected:
  void step(Index iteration) override {
    const auto& options = setup().options;
    const Index set = (iteration - 1) / options.redraw;
    const auto value = target().at(
        phi(), {.tolerance = kLangevinTolerance, .probes = static_cast<std::uint64_t>(set)});
    Rng rng = stream("langevin", iteration);
    const double e = frozen() ? report().step : schedule_.at(iteration - 1);
    // All is known: from here on nothing throws.
    ++counts().evaluations;
    if (!value.possible()) {  // back to where there was a gradient
      ++counts().failed;
      move_to(last_);
      return;
    }
    last_ = phi();
    Vector drift = 0.5 * e * (root_.transpose() * value.gradient);
    const double longest = kLongestDrift * std::sqrt(static_cast<double>(drift.size()));
    if (!frozen() && drift.norm() > longest) drift *= longest / drift.norm();
    const Vector noise = std::sqrt(e) * normals(rng, drift.size());
    move_to(reflected(phi() + root_ * (drift + noise)));
    watch_phase(iteration, e, value.gradient);
  }
  void visit_state(Archive& archive) override {
    archive.array("last", last_);
    archive.columns("batch", batch_);
  }

 private:
  bool frozen() const { return report().step > 0; }

  // At a bound of the box the path turns round, which leaves the density inside as it is.
  Vector reflected(Vector to) {
    const auto& box = target().box();
    for (Index i = 0; i < to.size(); ++i) {
      const double low = box.lower()(i), high = box.upper()(i);
      if (to(i) < low) to(i) = 2 * low - to(i);
      if (to(i) > high) to(i) = 2 * high - to(i);
      to(i) = std::clamp(to(i), low, high);
    }
    return to;
  }

  // The largest eigenvalue of e/4 L'V L is that of e/4 M^1/2 V M^1/2.
  double phase_ratio(double e) const {
    const auto n = static_cast<double>(batch_.size());
    Matrix g(batch_.front().size(), static_cast<Index>(batch_.size()));
    for (std::size_t i = 0; i < batch_.size(); ++i) g.col(static_cast<Index>(i)) = batch_[i];
    g.colwise() -= Vector(g.rowwise().mean());
    const Matrix whitened = root_.transpose() * g;
    const Matrix v = whitened * whitened.transpose() / (n - 1);
    return 0.25 * e * Eigen::SelfAdjointEigenSolver<Matrix>(v).eigenvalues().maxCoeff();
  }

  void watch_phase(Index iteration, double e, const Vector& gradient) {
    batch_.push_back(gradient);
    if (static_cast<Index>(batch_.size()) == kPhaseBatch) {
      counts().ratios.push_back(phase_ratio(e));
      batch_.clear();
      if (!frozen() && report().ratios.back() < setup().options.phase_ratio) {
        counts().step = e;
        counts().acceptance = 1;
      }
    }
    // The first draw is the one after the step was frozen.
    if (!frozen() || keeps() || warming(iteration)) return;
    keep_from(iteration);
  }

  StepSchedule schedule_;
  Matrix root_;
  Vector last_ = setup().start;
  std::vector<Vector> batch_;
};

}  // namespace

TrainerInfo sgld_info() {
  return {.name = "sgld",
          .summary = "draws from the posterior by Langevin dynamics on gradients by solves",
          .by_solves = true,
          .from_start_values = true,
          .on_surrogate = false,
          .gradients = [](const inference::Problem&, const TrainOptions&) -> double {
            return kSgldIterations;
          },
          .preference = [](const inference::Problem&) { return 0; },
          .refusal = [](const inference::Problem&) { return std::string(); },
          .run =
              [](Search& search, const Vector&) {
                return run_chains(search,
                                  {.evidence = inference::EvidenceBy::solves,
                                   .iterations = kSgldIterations,
                                   .warmup = 0,
                                   .make = [](ChainSetup setup) -> std::unique_ptr<Chain> {
                                     return std::make_unique<LangevinChain>(std::move(setup));
                                   }});
              },
          .draws = DrawsInfo{.iterations = kSgldIterations, .evaluations = 1}};
}

}  // namespace mercer::training
