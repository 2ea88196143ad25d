// The parts of `mercer demo`. Each computes something on simulated data whose truth is known and
// says what came out in words and as JSON. A part that has a time box and exceeds it says so, and
// the demo goes on with the next one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/record.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"
#include "mercer/studies/compare.hpp"
#include "mercer/studies/simulate.hpp"

namespace mercer::cli::demo {

/// How much is simulated, and how long each part may take. Unset: as long as it needs.
struct Size {
  Index rows = 60000, test_rows = 1000;
  Index dense_rows = 2000;  // certificate: rows that are also factored
  Index to_the_end = 6000;  // rows on which plain conjugate gradients run until they converge
  Index check_rows = 4;     // predicted rows whose variance is also solved for exactly
  Index class_rows = 600, class_test_rows = 1000;
  Index learning_rows = 12000;  // at random; the system is solved with all rows
  std::string solver = "auto";
  std::optional<double> learning_seconds = 40, fit_seconds = 90, plain_seconds = 12;
};
/// `quick` is for tests: few rows, and no time boxes, so that a busy machine changes nothing.
Size size_of(bool quick);

/// What all parts share. `seed` names the simulated data.
class Setting {
 public:
  /// With `silent` nothing goes to standard output, because JSON follows.
  Setting(Size sizes, std::uint64_t the_seed, bool silent, const Console& the_console)
      : size(std::move(sizes)), seed(the_seed), console(the_console), silent_(silent) {}

  const Size size;
  const std::uint64_t seed;
  const Console& console;

  /// Prints "2. Title" and a paragraph, with a number of its own for each section.
  void section(const std::string& title, const std::string& text) const;
  /// Prints a paragraph, broken into lines.
  void paragraph(const std::string& text) const;
  /// Prints lines as they are.
  void table(const std::string& text) const;

 private:
  bool silent_;
  mutable int sections_ = 0;
};

/// Passes progress on and asks to stop when time is up. Copies share their state.
class TimeBox {
 public:
  /// Learning by solves ends after `learning` seconds with the values that it has; everything is
  /// stopped after `whole` seconds. Unset: never.
  TimeBox(const Console& console, std::optional<double> learning, std::optional<double> whole);
  ProgressCallback progress() const;
  bool ended_learning() const { return state_->ended_learning; }
  bool exceeded() const { return state_->exceeded; }
  /// The user asked to stop (Ctrl-C).
  bool interrupted() const { return state_->interrupted; }

 private:
  struct State {
    Timer timer;
    bool ended_learning = false, exceeded = false, interrupted = false;
  };
  ProgressCallback inner_;
  std::optional<double> learning_, whole_;
  std::shared_ptr<State> state_;
};

// Sections 1 to 4: data, plan, fit, predictions (field.cpp).

/// The hyperparameters that the field is drawn with.
struct Truth {
  std::vector<double> lengthscales = {0.4, 0.6, 0.9, 1.6};
  double signal_variance = 4, noise_variance = 0.04;
};

struct Field {
  Truth truth;
  data::Dataset train;
  Matrix test_inputs;
  Vector test_target, test_latent;  // y, and f without noise
};
Field simulate_field(const Setting& setting);

void show_plan(const Setting& setting, const Field& field, Json& json);

/// A fit of all rows, or of fewer when the time box did not allow that.
models::FitResult fit_field(const Setting& setting, const Field& field, Json& json);

void predict_field(const Setting& setting, const Field& field, const models::FitResult& fit,
                   Json& json);

// Section 5: the certificate against a dense factorisation (certificate.cpp).

/// The first rows of the field on the scale of the model, where its hyperparameters apply as they
/// are.
data::Dataset scaled_rows(const Field& field, const models::KernelMachine& model, Index rows);

/// False when a bound was smaller than the error that it bounds.
bool check_certificate(const Setting& setting, const Field& field, const models::FitResult& fit,
                       Json& json);

// Section 6: the same systems without a preconditioner (iterations.cpp).
void compare_iterations(const Setting& setting, const Field& field, const models::FitResult& fit,
                        Json& json);

// Section 7: three classes (classes.cpp).
void learn_classes(const Setting& setting, Json& json);

}  // namespace mercer::cli::demo
