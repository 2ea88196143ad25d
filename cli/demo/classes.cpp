// Section 7 of the demo: three classes that compete. The probabilities behind the labels are known,
// so that the scores can be held against the best that anyone could do.
#include <fmt/format.h>

#include <cmath>

#include "cli/demo/parts.hpp"
#include "cli/format.hpp"
#include "cli/score_text.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/models/class_scores.hpp"
#include "mercer/models/prediction_scores.hpp"

namespace mercer::cli::demo {
namespace {

constexpr Index kClasses = 3;

struct LabelledPoints {
  Matrix x, probabilities;  // n x 2, n x 3
  Vector label;             // 0, 1 or 2
};

// Three independent fields f_c in the plane, and a label drawn with P(c) = exp(f_c) / sum exp(f).
LabelledPoints simulate(Index n, std::uint64_t seed) {
  auto kernel = kernels::Kernel::parse("matern52", 2);
  kernel.set_all_lengthscales(0.3);
  kernel.set_all_variances(6.0);
  const inference::Problem problem{kernel, 1e-6, inference::MeanKind::zero};
  LabelledPoints out;
  Rng points(seed, "demo-class-points");
  out.x = data::uniform_points(n, 2, points);
  out.probabilities.resize(n, kClasses);
  studies::DrawOptions options;
  options.memory_bytes = static_cast<double>(available_memory_bytes());
  for (Index c = 0; c < kClasses; ++c) {
    options.seed = seed + static_cast<std::uint64_t>(c) + 1;
    const auto draw = studies::draw_from_gp(problem, out.x, options);
    out.probabilities.col(c) = draw.latent.array().exp();
  }
  out.probabilities.array().colwise() /= out.probabilities.rowwise().sum().array().eval();
  out.label.resize(n);
  Rng labels(seed, "demo-labels");
  for (Index i = 0; i < n; ++i) {
    double left = labels.uniform();
    Index c = 0;
    while (c < kClasses - 1 && (left -= out.probabilities(i, c)) > 0) ++c;
    out.label[i] = static_cast<double>(c);
  }
  return out;
}

std::string comparison_table(const models::ClassificationScores& learned,
                             const models::ClassificationScores& truth) {
  Table table("lrr", {"", "learned", "true probabilities"});
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  table.row({"wrong labels", percent(learned.error_rate), percent(truth.error_rate)});
  table.row({"mean negative log probability", number(learned.nll, 3), number(truth.nll, 3)});
  table.row({"Brier score", number(learned.brier, 3), number(truth.brier, 3)});
  table.row({"mean |confidence - accuracy|", number(learned.calibration_error, 2),
             number(truth.calibration_error, 2)});
  return table.text(3);
}

}  // namespace

void learn_classes(const Setting& setting, Json& json) {
  const Index rows = setting.size.class_rows, test_rows = setting.size.class_test_rows;
  const auto points = simulate(rows + test_rows, setting.seed);
  const auto train =
      data::make_dataset(points.x.topRows(rows), points.label.head(rows), {"east", "north"});
  models::FitOptions options;
  options.likelihood = "softmax";
  options.classes = models::find_classes(train);
  options.method.kernel = "matern52:iso";
  options.train.restarts = 0;
  const auto fit = models::fit(train, options, setting.console.progress());
  const models::Predictor predictor(fit.model, {});
  const auto p = predictor.predict(points.x.bottomRows(test_rows), setting.console.progress());

  std::vector<Index> truth;
  for (Index i = 0; i < test_rows; ++i) {
    const auto place = fit.model.classes.find(points.label[rows + i]);
    truth.push_back(place.value_or(0));
  }
  models::ClassScoreKeeper learned, best;
  learned.add(p.probabilities, truth);
  best.add(points.probabilities.bottomRows(test_rows), truth);
  setting.section(
      "Three classes",
      fmt::format(
          "Labels drawn from three competing fields in the plane; {} are learned from "
          "(softmax, Laplace's approximation), {} are predicted. The labels are random even "
          "to someone who knows the true probabilities, so nobody could do better than "
          "the right column. {}",
          count(rows), count(test_rows),
          fit.model.certificate.rigorous
              ? fmt::format("Every latent mean is within {} of the one at the exact mode.",
                            number(fit.model.certificate.mean_error_bound, 2))
              : ""));
  const auto scores = learned.scores(), bound = best.scores();
  setting.table(comparison_table(scores, bound));
  json["classes"] = {{"n", rows}, {"learned", scores_json(scores)}, {"truth", scores_json(bound)}};
  put(json["classes"], "mean_error_bound", fit.model.certificate.mean_error_bound);
}

}  // namespace mercer::cli::demo
