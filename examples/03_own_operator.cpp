// Solvers see a matrix only by its action: any symmetric operator will do, for instance the
// one-dimensional Laplacian, which no kernel made.
#include <cstdio>

#include "mercer/mercer.hpp"

using namespace mercer;

namespace {

/// (A x)_i = -x_(i-1) + 2 x_i - x_(i+1), with zeros beyond both ends.
class Laplacian final : public linalg::LinearOperator {
 public:
  explicit Laplacian(Index n) : n_(n) {}
  Index size() const override { return n_; }
  void apply(ConstMatrixView x, MatrixView y) const override {
    y = 2.0 * x;
    y.topRows(n_ - 1) -= x.bottomRows(n_ - 1);
    y.bottomRows(n_ - 1) -= x.topRows(n_ - 1);
  }

 private:
  Index n_;
};

}  // namespace

int main() {
  constexpr Index n = 200;
  const Laplacian a(n);
  const Vector b = Vector::Ones(n);

  // An observer is called once per iteration: it may print, record, or stop.
  int calls = 0;
  const auto observer = [&](const Iteration& now) {
    if (++calls % 50 == 0) std::printf("iteration %3d: residual %.1e\n", now.number, now.value);
    return Action::proceed;
  };
  Matrix x = Matrix::Zero(n, 1);
  const auto result = krylov::cg(a, b, x, {.tolerance = 1e-10}, {.observer = observer});

  // The exact solution is x_i = i (n + 1 - i) / 2.
  double error = 0;
  for (Index i = 1; i <= n; ++i)
    error = std::max(error, std::abs(x(i - 1) - 0.5 * static_cast<double>(i * (n + 1 - i))));
  std::printf("%s after %d iterations, largest error %.1e\n",
              std::string(to_string(result.stop)).c_str(), result.iterations, error);
  // The inverse has norm (n + 1)^2 / pi^2: a residual of 1e-10 |b| is an error below 6e-6.
  return result.converged() && error < 6e-6 ? 0 : 1;
}
