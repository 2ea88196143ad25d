// A kernel is a value; its matrix is known by its products and never stored.
#include <cstdio>

#include "mercer/mercer.hpp"

using namespace mercer;

int main() {
  // 2000 points with three inputs.
  Matrix x(2000, 3);
  Rng(1, "points").fill_uniform(x);

  // A sum of two terms, each with a variance in front; matern52 has a lengthscale per input.
  auto kernel = kernels::Kernel::parse("matern52 + 0.5 * linear:iso", 3);
  kernel.set_all_lengthscales(0.4);
  const auto names = kernel.parameter_names();
  const Vector theta = kernel.log_parameters();
  for (std::size_t p = 0; p < names.size(); ++p)
    std::printf("%-28s %g\n", names[p].c_str(), std::exp(theta[static_cast<Index>(p)]));

  // K V for four vectors at once: tiles of K are evaluated, used and forgotten.
  const operators::TiledOperator k(kernel, x);
  Matrix v(2000, 4);
  Rng(2, "vectors").fill_normal(v);
  Matrix kv(2000, 4);
  k.apply(v, kv);

  // The same, pair by pair, for the first ten rows.
  const Matrix rows = kernel.reference_matrix(x.topRows(10), x);
  const double difference = (rows * v - kv.topRows(10)).norm() / kv.topRows(10).norm();
  std::printf("instruction set %s, difference from the reference %.1e\n", operators::simd_target(),
              difference);
  return difference < 1e-12 ? 0 : 1;
}
