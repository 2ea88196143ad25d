// The loop over the chains of a sampler. Chains know nothing of each other, so they may run side by
// side, in any portions, and be stopped anywhere.
#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/training/sampling/chain.hpp"
#include "mercer/training/sampling/side_by_side.hpp"
#include "mercer/training/sampling/summary.hpp"

namespace mercer::training {
namespace {

// Starts lie so many standard deviations of the posterior of the mode's rows around the mode, and
// are drawn anew, closer, while there is no evidence.
constexpr double kStartSpread = 2;
constexpr int kStartTries = 20;
// Seconds between two looks at what the user wants, and between two states for a checkpoint; and
// in multiples of what the last state took to make.
constexpr double kRoundSeconds = 0.2, kStateSeconds = 0.5, kStateShare = 20;
// Of the run, about, that the mode takes.
constexpr double kShareOfMode = 0.02;
// Seconds between two looks at the draws so far.
constexpr double kLookSeconds = 2;

Index default_iterations(const SampleOptions& options, const Sampler& sampler) {
  return options.iterations.value_or(sampler.iterations);
}

Index default_warmup(const SampleOptions& options, const Sampler& sampler) {
  return options.warmup.value_or(static_cast<Index>(
      sampler.warmup * static_cast<double>(default_iterations(options, sampler))));
}

class ChainLoop {
 public:
  ChainLoop(Search& search, const Sampler& sampler);
  Vector run();

 private:
  void begin();
  void begin_again(const inference::State& state);
  std::unique_ptr<inference::Inference> make_method(const inference::InferenceSetup& with) const;
  std::unique_ptr<LogPosterior> make_surrogate(const inference::InferenceSetup& with);
  std::unique_ptr<Chain> make_chain(Index number, bool spread);
  Vector spread_start(LogPosterior& target, std::uint64_t seed) const;
  void advance(Index until);
  bool told_to_stop();
  void keep(bool now);
  Vector finish(bool stopped);
  Index least_done() const;
  Index first_kept() const;
  std::string detail();
  void look_at_draws();

