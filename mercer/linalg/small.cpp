#include "mercer/linalg/small.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/linalg/detail/lapack.hpp"
#include "mercer/linalg/detail/serial_blas.hpp"

namespace mercer::linalg {

using detail::blas_int;

bool small_cholesky(Index n, double* a) {
  const detail::SerialBlas serial;
  const int order = blas_int(n);
  int info = 0;
  dpotrf_("L", &order, a, &order, &info);
  return info == 0;
}

double small_cholesky_raised(const Matrix& a, Matrix& l, const char* owner) {
  double extra = 0;
  for (double step = 1e-12;; step *= 100) {
    l = a;
    l.diagonal().array() += extra;
    if (small_cholesky(l.rows(), l.data())) return extra;
    if (!(step <= 1))
      throw InvalidArgument(fmt::format("{}: the kernel is not finite near a point", owner));
    extra = step * a.diagonal().maxCoeff();
  }
}

void small_solve_lower(Index n, const double* l, Transpose op, double* x) {
  const detail::SerialBlas serial;
  cblas_dtrsv(CblasColMajor, CblasLower, op == Transpose::yes ? CblasTrans : CblasNoTrans,
              CblasNonUnit, blas_int(n), l, blas_int(n), x, 1);
}

template <>
MERCER_HIDDEN void small_gram(Index k, Index n, double alpha, const double* a, double beta,
                              double* c) {
  const detail::SerialBlas serial;
  cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, blas_int(n), blas_int(k), alpha, a,
              blas_int(k), beta, c, blas_int(n));
}

template <>
MERCER_HIDDEN void small_gram(Index k, Index n, float alpha, const float* a, float beta, float* c) {
  const detail::SerialBlas serial;
  cblas_ssyrk(CblasColMajor, CblasLower, CblasTrans, blas_int(n), blas_int(k), alpha, a,
              blas_int(k), beta, c, blas_int(n));
}

template <>
MERCER_HIDDEN void small_transposed_product(Index k, Index m, Index n, const double* a,
                                            const double* b, double* c) {
  const detail::SerialBlas serial;
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, blas_int(m), blas_int(n), blas_int(k), 1.0,
              a, blas_int(k), b, blas_int(k), 0.0, c, blas_int(m));
}

template <>
MERCER_HIDDEN void small_transposed_product(Index k, Index m, Index n, const float* a,
                                            const float* b, float* c) {
  const detail::SerialBlas serial;
  cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, blas_int(m), blas_int(n), blas_int(k), 1.0F,
              a, blas_int(k), b, blas_int(k), 0.0F, c, blas_int(m));
}

template <>
MERCER_HIDDEN void small_multiply(Index m, Index n, const double* a, Transpose op, const double* x,
                                  double* y) {
  const detail::SerialBlas serial;
  cblas_dgemv(CblasColMajor, op == Transpose::yes ? CblasTrans : CblasNoTrans, blas_int(m),
              blas_int(n), 1.0, a, blas_int(m), x, 1, 0.0, y, 1);
}

template <>
MERCER_HIDDEN void small_multiply(Index m, Index n, const float* a, Transpose op, const float* x,
                                  float* y) {
  const detail::SerialBlas serial;
  cblas_sgemv(CblasColMajor, op == Transpose::yes ? CblasTrans : CblasNoTrans, blas_int(m),
              blas_int(n), 1.0F, a, blas_int(m), x, 1, 0.0F, y, 1);
}

}  // namespace mercer::linalg
