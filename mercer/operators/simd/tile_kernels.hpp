// What the rest of this room sees of the SIMD code: plain pointers and a table of functions, one
// table per instruction set, chosen at run time.
//
// A strip is a few rows (a multiple of 4) of kernel values against a panel of columns (a multiple
// of 64), row after row without gaps, small enough to stay in the first-level cache between the
// steps that make and use it:
//   accumulate   features of two point sets -> the number a leaf sees of each pair
//   profile      that number -> the leaf's value, stored, added or multiplied into a strip
//   multiply_*   strip times vectors, for the rows and (by symmetry) for the columns
// One leaf and one vector go the same way: keeping its values in registers between `profile` and
// `multiply` was tried and measured no faster, as the round trip through the first-level cache is
// hidden behind the arithmetic.
#pragma once

#include <string>
#include <vector>

#include "mercer/core/types.hpp"
#include "mercer/kernels/registry.hpp"

namespace mercer::operators::simd {

/// Rows of a strip are packed four by four: feature f of row i is at [(i/4) * features + f]*4 +
/// i%4.
inline constexpr Index kPackedRows = 4;
/// Panels of columns are multiples of this, whatever the instruction set.
inline constexpr Index kColumnAlign = 64;
/// The same of strips in double, which have half the lanes.
inline constexpr Index kColumnAlignDouble = 32;

/// How a strip is written.
enum class Write { store, add, multiply };

/// How the features of a leaf meet.
///   dot     acc = a.b - |a|^2/2 - |b|^2/2 (distance family), acc = a.b (dot family)
///   direct  acc = -sum_f (a_f - b_f)^2
///   exact   acc = -sum_f ((a_f - b_f) scale_f)^2: differences of the points as they are
enum class Form : char { dot, direct, exact };

/// One leaf prepared for some rows and a panel of columns.
template <class T>
struct LeafPanel {
  const T* rows = nullptr;            // packed
  const T* columns = nullptr;         // feature f of column j at f * column_stride + j
  const T* row_half_norms = nullptr;  // -|a|^2/2; null for the dot family
  const T* column_half_norms = nullptr;
  Index column_stride = 0;
  const T* feature_scales = nullptr;  // exact form only
  Index features = 0;
  Form form = Form::dot;
};

struct ProfileSpec {
  kernels::LeafKind kind;
  kernels::OwnNumbers own;
};

/// A strip of kernel values and the vectors it meets. Vectors are either `few` (whole vectors, a
/// stride apart) or `many` (as many as there are lanes, interleaved: a stride leads from one point
/// to the next).
template <class T>
struct StripProduct {
  const T* strip = nullptr;
  Index rows = 0;
  Index columns = 0;
  Index vectors = 0;            // few: 1, 2 or 4; many: ignored, as it is the number of lanes
  const T* column_v = nullptr;  // v at the columns
  const T* row_v = nullptr;     // v at the rows
  Index v_stride = 0;
  double* row_y = nullptr;  // y at the rows, accumulated in double
  Index y_stride = 0;
  T* column_y = nullptr;  // partial sums at the columns; null when there is no symmetry
  Index column_y_stride = 0;
};

template <class T>
struct TileKernels {
  /// The factor on features that makes `profile` cheapest: acc is then that factor squared larger.
  double (*gain)(kernels::LeafKind);
  /// out[f * out_stride + j] = clamp((source[f * stride + j] - centre[f]) * scale[f]) for columns
  /// 0 .. count, rounded to T; half_norms[j] = -sum_f out^2 / 2 unless null.
  void (*centre)(const double* source, Index stride, Index features, const double* centre,
                 const double* scale, Index count, T* out, Index out_stride, T* half_norms,
                 double* workspace);
  void (*accumulate)(const LeafPanel<T>&, Index first_row, Index rows, Index columns, T* acc);
  /// out (write)= factor * profile(acc); acc and out may be the same when storing.
  void (*profile)(const ProfileSpec&, double factor, Write, const T* acc, T* out, Index count);
  /// out (write)= factor * in.
  void (*combine)(double factor, Write, const T* in, T* out, Index count);
  void (*multiply_few)(const StripProduct<T>&);
  void (*multiply_many)(const StripProduct<T>&);
  /// y += partial, partial = 0.
  void (*flush)(T* partial, double* y, Index count);
  Index lanes;
};

/// A strip of S_ij = d objective / d argument_ij of one leaf, with its features (no gain), for the
/// sums over pairs that make the derivatives in its lengthscales.
template <class T>
struct SlopeStrip {
  LeafPanel<T> panel;
  Index first_row = 0;
  Index rows = 0;
  Index columns = 0;
  const T* slope = nullptr;
};

/// What the derivative in a period needs: inputs and their circle map (cosines, then sines) of the
/// rows and columns of a strip, feature-major, not centred. Summed in double.
template <class T>
struct CircleStrip {
  const double* row_inputs = nullptr;
  const double* row_circle = nullptr;
  Index row_stride = 0;
  const double* column_inputs = nullptr;
  const double* column_circle = nullptr;
  Index column_stride = 0;
  Index num_inputs = 0;
  const double* scale = nullptr;  // 1/lengthscale of each input
  Index rows = 0;
  Index columns = 0;
  const T* slope = nullptr;
};

/// Arithmetic of a strip in T; what is summed over a strip is handed out in double.
template <class T>
struct GradientKernels {
  /// out = sum_r u_row[r] v_column[r] (+ v_row[r] u_column[r] when symmetric); vectors are stored
  /// one after the other, `stride` apart.
  void (*weights)(const T* u_row, const T* v_row, const T* u_column, const T* v_column,
                  Index stride, Index vectors, bool symmetric, Index rows, Index columns, T* out);
  /// value and slope = d value / d argument from acc without gain; d value / d log shape when the
  /// leaf has one that is not a period.
  void (*evaluate)(const ProfileSpec&, const T* acc, T* value, T* slope, T* shape_slope,
                   Index count);
  double (*dot)(const T* a, const T* b, Index count);
  /// by_feature[f] += sum_ij S_ij (a_if - b_jf)^2, by differences.
  void (*squared_differences)(const SlopeStrip<T>&, double* by_feature);
  /// moments[r * features + f] = sum_j S_rj b_jf; row_sums[r] = sum_j S_rj; column_sums[j] +=.
  void (*moments)(const SlopeStrip<T>&, double* moments, double* row_sums, T* column_sums);
  /// out[r * features + f] = sum_j S_rj (a_rf - b_jf), by differences in every form: for
  /// derivatives in the inputs of the rows.
  void (*differences)(const SlopeStrip<T>&, double* out);
  /// sum_ij S_ij sum_c (x_ic - x_jc) sin(phase_ic - phase_jc) / l_c^2.
  double (*period)(const CircleStrip<T>&);
};

/// The tables for the instruction set in use.
const TileKernels<float>& tile_kernels(float);
const TileKernels<double>& tile_kernels(double);
const GradientKernels<float>& gradient_kernels(float);
const GradientKernels<double>& gradient_kernels(double);

/// "AVX3", "AVX2", "SSE4", "SCALAR" ...
const char* target_name();
/// The instruction sets this machine and this build have, best first.
std::vector<std::string> available_targets();
/// Uses one of them from now on, for tests and benchmarks. "" returns to the one that the
/// environment variable MERCER_SIMD names or, where that is not set, to the best.
void force_target(const std::string& name);
/// Makes the first use of any table obey MERCER_SIMD. Throws InvalidArgument when this machine does
/// not have the instruction set that it names.
void obey_environment();

/// Fused multiply-adds per second of one thread with independent registers: the machine's limit.
double measure_fma_rate(float, double seconds);
double measure_fma_rate(double, double seconds);

}  // namespace mercer::operators::simd
