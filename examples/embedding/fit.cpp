// Fits a function of two inputs and predicts it, with a progress line and a way to stop.
#include <cmath>
#include <cstdio>
#include <mercer/models/fit.hpp>
#include <mercer/models/predictor.hpp>

int main() {
  // A lattice that fills the unit square, and what was observed there.
  mercer::Matrix x(200, 2);
  for (mercer::Index i = 0; i < x.rows(); ++i)
    x.row(i) << std::fmod(0.618034 * (i + 1), 1), std::fmod(0.414214 * (i + 1), 1);
  mercer::Vector y = (4 * x.col(0)).array().sin() + x.col(1).array();
  for (mercer::Index i = 0; i < x.rows(); ++i) y[i] += 0.1 * std::sin(100.0 * i);  // with errors

  try {
    mercer::models::FitOptions options;
    options.method.kernel = "matern52";
    const auto fit = mercer::models::fit(
        mercer::data::make_dataset(x, y), options, [](const mercer::Progress& progress) {
          std::fprintf(stderr, "%s\n", progress.stage.c_str());
          return mercer::Action::proceed;  // Action::stop ends the fit
        });

    const mercer::models::Predictor predictor(fit.model, {});
    const auto p = predictor.predict(mercer::Matrix::Constant(1, 2, 0.5));
    const double exact = std::sin(2.0) + 0.5;
    std::printf("f(0.5, 0.5) = %.4f +- %.4f, exactly %.4f; solved to within %.1e\n", p.mean[0],
                p.latent_sd(0, 0), exact, p.error_bound(0, 0));
    return std::abs(p.mean[0] - exact) < 0.1 ? 0 : 1;
  } catch (const mercer::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
