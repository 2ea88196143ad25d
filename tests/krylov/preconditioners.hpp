// Preconditioners and operators that the tests of this room share.
#pragma once

#include <limits>
#include <utility>

#include "mercer/krylov/cg.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"

namespace mercer::testing {

/// A product column by column, so that a column's bits cannot depend on its neighbours.
class ColumnwiseOperator final : public linalg::LinearOperator {
 public:
  explicit ColumnwiseOperator(Matrix a) : a_(std::move(a)) {}
  Index size() const override { return a_.rows(); }
  void apply(ConstMatrixView x, MatrixView y) const override {
    for (Index j = 0; j < x.cols(); ++j)
      linalg::gemm(1.0, a_, linalg::Transpose::no, x.col(j), linalg::Transpose::no, 0.0, y.col(j));
    products += x.cols();
  }
  mutable Index products = 0;

 private:
  Matrix a_;
};

/// Only solve() matters to solvers.
class SolveOnly : public linalg::Preconditioner {
 public:
  double log_det() const override { return 0; }
  void sample(Rng&, MatrixView) const override {}
};

/// P = D.
class Diagonal final : public SolveOnly {
 public:
  explicit Diagonal(Vector d) : d_(std::move(d)) {}
  Index size() const override { return d_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override {
    z = d_.cwiseInverse().asDiagonal() * r;
  }

 private:
  Vector d_;
};

/// P = A.
class Exact final : public SolveOnly {
 public:
  explicit Exact(const Matrix& a) : n_(a.rows()), factor_(a) {}
  Index size() const override { return n_; }
  void solve(ConstMatrixView r, MatrixView z) const override {
    z = r;
    factor_.solve_in_place(z);
  }

 private:
  Index n_;
  linalg::Cholesky factor_;
};

/// Another P at every call: positive definite and scaling each coordinate by up to `spread`, in a
/// pattern that moves on.
class Changing final : public SolveOnly {
 public:
  Changing(Index n, double spread) : n_(n), spread_(spread) {}
  Index size() const override { return n_; }
  void solve(ConstMatrixView r, MatrixView z) const override {
    ++calls_;
    for (Index i = 0; i < n_; ++i) {
      const double phase = 0.5 + 0.5 * std::sin(1.7 * double(i) + 2.3 * double(calls_));
      z.row(i) = std::pow(spread_, phase) * r.row(i);
    }
  }

 private:
  Index n_;
  double spread_;
  mutable int calls_ = 0;
};

/// (A + delta I)^-1 by a few conjugate gradients: another P at every call, and it counts.
class InnerCg final : public SolveOnly, public linalg::InnerIterations {
 public:
  InnerCg(const Matrix& a, double delta, double tolerance)
      : a_(a + delta * Matrix::Identity(a.rows(), a.rows())), tolerance_(tolerance) {}
  Index size() const override { return a_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override {
    Matrix x = Matrix::Zero(r.rows(), r.cols());
    const auto result = krylov::cg(a_, r, x, {.tolerance = tolerance_});
    for (const int k : result.column_iterations) iterations_ += k;
    products_ += result.matvecs;
    z = x;
  }
  std::int64_t inner_iterations() const override { return iterations_; }
  std::int64_t inner_products() const override { return products_; }

 private:
  linalg::DenseOperator a_;
  double tolerance_;
  mutable std::int64_t iterations_ = 0, products_ = 0;
};

/// The identity, until it gives what is not a number.
class GivesNan final : public SolveOnly {
 public:
  GivesNan(Index n, int from_call) : n_(n), from_call_(from_call) {}
  Index size() const override { return n_; }
  void solve(ConstMatrixView r, MatrixView z) const override {
    z = r;
    if (++calls_ >= from_call_) z(0, 0) = std::numeric_limits<double>::quiet_NaN();
  }

 private:
  Index n_;
  int from_call_;
  mutable int calls_ = 0;
};

}  // namespace mercer::testing
