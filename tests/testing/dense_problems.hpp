// Small dense problems that tests share: seeded, with known spectrum.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/types.hpp"

namespace mercer::testing {

inline Matrix random_matrix(Index rows, Index columns, std::uint64_t seed,
                            std::string_view purpose = "random_matrix") {
  Matrix a(rows, columns);
  Rng(seed, purpose).fill_normal(a);
  return a;
}

/// Symmetric, with the given eigenvalues and a random orthogonal basis.
inline Matrix matrix_with_spectrum(const Vector& eigenvalues, std::uint64_t seed) {
  const Index n = eigenvalues.size();
  const Matrix q = Eigen::HouseholderQR<Matrix>(random_matrix(n, n, seed, "basis")).householderQ();
  const Matrix a = q * eigenvalues.asDiagonal() * q.transpose();
  return 0.5 * (a + a.transpose());
}

/// Positive definite, eigenvalues spread evenly in the logarithm from 1 down to 1 / condition.
inline Matrix spd_matrix(Index n, double condition, std::uint64_t seed) {
  Vector eigenvalues(n);
  for (Index i = 0; i < n; ++i)
    eigenvalues(i) = std::pow(condition, n == 1 ? 0.0 : -double(i) / double(n - 1));
  return matrix_with_spectrum(eigenvalues, seed);
}

/// Sets the number of threads for a scope.
class WithThreads {
 public:
  explicit WithThreads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~WithThreads() { set_num_threads(before_); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  int before_;
};

/// Same shape and the same bits (signed zeros are told apart from nothing else).
inline bool same_bits(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && (a.array() == b.array()).all();
}

}  // namespace mercer::testing
