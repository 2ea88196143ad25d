// Kernel conjugate gradients against conjugate gradients on the coefficients (Ratliff & Bagnell
// 2007): iterations and products to the same loss, and the condition numbers of theorem 1.
//
//   ratliff_bagnell_study DATA_FOLDER RESULTS_FOLDER [squares|logistic|curve|theorem]...
//                         [--rows N] [--max-iterations N] [--seconds S]
#include <fmt/format.h>
#include <fmt/os.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/krylov/kernel_cg.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/stored_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer {
namespace {

using krylov::KernelCgResult;
using krylov::KernelLoss;
using krylov::RegularizedLoss;

const std::vector<double> lambdas = {1.0, 0.1, 0.01};
const std::vector<double> levels = {1e-1, 1e-2, 1e-3, 1e-4, 1e-6};  // (P - min P) / min P

struct Arguments {
  std::string data, results;
  std::vector<std::string> parts;
  Index rows = 5000;          // random rows of larger sets
  int max_iterations = 3000;  // on coefficients
  double seconds = 240;       // of one run
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key.rfind("--", 0) != 0) {
      words.push_back(key);
      continue;
    }
    if (i + 1 >= argc) throw InvalidArgument(key + " needs a value");
    const std::string value = argv[++i];
    if (key == "--rows") {
      a.rows = std::stol(value);
    } else if (key == "--max-iterations") {
      a.max_iterations = std::stoi(value);
    } else if (key == "--seconds") {
      a.seconds = std::stod(value);
    } else {
      throw InvalidArgument("unknown option " + key);
    }
  }
  if (words.size() < 2) throw InvalidArgument("give the data folder and the results folder");
  a.data = words[0];
  a.results = words[1];
  a.parts.assign(words.begin() + 2, words.end());
  if (a.parts.empty()) a.parts = {"theorem", "squares", "logistic", "curve"};
  return a;
}

struct Problem {
  std::string name;
  Matrix points;   // standardised
  Matrix targets;  // N x t: standardised, or -1 and +1
};

/// Random rows of a file, inputs and target standardised.
Problem load(const Arguments& a, const std::string& name, Index most) {
  auto all = data::read_dataset(a.data + "/" + name + ".csv.gz");
  if (all.size() > std::min(most, a.rows)) {
    auto rows = Rng(0, "rows of a study").permutation(all.size());
    rows.resize(static_cast<std::size_t>(std::min(most, a.rows)));
    std::sort(rows.begin(), rows.end());
    all = data::take_rows(all, rows);
  }
  Problem p{name, all.inputs, all.target};
  all.scaling.scale_inputs(p.points);
  return p;
}

Problem regression(const Arguments& a, const std::string& name, Index most) {
  Problem p = load(a, name, most);
  p.targets.array() -= p.targets.mean();
  p.targets /= std::sqrt(p.targets.squaredNorm() / double(p.targets.rows()));
  return p;
}

/// One class against the rest, a column for each of `positives`.
Problem two_class(const Arguments& a, const std::string& name, Index most,
                  const std::vector<int>& positives) {
  Problem p = load(a, name, most);
  const Vector codes = p.targets;
  p.targets.resize(codes.size(), static_cast<Index>(positives.size()));
  for (Index j = 0; j < p.targets.cols(); ++j)
    p.targets.col(j) = (codes.array() == double(positives[static_cast<std::size_t>(j)]))
                           .select(Vector::Ones(codes.size()), -Vector::Ones(codes.size()));
  return p;
}

/// Gaussian kernel of lengthscale sqrt(d).
kernels::Kernel kernel_for(const Problem& p) {
  auto kernel = kernels::Kernel::parse("rbf:iso", p.points.cols());
  kernel.set_all_lengthscales(std::sqrt(double(p.points.cols())));
  return kernel;
}

/// kernel_cg goes on to a gap of 1e-9: its last objective stands for the minimum.
struct Runs {
  KernelCgResult functions, coefficients;
  double optimum(Index column) const { return functions.objective(column); }
};

/// Both methods from zero.
Runs run_both(const Arguments& a, const linalg::LinearOperator& k, const RegularizedLoss& loss,
              const Matrix& y) {
  const Observer in_time = [&](const Iteration& it) {
    return it.seconds < a.seconds ? Action::proceed : Action::stop;
  };
  Runs r;
  Matrix alpha = Matrix::Zero(y.rows(), y.cols());
  r.functions = kernel_cg(k, loss, y, alpha, {.tolerance = 1e-9, .max_iterations = 20000}, in_time);
  alpha.setZero();
  r.coefficients = coefficient_cg(k, loss, y, alpha,
                                  {.tolerance = 1e-7, .max_iterations = a.max_iterations}, in_time);
  return r;
}

/// Iterations until P - optimum <= level * optimum; empty when it never was.
std::string iterations_to(const KernelCgResult& r, Index column, double optimum, double level) {
  const int last = r.column_iterations[static_cast<std::size_t>(column)];
  for (Index k = 0; k <= last; ++k)
    if (r.objectives(k, column) - optimum <= level * optimum) return fmt::format("{}", k);
  return "";
}

class Table {
 public:
  Table(const Arguments& a, const std::string& name)
      : file_(fmt::output_file(a.results + "/" + name + ".csv")) {
    file_.print(
        "data,rows,inputs,lambda,column,level,kernel_cg,coefficient_cg,coefficient_cg_ran,"
        "optimum,optimum_gap\n");
  }

