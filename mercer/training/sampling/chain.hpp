// One Markov chain over the log parameters. Every iteration draws from a stream of its own, named
// by chain and iteration, and is made whole or not at all: a chain that is stopped anywhere goes on
// to the same bits, whatever the threads.
#pragma once

#include <optional>

#include "mercer/training/archive.hpp"
#include "mercer/training/sampling/draws.hpp"
#include "mercer/training/sampling/log_posterior.hpp"
#include "mercer/training/sampling/options.hpp"

namespace mercer::training {

/// What a chain begins with.
struct ChainSetup {
  const SampleOptions& options;
  const PosteriorMode& mode;
  std::unique_ptr<LogPosterior> target;
  std::unique_ptr<LogPosterior> surrogate;  // null unless the sampler asks for one
  Vector start;
  Index rows = 0;  // of the data
  Index iterations = 0, warmup = 0;
  std::uint64_t seed = 0;  // of this chain alone
};

class Chain {
 public:
  explicit Chain(ChainSetup setup) : setup_(std::move(setup)), phi_(setup_.start) {
    report_.start = setup_.start;
    method_state_ = setup_.target->method().save();  // where the start was looked at
  }
  virtual ~Chain() = default;

  /// The next iteration. Throws Interrupted; the chain is then as it was before.
  void advance();
  Index done() const { return report_.iterations; }
  bool keeps() const { return report_.first_kept > 0; }
  const Vector& phi() const { return phi_; }
  const ChainReport& report() const { return report_; }
  /// The draw of an iteration that is kept.
  Vector draw(Index iteration) const;
  inference::State save();
  void load(const inference::State& state);

 protected:
  /// The iteration of this number, from 1. What it computes must not reach a member, but for
  /// counts(), before the last thing that may throw.
  virtual void step(Index iteration) = 0;
  virtual void visit_state(Archive& archive) = 0;

  Rng stream(std::string_view purpose, Index iteration) const {
    return Rng(setup_.seed, purpose, static_cast<std::uint64_t>(iteration));
  }
  static Vector normals(Rng& rng, Index count);
  LogPosterior& target() { return *setup_.target; }
  const ChainSetup& setup() const { return setup_; }
  ChainReport& counts() { return report_; }
  bool warming(Index iteration) const { return iteration <= setup_.warmup; }
  /// From this iteration on draws are kept.
  void keep_from(Index iteration) { report_.first_kept = iteration; }
  void move_to(Vector phi) { phi_ = std::move(phi); }

 private:
  void visit_all(Archive& archive);

  ChainSetup setup_;
  Vector phi_;
  ChainReport report_;
  std::vector<double> kept_;       // draws from report_.first_kept on, one after the other
  inference::State method_state_;  // of the method, after the last whole iteration
};

using MakeChain = std::unique_ptr<Chain> (*)(ChainSetup setup);

/// What a sampler is to the loop over its chains.
struct Sampler {
  inference::EvidenceBy evidence;
  Index iterations;  // unless the user says otherwise
  double warmup;     // share of these, the same
  MakeChain make;
  bool values = false;  // takes values of the evidence, also by solves; else gradients by solves
  /// A cheap evidence beside the exact one.
  std::optional<inference::EvidenceBy> surrogate = {};
  /// Throws InvalidArgument when options ask for what the method cannot do; called before any work.
  void (*check)(const SampleOptions& options, const inference::Inference& method) = nullptr;
};

/// Draws from the posterior by all chains of the options of the search: finds the mode, spreads the
/// starts, runs, keeps checkpoints, and leaves the draws with the search. Returns their mean.
Vector run_chains(Search& search, const Sampler& sampler);

}  // namespace mercer::training
