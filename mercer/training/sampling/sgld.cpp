// Stochastic gradient Langevin dynamics with the gradients of the evidence that solves give:
//   phi += (e/2) M (g + grad log prior) + N(0, e M),   e = A (B + t)^-0.55.
// M is the covariance of the posterior by the Hessian at the mode of some rows. Gradients of so
// many columns as there are probes are noisy; with a small step the noise that is injected drowns
// theirs,
//   ratio = (e/4) lambda_max(M^1/2 V M^1/2),   V the covariance of g over a batch of iterations,
// and the draws are those of Langevin's diffusion. There the step is frozen, and draws are kept
// from there on.
//   Source: Welling & Teh (2011); Filippone & Engler (2015), with this M, ratio and schedule, and
//           solves that stop early at random: gradients are right on average, and where the noise
//           injected drowns theirs nothing is left of it. They stop so before the phase too, where
//           the ratio must be that of the gradients to come.
//   Cost:   one gradient by solves an iteration; solutions start from the last ones while probes
//           are the same. About one independent draw in 4/e iterations.
//   Bias:   with a frozen step e the variance of a normal posterior is too large by about e/4 and,
//           while probes stay the same for m iterations, by up to m times the ratio of their noise.
//           There is no acceptance step that would remove it. A path in half steps beside a part of
//           the phase measures what the step does. See docs/methods/sampling.md.
//   When not: where exact evidences are affordable: hmc.
#include <fmt/format.h>

#include <Eigen/Eigenvalues>

#include "mercer/core/error.hpp"
#include "mercer/inference/exact/unbiased_solve.hpp"
#include "mercer/training/sampling/chain.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

constexpr double kStepDecay = 0.55;
constexpr Index kPhaseBatch = 100;
constexpr Index kSgldIterations = 20000;
// Of solves that do not stop at random: an error of this share of the gradient's terms is below its
// noise, but it is the same in every iteration and does not average out.
constexpr double kLangevinTolerance = 1e-4;
// Of the means of those that do, which costs hardly more than a coarser one: the steps to it are
// taken with the probability that the residual falls by.
constexpr double kMeanTolerance = 1e-6;
// Before the phase, where a start may be far out, a drift is at most so many standard deviations
// for each parameter.
constexpr double kLongestDrift = 1;
// One in so many iterations is also made in half steps, unless the user says otherwise: two further
// gradients each.
constexpr Index kHalfStepShare = 10;

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

// Throws InvalidArgument where it is asked for and cannot be had.
bool stops_at_random(const SampleOptions& options, const inference::Inference& method) {
  if (options.unbiased == "no") return false;
  const auto why = method.unbiased_refusal();
  if (!why.empty() && options.unbiased == "yes")
    throw InvalidArgument(fmt::format("`unbiased=yes` cannot be had: {}", why));
  return why.empty();
}

// What no chain could do with these options.
void check_langevin(const SampleOptions& options, const inference::Inference& method) {
  stops_at_random(options, method);
  if (options.iterations.value_or(kSgldIterations) < kPhaseBatch)
    throw InvalidArgument(fmt::format(
        "`iterations` is {}, and sgld needs {} to measure the noise of its gradients once; before "
        "that it keeps no draw",
        *options.iterations, kPhaseBatch));
  if (options.last_step > options.first_step)
    throw InvalidArgument(
        fmt::format("`last_step` is {}, above the `first_step` {}: steps of sgld become smaller",
                    options.last_step, options.first_step));
}

class LangevinChain final : public Chain {
 public:
  explicit LangevinChain(ChainSetup given)
      : Chain(std::move(given)),
        schedule_(setup().options, setup().iterations),
        root_(covariance_root(setup().mode.covariance)),
        unbiased_(stops_at_random(setup().options, target().method())),
        squares_(Vector::Zero(setup().start.size())),
        scale_(Vector::Ones(setup().start.size())) {
    auto& sums = counts().half_steps;
    sums.chain = sums.chain_squares = sums.half = sums.half_squares = squares_;
  }

 protected:
  void step(Index iteration) override;
  void visit_state(Archive& archive) override;

 private:
  bool frozen() const { return report().step > 0; }
  inference::Ask ask(Index iteration, std::string_view stops, Index number) const;
  void count(const LogPosterior::Value& value);
  Vector whitened(const Vector& gradient) const { return root_.transpose() * gradient; }
  Vector moved(const Vector& from, const Vector& drift, const Vector& noise) const;
  void learn_scale(const Vector& h, double e);