  void add(const Problem& p, double lambda, const Runs& r) {
    for (Index j = 0; j < p.targets.cols(); ++j)
      for (const double level : levels)
        file_.print("{},{},{},{:g},{},{:g},{},{},{},{:.9g},{:.3g}\n", p.name, p.points.rows(),
                    p.points.cols(), lambda, j, level,
                    iterations_to(r.functions, j, r.optimum(j), level),
                    iterations_to(r.coefficients, j, r.optimum(j), level),
                    r.coefficients.column_iterations[static_cast<std::size_t>(j)], r.optimum(j),
                    r.functions.gap(j));
    file_.flush();
  }

 private:
  fmt::ostream file_;
};

void compare(const Arguments& a, Table& table, const Problem& p, KernelLoss loss) {
  const operators::StoredOperator k(kernel_for(p), p.points);
  for (const double lambda : lambdas) {
    const auto r = run_both(a, k, {loss, lambda}, p.targets);
    table.add(p, lambda, r);
    fmt::print("{} lambda {:g}: kernel_cg {} iterations ({:.1f} s), coefficient_cg {} ({:.1f} s)\n",
               p.name, lambda, r.functions.iterations, r.functions.seconds,
               r.coefficients.iterations, r.coefficients.seconds);
    std::fflush(stdout);
  }
}

void squares(const Arguments& a) {
  Table table(a, "squares");
  for (const char* name : {"boston", "energy", "yacht", "stock", "concrete", "abalone", "kin8nm"})
    compare(a, table, regression(a, name, a.rows), KernelLoss::squared);
}

void logistic(const Arguments& a) {
  Table table(a, "logistic");
  for (const char* name :
       {"sonar", "heart", "australian", "diabetes_pima", "german", "splice", "banana", "spambase"})
    compare(a, table, two_class(a, name, a.rows, {1}), KernelLoss::logistic);
  compare(a, table, two_class(a, "usps_train", a.rows, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
          KernelLoss::logistic);
}

/// Covtype, class 2 against the rest: the same, and both histories as (P - min P) / min P.
void curve(const Arguments& a) {
  const Problem p = two_class(a, "covtype_sub", a.rows, {2});
  const operators::StoredOperator k(kernel_for(p), p.points);
  Table table(a, "covtype");
  auto file = fmt::output_file(a.results + "/curve.csv");
  file.print("lambda,method,iteration,excess\n");
  for (const double lambda : lambdas) {
    const auto r = run_both(a, k, {KernelLoss::logistic, lambda}, p.targets);
    table.add(p, lambda, r);
    const double optimum = r.optimum(0);
    const auto write = [&](const char* method, const KernelCgResult& run) {
      for (Index i = 0; i < run.objectives.rows(); ++i)
        file.print("{:g},{},{},{:.6g}\n", lambda, method, i,
                   (run.objectives(i, 0) - optimum) / optimum);
    };
    write("kernel_cg", r.functions);
    write("coefficient_cg", r.coefficients);
    file.flush();
  }
}

double condition(const Matrix& a) {
  const Vector e = linalg::symmetric_eigen(a).values;
  return e(e.size() - 1) / e(0);
}

/// kappa of K, of the Hessian in functions F = K^1/2 C K^1/2 + lambda and in coefficients
/// K^1/2 F K^1/2; C = I, or the curvatures of the logistic losses at the minimum.
void theorem(const Arguments& a) {
  auto file = fmt::output_file(a.results + "/theorem.csv");
  file.print("data,rows,loss,lambda,kappa_kernel,kappa_functions,kappa_coefficients\n");
  const auto check = [&](const Problem& p, KernelLoss loss) {
    Matrix k(p.points.rows(), p.points.rows());
    operators::dense_matrix(kernel_for(p), p.points, k);
    k.diagonal().array() += 1e-4;  // K alone is singular in double precision
    const auto eigen = linalg::symmetric_eigen(k);
    const Matrix root =
        eigen.vectors * eigen.values.cwiseSqrt().asDiagonal() * eigen.vectors.transpose();
    for (const double lambda : lambdas) {
      Vector c = Vector::Ones(k.rows());
      if (loss == KernelLoss::logistic) {
        Matrix alpha = Matrix::Zero(k.rows(), 1);
        krylov::kernel_cg(linalg::DenseOperator(k), {loss, lambda}, p.targets.col(0), alpha);
        const Eigen::ArrayXd e = (-(k * alpha).array().abs()).exp();
        c = e / (1 + e).square();
      }
      Matrix functions = root * c.asDiagonal() * root;
      functions.diagonal().array() += lambda;
      const Matrix coefficients = k * c.asDiagonal() * k + lambda * k;
      file.print("{},{},{},{:g},{:.8g},{:.8g},{:.8g}\n", p.name, p.points.rows(),
                 loss == KernelLoss::squared ? "squared" : "logistic", lambda, condition(k),
                 condition(functions), condition(coefficients));
    }
  };
  check(regression(a, "boston", 300), KernelLoss::squared);
  check(regression(a, "concrete", 300), KernelLoss::squared);
  check(two_class(a, "heart", 300, {1}), KernelLoss::logistic);
  check(two_class(a, "diabetes_pima", 300, {1}), KernelLoss::logistic);
}

void run(const Arguments& a) {
  for (const auto& part : a.parts) {
    if (part == "squares") {
      squares(a);
    } else if (part == "logistic") {
      logistic(a);
    } else if (part == "curve") {
      curve(a);
    } else if (part == "theorem") {
      theorem(a);
    } else {
      throw InvalidArgument("there is no part '" + part + "'");
    }
  }
}

}  // namespace
}  // namespace mercer

int main(int argc, char** argv) {
  try {
    mercer::run(mercer::parse(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
