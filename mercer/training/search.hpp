// What all trainers share: the rows and their random order, bounds, the replay log of exact
// evaluations, the checkpoint, the report, and who is told of progress.
#pragma once

#include <cmath>
#include <optional>

#include "mercer/core/timer.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/optim/replay.hpp"
#include "mercer/training/rules.hpp"
#include "mercer/training/training.hpp"

namespace mercer::training {

/// Where a climb on more rows begins, known from fewer; either may be empty.
struct Hint {
  inference::WarmStart warm = {};
  Matrix hessian = {};  // of minus the evidence per entry of y
  /// Log evidence that the climb may leave; 0: that of the rules where a Hessian is known.
  double gain_left = 0;
  /// The climb ends where the last five steps together gained less log evidence; 0: that of the
  /// rules.
  double slow_gain = 0;
  int steps_taken = 0;  // of this start, before this climb
  /// Minus the evidence per entry at the start and its gradient, where they are known already.
  double value = 0;
  Vector gradient = {};
};

/// Where a climb ended, and the log evidence there.
struct Climbed {
  Vector theta;
  inference::LikelihoodValue likelihood;
};

/// Blocks of a level of so many rows: as large as those that were asked for of all.
Index level_blocks(Index blocks, Index rows, Index all);

class Search {
 public:
  Search(const inference::Problem& start, const inference::Observations& rows,
         const TrainingChoice& choice, const LearnRequest& request);

  const inference::Problem& start() const { return start_; }
  const inference::Observations& all() const { return all_; }
  const TrainingChoice& choice() const { return choice_; }
  const TrainOptions& options() const { return request_.options; }
  const Rules& rules() const { return rules_; }
  const optim::Box& box() const { return box_; }
  std::uint64_t seed() const { return request_.seed; }
  /// Of a trainer that returns draws.
  const SampleOptions& sampling() const;
  /// Where row i of a subset of so many rows stands among all.
  Index place(Index i) const { return order_[static_cast<std::size_t>(i)]; }

  /// The first of a random order; all rows as they come.
  inference::Observations rows(Index count) const;
  /// The problem on these rows: on fewer, more inputs may depend on each other, and a linear mean
  /// must do without them.
  inference::Problem problem_on(const inference::Observations& rows) const;
  /// Number of observations y, merged ones included. Objectives are divided by it, so that one
  /// tolerance suits all sizes.
  static double entries(const inference::Observations& rows);
  inference::InferenceSetup setup(const inference::Observations& rows) const;

  /// Maximises the exact evidence of these rows by L-BFGS. Throws Interrupted.
  optim::MinimizeResult climb(const inference::Observations& rows, const Vector& start,
                              const std::string& stage, const Hint& hint = {});
  /// The same of the evidence that this method has of these rows. `problem` is theirs.
  optim::MinimizeResult climb(inference::Inference& method, inference::Problem problem,
                              const inference::Observations& rows, const Vector& start,
                              const std::string& stage, const Hint& hint = {});
  /// The approximation of the choice on these rows, with base points chosen at theta, or those
  /// given.
  std::unique_ptr<inference::Inference> approximation(const inference::Observations& rows,
                                                      inference::Problem problem,
                                                      ConstVectorView theta,
                                                      const Matrix& base = {});
  /// It is at work from here on: steps are told with its base points. Null: no longer.
  void use(const inference::Inference* approximation) { approximation_ = approximation; }
  /// What is kept of it at the end.
  void finish_approximation(const inference::Inference& approximation,
                            const inference::Observations& rows);
  /// The log evidence of these rows where a climb ended; who found it is for the caller to say.
  inference::LikelihoodValue value_of(const optim::MinimizeResult& best,
                                      const inference::Observations& rows) const;
  /// Steps of a start on exact evidences, at most.
  int exact_steps() const;
  /// Minus the exact evidence of these rows per entry, and its gradient; an infinite value where
  /// there is none.
  optim::MinimizeResult evaluate(const inference::Observations& rows, const Vector& theta);
  /// The Hessian of minus the exact evidence per observation, by differences of gradients; empty
  /// where it cannot be computed.
  Matrix hessian(const inference::Observations& rows, const Vector& theta);
  /// The same of the evidence that this method has of these rows; `here`: its gradient at theta,
  /// where that is known.
  Matrix hessian(inference::Inference& method, inference::Problem problem,
                 const inference::Observations& rows, const Vector& theta, Vector here = {});
  /// A warm start for more rows from the latent functions of few; empty where there is none.
  inference::WarmStart warm_start(const inference::Observations& few, Index more,
                                  const Vector& theta);
  /// What is known of the latent functions of fewer rows, for more: their posterior mean there.
  inference::WarmStart on_more_rows(const inference::WarmStart& few, Index more) const;
  /// The Hessian that the last climb began with, corrected by its steps; empty where it had none.
  const Matrix& last_hessian() const { return climbed_hessian_; }
  /// Where the latent functions of the last climb were.
  const inference::WarmStart& last_warm_start() const { return climbed_; }