  // The path in half steps, which lives for some iterations of the phase.
  struct HalfPath {
    Vector phi;
    Index done = 0;  // iterations
    std::vector<LogPosterior::Value> values;
  };
  Index half_step_iterations() const;
  HalfPath half_steps(Index iteration, double e, const Vector& z);
  void settle_half_steps(HalfPath next);

  double phase_ratio(double e) const;
  void watch_phase(Index iteration, double e, const Vector& gradient);

  StepSchedule schedule_;
  Matrix root_;
  bool unbiased_;
  Vector last_ = setup().start;
  std::vector<Vector> batch_;
  Vector squares_;  // of the whitened gradient, a mean that forgets
  Vector scale_;    // of M in whitened directions
  Vector half_;     // where the path in half steps is; empty before it begins
  Index half_done_ = 0;
};

void LangevinChain::step(Index iteration) {
  const auto value = target().at(phi(), ask(iteration, "random stops", iteration));
  Rng rng = stream("langevin", iteration);
  const Vector z = normals(rng, phi().size());
  const double e = frozen() ? report().step : schedule_.at(iteration - 1);
  const bool halved = frozen() && value.possible() && half_done_ < half_step_iterations();
  HalfPath half;
  if (halved) half = half_steps(iteration, e, z);
  // All is known: from here on nothing throws.
  count(value);
  if (!value.possible()) {  // back to where there was a gradient
    ++counts().failed;
    move_to(last_);
    return;
  }
  last_ = phi();
  const Vector h = whitened(value.gradient);
  if (!frozen()) learn_scale(h, e);
  Vector drift = 0.5 * e * scale_.cwiseProduct(h);
  const double longest = kLongestDrift * std::sqrt(static_cast<double>(drift.size()));
  if (!frozen() && drift.norm() > longest) drift *= longest / drift.norm();
  move_to(moved(phi(), drift, std::sqrt(e) * z));
  if (halved) settle_half_steps(std::move(half));
  watch_phase(iteration, e, value.gradient);
}

void LangevinChain::visit_state(Archive& archive) {
  auto& report = counts();
  archive.array("last", last_);
  archive.columns("batch", batch_);
  archive.array("squares", squares_);
  archive.array("scale", scale_);
  archive.number("least_scale", report.least_scale);
  std::vector<Vector> half;
  if (half_.size() > 0) half.push_back(half_);
  archive.columns("half", half);
  if (!half.empty()) half_ = half.front();
  archive.number("half_done", half_done_);
  archive.number("half_steps", report.half_steps.iterations);
  archive.array("half_steps_chain", report.half_steps.chain);
  archive.array("half_steps_chain_squares", report.half_steps.chain_squares);
  archive.array("half_steps_half", report.half_steps.half);
  archive.array("half_steps_half_squares", report.half_steps.half_squares);
}

// Stops are drawn from a stream of their own, named by chain, purpose and number.
inference::Ask LangevinChain::ask(Index iteration, std::string_view stops, Index number) const {
  const auto set = static_cast<std::uint64_t>((iteration - 1) / setup().options.redraw);
  inference::Ask out{.tolerance = kLangevinTolerance, .probes = set};
  if (!unbiased_) return out;
  out.tolerance = kMeanTolerance;
  out.random_stop =
      krylov::RandomStopOptions{.early_tolerance = inference::early_tolerance(setup().rows),
                                .seed = stream(stops, number).bits64(),
                                .measure_residuals = false};
  return out;
}

void LangevinChain::count(const LogPosterior::Value& value) {
  ++counts().evaluations;
  if (!value.possible()) return;
  auto& solves = counts().solves;
  ++solves.gradients;
  solves.iterations += value.iterations;
  solves.unsolved += !value.solved;
  if (!value.random_stops) return;
  ++solves.unbiased;
  solves.random_stops += value.random_stops->solves;
  solves.continued += value.random_stops->continued;
  solves.extra_iterations += value.random_stops->extra_iterations;
  solves.variance += value.random_stops->relative_variance;
  if (!value.random_stops->pass_error) return;
  ++solves.float32_passes;
  solves.pass_error = std::max(solves.pass_error, *value.random_stops->pass_error);
}

// from + L (drift + S^1/2 noise), M = L S L'. At a bound of the box the path turns round, which
// leaves the density inside as it is.
Vector LangevinChain::moved(const Vector& from, const Vector& drift, const Vector& noise) const {
  Vector to = from + root_ * (drift + scale_.cwiseSqrt().cwiseProduct(noise));
  const auto& box = setup().target->box();
  for (Index i = 0; i < to.size(); ++i) {
    const double low = box.lower()(i), high = box.upper()(i);
    if (to(i) < low) to(i) = 2 * low - to(i);
    if (to(i) > high) to(i) = 2 * high - to(i);
    to(i) = std::clamp(to(i), low, high);
  }
  return to;
}

