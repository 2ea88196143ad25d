// Section 5 of the demo: conjugate gradients, stopped early or late, on rows that are also solved
// by a dense Cholesky factorisation; the distance of their predictions beside the bound that the
// certificate gives for it.
#include <fmt/format.h>

#include <algorithm>

#include "cli/demo/parts.hpp"
#include "cli/format.hpp"

namespace mercer::cli::demo {
namespace {

struct Check {
  double tolerance, bound, error;  // in units of y
  int iterations;
};

// Solves with the hyperparameters of `model` and predicts means at the (scaled) test inputs.
struct Solved {
  models::FitResult fit;
  models::Predictions predictions;
};
Solved solve_again(const data::Dataset& rows, const models::KernelMachine& model,
                   const Matrix& test_inputs, const std::string& solver, double tolerance,
                   const Console& console) {
  const auto values = models::standardised(model.problem);
  models::FitOptions options;
  options.method.kernel = model.method.kernel;
  options.method.lengthscale = values.lengthscales();
  options.method.signal_variance = values.signal_variance;
  options.method.noise = values.noise_variance;
  options.method.solver = solver;
  options.method.preconditioner = "none";
  options.method.tolerance = tolerance;
  options.method.accuracy = 0;  // or loose tolerances would not be loose
  options.method.max_iterations = 100000;
  options.train.train = "none";
  options.standardize = false;
  options.evidence = false;
  Solved out;
  out.fit = models::fit(rows, options, console.progress());
  models::PredictOptions means;
  means.variance.method = "none";
  out.predictions = models::Predictor(out.fit.model, means).predict(test_inputs);
  return out;
}

}  // namespace

data::Dataset scaled_rows(const Field& field, const models::KernelMachine& model, Index rows) {
  Matrix x = field.train.inputs.topRows(rows);
  Vector y = field.train.target.head(rows);
  model.scaling.scale_inputs(x);
  model.scaling.scale_target(y);
  return data::make_dataset(std::move(x), std::move(y), {"a", "b", "c", "d"}, false);
}

bool check_certificate(const Setting& setting, const Field& field, const models::FitResult& fit,
                       Json& json) {
  const auto& model = fit.model;
  const auto rows = scaled_rows(field, model, setting.size.dense_rows);
  Matrix test = field.test_inputs;
  model.scaling.scale_inputs(test);
  const auto& console = setting.console;
  const auto dense = solve_again(rows, model, test, "cholesky", 1e-6, console);
  std::vector<Check> checks;
  for (const double tolerance : {1e-2, 1e-4, 1e-6, 1e-8}) {
    const auto iterative = solve_again(rows, model, test, "cg", tolerance, console);
    const double error =
        (iterative.predictions.mean - dense.predictions.mean).cwiseAbs().maxCoeff();
    checks.push_back({tolerance,
                      model.scaling.unscale_width(iterative.predictions.error_bound.maxCoeff()),
                      model.scaling.unscale_width(error), iterative.fit.solve.iterations});
  }
  const bool kept =
      std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.error <= c.bound; });
  setting.section(
      "Certificate",
      fmt::format("Is the bound true? {} of the rows are few enough for a dense Cholesky "
                  "factorisation. Against it, conjugate gradients on the same rows that stop early "
                  "or late: the largest error over {} predicted means, beside the bound that the "
                  "residual gave without knowing the exact answer. The bound {}.",
                  count(setting.size.dense_rows), count(test.rows()),
                  kept ? "holds each time" : "DOES NOT HOLD; please report this"));
  Table table("rrrr", {"stop at residual", "iterations", "true error", "bound"});
  json["promises"] = Json::array();
  for (const auto& check : checks) {
    table.row({number(check.tolerance, 1), count(check.iterations), number(check.error, 2),
               number(check.bound, 2)});
    Json entry = {{"iterations", check.iterations}};
    put(entry, "tolerance", check.tolerance);
    put(entry, "bound", check.bound);
    put(entry, "error", check.error);
    json["promises"].push_back(std::move(entry));
  }
  setting.table(table.text(3));
  return kept;
}

}  // namespace mercer::cli::demo
