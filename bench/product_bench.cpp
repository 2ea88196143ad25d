// The speed of kernel products, in one table:
//   rate       entries of the N x N matrix served per second (N^2 over the time of a product)
//   of limit   the time that N^2 (d + 10) fused multiply-adds in float32, or N^2 (d + 16) in
//              float64, take at the rate measured in this run on as many threads, over the time
//              of the product. Symmetry halves the work, so it can pass 100 %.
//   numpy      times faster than the best NumPy form (bench/numpy_product.py) on the same data
//   scalar     times faster than this library without SIMD
//
//   product_bench [--points N] [--threads T] [--seconds S] [--quick]
//                 [--write-points DIR | --numpy FILE]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer {
namespace {

using operators::Precision;

struct Arguments {
  Index points = 20000;
  double seconds = 0.5;  // spent on each line at least
  bool quick = false;    // rbf at d = 8 only
  std::string write_points;
  std::string numpy;
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--quick") {
      a.quick = true;
      continue;
    }
    if (i + 1 >= argc) throw InvalidArgument(key + " needs a value");
    const std::string value = argv[++i];
    if (key == "--points") {
      a.points = std::stol(value);
    } else if (key == "--threads") {
      set_num_threads(std::stoi(value));
    } else if (key == "--seconds") {
      a.seconds = std::stod(value);
    } else if (key == "--write-points") {
      a.write_points = value;
    } else if (key == "--numpy") {
      a.numpy = value;
    } else {
      throw InvalidArgument("unknown option " + key);
    }
  }
  return a;
}

Matrix standard_points(Index n, Index d) {
  Matrix x(n, d);
  Rng(1, "product bench", static_cast<std::uint64_t>(d)).fill_normal(x);
  return x;
}

void write_points(const Arguments& a) {
  for (const Index d : {3, 8, 26}) {
    const Matrix x = standard_points(a.points, d);
    const std::string path = fmt::format("{}/x{}.f64", a.write_points, d);
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(x.data()),
              static_cast<std::streamsize>(sizeof(double)) * x.size());
    if (!out) throw IoError("cannot write " + path);
  }
}

const char* name_of(Precision p) { return p == Precision::float32 ? "float32" : "float64"; }

// Fused multiply-adds per second of all threads together.
double fma_rate(Precision precision) {
  std::vector<double> rates(static_cast<std::size_t>(num_threads()));
  parallel_for(num_threads(), [&](Index task, int) {
    rates[static_cast<std::size_t>(task)] = precision == Precision::float32
                                                ? operators::simd::measure_fma_rate(float(), 0.3)
                                                : operators::simd::measure_fma_rate(double(), 0.3);
  });
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

double seconds_per_product(const std::string& text, Index n, Index d, Index columns,
                           Precision precision, double seconds) {
  auto kernel = kernels::Kernel::parse(text, d);
  kernel.set_all_lengthscales(std::sqrt(static_cast<double>(d)));
  const operators::TiledOperator op(kernel, standard_points(n, d), precision);
  Matrix v(n, columns);
  Rng(2, "product bench").fill_normal(v);
  Matrix y(n, columns);
  op.apply(v, y);
  double best = std::numeric_limits<double>::infinity();
  const Timer total;
  for (int run = 0; run < 3 || total.seconds() < seconds; ++run) {
    const Timer timer;
    op.apply(v, y);
    best = std::min(best, timer.seconds());
  }
  return best;
}

// Lines "d columns precision seconds form" as numpy_product.py writes them: the best per case.
using Case = std::tuple<Index, Index, std::string>;
struct NumpyTime {
  double seconds = 0;
  std::string form;
};
std::map<Case, NumpyTime> read_numpy(const std::string& path) {
  std::map<Case, NumpyTime> best;
  std::ifstream in(path);
  Index d = 0;
  Index columns = 0;
  std::string precision;
  NumpyTime time;
  while (in >> d >> columns >> precision >> time.seconds >> time.form) {
    auto [at, added] = best.try_emplace({d, columns, precision}, time);
    if (!added && time.seconds < at->second.seconds) at->second = time;
  }
  return best;
}

struct Row {
  std::string kernel;
  Index d;
  Index columns;
  Precision precision;
};

std::vector<Row> rows_of(bool quick) {
  std::vector<Row> rows;
  const std::vector<Index> dims = quick ? std::vector<Index>{8} : std::vector<Index>{3, 8, 26};
  for (const auto precision : {Precision::float32, Precision::float64}) {
    for (const Index d : dims)
      for (const Index columns : {1, 16}) rows.push_back({"rbf", d, columns, precision});
    for (const char* kernel : {"matern32", "matern52", "rbf + linear"})
      rows.push_back({kernel, 8, 1, precision});
  }
  return rows;
}

void print_table(const Arguments& a) {
  const auto numpy = read_numpy(a.numpy);
  std::map<Precision, double> peak;
  for (const auto precision : {Precision::float32, Precision::float64}) {
    peak[precision] = fma_rate(precision);
    fmt::print("{} peak: {:.1f} G fused multiply-adds/s, {} thread(s), {}\n", name_of(precision),
               peak[precision] * 1e-9, num_threads(), operators::simd_target());
  }
  const auto targets = operators::simd::available_targets();
  fmt::print("K v for N = {} standard normal points, lengthscale sqrt(d)\n\n", a.points);
  fmt::print("{:<14}{:>4}{:>5}{:>9}{:>11}{:>12}{:>10}{:>10}{:>10}\n", "kernel", "d", "rhs", "type",
             "seconds", "Gentries/s", "of limit", "numpy", "scalar");
  const double entries = static_cast<double>(a.points) * static_cast<double>(a.points);
  for (const auto& row : rows_of(a.quick)) {
    const double seconds =
        seconds_per_product(row.kernel, a.points, row.d, row.columns, row.precision, a.seconds);
    const double extra = row.precision == Precision::float32 ? 10 : 16;
    const double limit = entries * (static_cast<double>(row.d) + extra) / peak[row.precision];
    // The scalar path on fewer points: its time per entry does not depend on their number.
    const Index few = std::min<Index>(a.points, 3000);
    operators::simd::force_target(targets.back());
    const double scalar =
        seconds_per_product(row.kernel, few, row.d, row.columns, row.precision, 0) /
        (static_cast<double>(few) * static_cast<double>(few));
    operators::simd::force_target("");
    const auto other = numpy.find({row.d, row.columns, name_of(row.precision)});
    const bool known = row.kernel == "rbf" && other != numpy.end();
    fmt::print("{:<14}{:>4}{:>5}{:>9}{:>11.4f}{:>12.2f}{:>9.0f}%{:>10}{:>9.1f}x  {}\n", row.kernel,
               row.d, row.columns, name_of(row.precision), seconds, entries / seconds * 1e-9,
               100 * limit / seconds,
               known ? fmt::format("{:.1f}x", other->second.seconds / seconds) : "-",
               scalar * entries / seconds,
               known
                   ? fmt::format("(numpy {:.2f} s, {})", other->second.seconds, other->second.form)
                   : "");
    std::fflush(stdout);
  }
  if (numpy.empty()) fmt::print("\nNumPy columns left out: NumPy is not installed.\n");
}

}  // namespace
}  // namespace mercer

int main(int argc, char** argv) {
  try {
    const auto arguments = mercer::parse(argc, argv);
    if (!arguments.write_points.empty()) {
      mercer::write_points(arguments);
    } else {
      mercer::print_table(arguments);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "product_bench: {}\n", error.what());
    return 1;
  }
}