// As AdaGrad divides by the root of the sum of squared gradients, but only where a drift would be
// longer than kLongestDrift, and with squares that are forgotten: chains begin far out. Where M is
// too wide by more than 4/e, steps would swing ever further from the mode; with this they do not.
void LangevinChain::learn_scale(const Vector& h, double e) {
  const auto t = static_cast<double>(std::min(report().evaluations, kPhaseBatch));
  squares_ += (h.cwiseAbs2() - squares_) / std::max(1.0, t);
  const Vector drift = 0.5 * e * squares_.cwiseSqrt();
  for (Index i = 0; i < drift.size(); ++i) scale_(i) = std::min(1.0, kLongestDrift / drift(i));
}

// Those that are wanted, as far as the phase lasts.
Index LangevinChain::half_step_iterations() const {
  const Index left = setup().iterations - done();
  return std::min(setup().options.half_steps.value_or(setup().iterations / kHalfStepShare),
                  half_done_ + left);
}

// Two steps of e/2 whose noises add up to that of the step, z = (z1 + z2) / sqrt 2: the two paths
// stay close, and their difference shows the bias of the step in far fewer iterations than two
// chains on their own would (Giles 2008). The probes are those of the chain.
LangevinChain::HalfPath LangevinChain::half_steps(Index iteration, double e, const Vector& z) {
  HalfPath out{half_.size() > 0 ? half_ : phi(), half_done_ + 1, {}};
  Rng rng = stream("half steps", iteration);
  const Vector w = normals(rng, z.size());
  for (const Index part : {0, 1}) {
    auto value =
        target().at(out.phi, ask(iteration, "random stops of half steps", 2 * iteration + part));
    // Without a gradient the path stays where it is, as a chain that is sent back does.
    if (value.possible())
      out.phi = moved(out.phi, 0.25 * e * scale_.cwiseProduct(whitened(value.gradient)),
                      std::sqrt(0.25 * e) * (part == 0 ? Vector(z + w) : Vector(z - w)));
    out.values.push_back(std::move(value));
  }
  return out;
}

// The chain has moved too. The first quarter is for the difference to settle.
void LangevinChain::settle_half_steps(HalfPath next) {
  const Index wanted = half_step_iterations();
  for (const auto& value : next.values) {
    count(value);
    if (!value.possible()) ++counts().failed;
  }
  half_ = std::move(next.phi);
  half_done_ = next.done;
  if (4 * half_done_ <= wanted) return;
  auto& sums = counts().half_steps;
  const Vector chain = phi() - setup().mode.phi, half = half_ - setup().mode.phi;
  ++sums.iterations;
  sums.chain += chain;
  sums.chain_squares += chain.cwiseAbs2();
  sums.half += half;
  sums.half_squares += half.cwiseAbs2();
}

// The largest eigenvalue of e/4 L'V L is that of e/4 M^1/2 V M^1/2.
double LangevinChain::phase_ratio(double e) const {
  const auto n = static_cast<double>(batch_.size());
  Matrix g(batch_.front().size(), static_cast<Index>(batch_.size()));
  for (std::size_t i = 0; i < batch_.size(); ++i) g.col(static_cast<Index>(i)) = batch_[i];
  g.colwise() -= Vector(g.rowwise().mean());
  const Matrix h = scale_.cwiseSqrt().asDiagonal() * (root_.transpose() * g);
  const Matrix v = h * h.transpose() / (n - 1);
  return 0.25 * e * Eigen::SelfAdjointEigenSolver<Matrix>(v).eigenvalues().maxCoeff();
}

void LangevinChain::watch_phase(Index iteration, double e, const Vector& gradient) {
  batch_.push_back(gradient);
  if (static_cast<Index>(batch_.size()) == kPhaseBatch) {
    counts().ratios.push_back(phase_ratio(e));
    batch_.clear();
    if (!frozen() && report().ratios.back() < setup().options.phase_ratio) {
      counts().step = e;
      counts().frozen_at = iteration;
      counts().acceptance = 1;
      counts().least_scale = scale_.minCoeff();
    }
  }
  // The first draw is the one after the step was frozen.
  if (!frozen() || keeps() || warming(iteration)) return;
  keep_from(iteration);
}

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
                                   },
                                   .check = check_langevin});
              },
          .draws = DrawsInfo{.iterations = kSgldIterations,
                             .evaluations = 1 + 2.0 / static_cast<double>(kHalfStepShare),
                             .options = {"first_step", "last_step", "phase_ratio", "redraw",
                                         "half_steps", "unbiased"}}};
}

}  // namespace mercer::training