  /// A step has reached these values.
  void tell(ConstVectorView theta);
  /// The same of a trainer: what it has reached is remembered.
  void reached(ConstVectorView theta);
  /// The values to make a model of, should the search be stopped here.
  void remember(ConstVectorView theta) { learned_ = theta; }
  /// The last of these; none when nothing has been learned yet.
  const std::optional<Vector>& learned() const { return learned_; }
  /// Fractions told from now on are of this share of all learning, from `begin` to `end`.
  void part(double begin, double end);
  /// True: the user wants the stage to end here, with what it has. `fraction` is of the present
  /// part, negative when unknown; what the user is told is of all learning, and never falls.
  bool stopped(const std::string& stage, double fraction, const std::string& detail);
  /// What solves on these rows are called in progress.
  std::string stage(const inference::Observations& rows) const;
  /// Seconds of learning so far, those of observers left out.
  double seconds() const { return timer_.seconds() - outside_; }

  /// What a trainer by solves goes on from; empty in a new run.
  const inference::State& trainer_state() const { return trainer_state_; }
  /// After a step: kept for the next checkpoint, which is written now and then.
  void keep(inference::State state);
  /// The same of a climb over base points, which follows the trainer.
  const inference::State& base_state() const { return base_state_; }
  void keep_base(inference::State state);
  /// The same of passes over all rows, which come last and take long: written at once.
  const inference::State& full_state() const { return full_state_; }
  void keep_full(inference::State state);
  [[noreturn]] void interrupted();
  /// Writes what is not written yet, or that there is nothing yet.
  void finish();

  TrainReport report;
  inference::WarmStart warm;  // of the latent functions of all rows, where the trainer knows them
  inference::State approximation_state;  // Learned::approximation
  Draws draws;                           // of a trainer that returns them

 private:
  optim::Objective objective(inference::Inference& inference, inference::Problem& problem,
                             double entries);
  void remember_climb(ConstVectorView theta, double value, Index rows);
  void load_checkpoint();
  void write_checkpoint();
  void try_to_write_checkpoint();
  void write_checkpoint_in_time();

  inference::Problem start_;
  const inference::Observations& all_;
  const TrainingChoice& choice_;
  const LearnRequest& request_;
  Rules rules_;
  std::string_view exact_method_;
  std::vector<Index> order_;
  optim::Box box_;
  optim::ReplayLog log_;
  // State of the exact method in the climb with this number, for the same bits after a resume.
  inference::State exact_state_;
  int exact_climb_ = 0, climb_ = 0;
  inference::WarmStart climbed_;
  Matrix climbed_hessian_;
  inference::State trainer_state_, base_state_, full_state_;
  Timer since_checkpoint_, timer_;
  double checkpoint_pause_ = 0;   // the first one is written at once
  bool unsaved_ = true;           // or never saved
  std::string checkpoint_error_;  // why the last attempt to write it failed; or empty
  double outside_ = 0;
  int told_ = 0;
  double part_begin_ = 0, part_end_ = 1, fraction_ = -1;
  std::optional<Vector> learned_;
  const inference::Inference* approximation_ = nullptr;
  // Of the best exact climb so far: minus the evidence per entry, and its rows.
  double best_value_ = HUGE_VAL;
  Index best_rows_ = 0;
};

/// Rows of the first exact searches with a likelihood that is not Gaussian.
inline constexpr Index kFewRows = 500;

}  // namespace mercer::training