  Search& search_;
  const SampleOptions& options_;
  Sampler sampler_;
  Index iterations_, warmup_;
  inference::Observations rows_;
  inference::Problem problem_;
  JointPrior prior_;
  optim::Box box_;
  PosteriorMode mode_;
  std::vector<std::unique_ptr<Chain>> chains_;
  Timer since_state_;
  double state_pause_ = 0;
  // For progress: diagnostics now and then, and what this run began with.
  ChainsSoFar so_far_;
  Timer since_look_, timer_;
  Index kept_before_ = 0;
};

ChainLoop::ChainLoop(Search& search, const Sampler& sampler)
    : search_(search),
      options_(search.sampling()),
      sampler_(sampler),
      iterations_(default_iterations(options_, sampler)),
      warmup_(default_warmup(options_, sampler)),
      rows_(search.rows(search.choice().rows)),
      problem_(search.problem_on(rows_)),
      prior_(problem_.parameter_names(), options_.prior),
      box_(sampling_box(search.box(), prior_)) {
  validate(options_);
  if (prior_.size() == 0)
    throw InvalidArgument("there is nothing to sample: the model has no parameter");
  if (warmup_ >= iterations_)
    throw InvalidArgument(fmt::format("`warmup` is {} of {} `iterations`: no draw would be kept",
                                      warmup_, iterations_));
}

Vector ChainLoop::spread_start(LogPosterior& target, std::uint64_t seed) const {
  const Matrix root = covariance_root(mode_.covariance_of_rows);
  const bool by_solves = sampler_.evidence == inference::EvidenceBy::solves;
  const inference::Ask ask{.gradient = by_solves && !sampler_.values};
  Rng rng(seed, "start");
  double spread = kStartSpread;
  for (int i = 0; i < kStartTries; ++i) {
    Vector z(mode_.phi.size());
    for (auto& entry : z) entry = rng.normal();
    Vector phi = mode_.phi + spread * (root * z);
    if (target.at(phi, ask).possible()) return phi;
    spread *= 0.8;
  }
  return mode_.phi;
}

// Its neighbours are those of the mode, so that it is one function of the parameters.
std::unique_ptr<LogPosterior> ChainLoop::make_surrogate(const inference::InferenceSetup& with) {
  auto problem = problem_;
  problem.set_log_parameters(mode_.phi);
  auto method =
      inference::make(inference::evidence_method(problem, *sampler_.surrogate), problem, with);
  method->renew(problem);
  return std::make_unique<LogPosterior>(std::move(problem), prior_, box_, std::move(method));
}

std::unique_ptr<Chain> ChainLoop::make_chain(Index number, bool spread) {
  ChainSetup setup{
      .options = options_,
      .mode = mode_,
      .target = nullptr,
      .surrogate = nullptr,
      .start = mode_.phi,
      .rows = rows_.size(),
      .iterations = iterations_,
      .warmup = warmup_,
      .seed = Rng(search_.seed(), "chain", static_cast<std::uint64_t>(number)).bits64()};
  auto with = search_.setup(rows_);
  with.seed = setup.seed;
  setup.target = std::make_unique<LogPosterior>(problem_, prior_, box_, make_method(with));
  if (sampler_.surrogate) setup.surrogate = make_surrogate(with);
  if (spread) setup.start = spread_start(*setup.target, setup.seed);
  return sampler_.make(std::move(setup));
}

std::unique_ptr<inference::Inference> ChainLoop::make_method(
    const inference::InferenceSetup& with) const {
  return inference::make(inference::evidence_method(problem_, sampler_.evidence), problem_, with);
}

void ChainLoop::begin() {
  if (sampler_.check != nullptr) sampler_.check(options_, *make_method(search_.setup(rows_)));
  search_.part(0, kShareOfMode);
  mode_ = find_posterior_mode(search_, prior_, box_);
  search_.tell(mode_.phi);
  for (Index c = 0; c < options_.chains; ++c) chains_.push_back(make_chain(c, true));
}

std::string chain_prefix(Index number) { return fmt::format("chain{}_", number); }

void ChainLoop::begin_again(const inference::State& state) {
  Archive archive(state);
  archive.array("mode", mode_.phi);
  archive.number("mode_rows", mode_.rows);
  archive.array("mode_covariance", mode_.covariance_of_rows);
  archive.array("covariance", mode_.covariance);
  for (Index c = 0; c < options_.chains; ++c) {
    inference::State own;
    archive.nested(chain_prefix(c), own);
    chains_.push_back(make_chain(c, false));
    chains_.back()->load(own);
  }
}

void ChainLoop::keep(bool now) {
  if (search_.options().checkpoint.empty()) return;
  if (!now && since_state_.seconds() < state_pause_) return;
  const Timer timer;
  Archive archive;
  archive.array("mode", mode_.phi);
  archive.number("mode_rows", mode_.rows);
  archive.array("mode_covariance", mode_.covariance_of_rows);
  archive.array("covariance", mode_.covariance);
  for (Index c = 0; c < options_.chains; ++c) {
    inference::State own = chains_[static_cast<std::size_t>(c)]->save();
    archive.nested(chain_prefix(c), own);
  }
  search_.keep(archive.state());
  since_state_ = Timer();
  state_pause_ = std::max(kStateSeconds, kStateShare * timer.seconds());
}

Index ChainLoop::least_done() const {
  Index least = iterations_;
  for (const auto& chain : chains_) least = std::min(least, chain->done());
  return least;
}

Index ChainLoop::first_kept() const {
  Index first = 0;
  for (const auto& chain : chains_) {
    if (!chain->keeps()) return 0;
    first = std::max(first, chain->report().first_kept);
  }
  return first;
}

void ChainLoop::advance(Index until) {
  const auto go = [&](Index c) {
    auto& chain = *chains_[static_cast<std::size_t>(c)];
    while (chain.done() < until) chain.advance();
  };
  if (rows_.size() <= kSideBySideRows) {
    parallel_for(options_.chains, [&](Index c, int) { go(c); });
    return;
  }
  for (Index c = 0; c < options_.chains; ++c) go(c);
}

void ChainLoop::look_at_draws() {
  const Index first = first_kept(), last = least_done(), chains = options_.chains;
  if (first == 0 || last < first || since_look_.seconds() < kLookSeconds) return;
  std::vector<Matrix> phi(static_cast<std::size_t>(prior_.size()),
                          Matrix(last - first + 1, chains));
  for (Index c = 0; c < chains; ++c)
    for (Index t = first; t <= last; ++t) {
      const Vector draw = chains_[static_cast<std::size_t>(c)]->draw(t);
      for (Index i = 0; i < draw.size(); ++i)
        phi[static_cast<std::size_t>(i)](t - first, c) = draw(i);
    }
  so_far_ = chains_so_far(phi);
  since_look_ = Timer();
}

std::string ChainLoop::detail() {
  const Index done = least_done(), first = first_kept();
  auto text = fmt::format("iteration {} of {}", done, iterations_);
  if (first == 0 || done < first) return text + " (warm-up)";
  look_at_draws();
  if (so_far_.rhat) text += fmt::format(", R-hat {:.3f}", *so_far_.rhat);
  const Index kept = done - first + 1;
  if (so_far_.ess && kept > kept_before_)
    text += fmt::format(", {:.2g} effective draws/s",
                        *so_far_.ess * static_cast<double>(kept - kept_before_) /
                            (static_cast<double>(kept) * timer_.seconds()));
  return text;
}

bool ChainLoop::told_to_stop() {
  const Index done = least_done(), first = first_kept();
  if (first > 0 && done >= first) search_.remember(chains_.front()->phi());
  return search_.stopped("sample", static_cast<double>(done) / static_cast<double>(iterations_),
                         detail());
}

Vector ChainLoop::run() {
  if (search_.trainer_state().empty())
    begin();
  else
    begin_again(search_.trainer_state());
  if (first_kept() > 0) kept_before_ = std::max<Index>(0, least_done() - first_kept() + 1);
  timer_ = Timer();
  search_.part(kShareOfMode, 1);
  Index round = 1;
  bool stopped = told_to_stop();
  while (!stopped && least_done() < iterations_) {
    const Timer timer;
    try {
      advance(std::min(iterations_, least_done() + round));
    } catch (const Interrupted&) {
      stopped = true;
    }
    // What a round takes has no part in the draws.
    const double seconds = std::max(timer.seconds(), 1e-6);
    round = std::max<Index>(
        1, static_cast<Index>(static_cast<double>(round) * std::min(2.0, kRoundSeconds / seconds)));
    keep(stopped);
    stopped = stopped || told_to_stop();
  }
  keep(true);
  return finish(stopped);
}

Vector ChainLoop::finish(bool stopped) {
  const Index first = first_kept(), last = least_done();
  auto& draws = search_.draws;
  search_.report.stop = stopped ? StopReason::interrupted : StopReason::converged;
  if (first == 0 || last < first) {
    if (stopped) search_.interrupted();
    double ratio = 0;
    for (const auto& chain : chains_)
      if (!chain->report().ratios.empty()) ratio = std::max(ratio, chain->report().ratios.back());
    throw ToleranceNotReached(fmt::format(
        "no draw was kept: after {} iterations the noise of gradients is still {:.2g} of the noise "
        "injected, above the `phase_ratio` {}; give more `iterations` or `probes`, or a smaller "
        "`last_step`",
        last, ratio, options_.phase_ratio));
  }
  const Index per_chain = last - first + 1;
  draws.phi.resize(per_chain * options_.chains, prior_.size());
  for (Index c = 0; c < options_.chains; ++c) {
    const auto& chain = *chains_[static_cast<std::size_t>(c)];
    for (Index t = first; t <= last; ++t) {
      draws.phi.row(c * per_chain + t - first) = chain.draw(t).transpose();
      draws.chain.push_back(c + 1);
      draws.iteration.push_back(t);
    }
    draws.chains.push_back(chain.report());
    search_.report.evaluations += static_cast<int>(chain.report().evaluations);
    search_.report.failed_evaluations += static_cast<int>(chain.report().failed);
  }
  draws.iterations = iterations_;
  draws.warmup = warmup_;
  draws.mode = mode_.phi;
  draws.mode_rows = mode_.rows;
  search_.report.steps = static_cast<int>(last);
  Vector mean = draws.phi.colwise().mean().transpose();
  search_.reached(mean);
  return mean;
}

}  // namespace

Vector run_chains(Search& search, const Sampler& sampler) {
  return ChainLoop(search, sampler).run();
}

std::vector<std::string> sampler_names() {
  std::vector<std::string> names = {"auto"};
  for (const auto& trainer : trainers())
    if (trainer.draws) names.emplace_back(trainer.name);
  return names;
}

}  // namespace mercer::training
