// Every preconditioner over rows that two ranks share: the same P as on one rank, or the rows of
// each rank alone, as its entry in the registry says.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/krylov/fcg.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "tests/preconditioners/every_preconditioner.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"
#include "tests/testing/split_kernel_operator.hpp"

namespace mercer::preconditioners {
namespace ranks_test {

using linalg::RowSpace;
using testing::on_two_ranks;
using testing::random_matrix;
using testing::rows_of;
using testing::SplitKernelOperator;

class PreconditionersOverRanks : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr Index n = 90, cut = 40, columns = 3;

  const PreconditionerInfo& info() const { return std::get<0>(GetParam()); }
  bool whole() const { return info().over_ranks == OverRanks::whole; }
  testing::SmallGp problem() const {
    return testing::small_gp({.num_points = n,
                              .noise_spread = std::get<1>(GetParam()) ? 1.0 : 100.0,
                              .kernel = "matern32:iso"});
  }
  /// Those that iterate inside are asked to do so to the end: P is then one matrix.
  PreconditionerOptions options() const {
    PreconditionerOptions options;
    if (info().takes.rank) options.rank = 20;
    if (info().takes.inner_tolerance) options.inner_tolerance = 1e-13;
    return options;
  }
  static linalg::Diagonal noise_of(const testing::SmallGp& gp, const RowSpace& space) {
    if (gp.row_noise.uniform()) return gp.row_noise;
    return Vector(rows_of(space, gp.row_noise.vector(n)));
  }
};

/// What a preconditioner gives: P^-1 r, log|P| and a draw.
struct Outcome {
  Matrix solved, drawn;
  double log_det = 0;
};

Outcome outcome(const linalg::Preconditioner& p, const PreconditionerInfo& info,
                ConstMatrixView r) {
  Outcome out{Matrix(r.rows(), r.cols()), Matrix::Zero(r.rows(), r.cols())};
  p.solve(r, out.solved);
  Rng rng(5, "draw");
  if (info.can_sample) p.sample(rng, out.drawn);
  if (info.has_log_det) out.log_det = p.log_det();
  return out;
}

// The rounding of sums over other groups of rows, times the condition number of P, 1e5 at most.
// What iterates inside stops at 1e-13 of r.
constexpr double accuracy = 1e-8;

TEST_P(PreconditionersOverRanks, AreTheSameMatrixOrThatOfTheRowsAlone) {
  const auto gp = problem();
  const Matrix r = random_matrix(n, columns, 1);
  Outcome expected{Matrix(n, columns), Matrix(n, columns)};
  if (whole()) {
    const auto built = make(info().name, gp.kernel_operator, gp.row_noise, options());
    expected = outcome(*built.preconditioner, info(), r);
  } else {
    for (const auto& [first, rows] : {std::pair(Index{0}, cut), std::pair(cut, n - cut)}) {
      const operators::TiledOperator part(gp.kernel_operator.kernel(),
                                          gp.kernel_operator.points().middleRows(first, rows),
                                          operators::Precision::float64);
      linalg::Diagonal noise = gp.row_noise;
      if (!noise.uniform()) noise = Vector(gp.row_noise.vector(n).segment(first, rows));
      const auto built = make(info().name, part, noise, options());
      const auto of_part = outcome(*built.preconditioner, info(), r.middleRows(first, rows));
      expected.solved.middleRows(first, rows) = of_part.solved;
      expected.log_det += of_part.log_det;
    }
  }
  Outcome shared{Matrix(n, columns), Matrix(n, columns)};
  on_two_ranks(n, cut, [&](const RowSpace& space) {
    const SplitKernelOperator k(gp.kernel_operator, space);
    const auto built = make(info().name, Target{k, noise_of(gp, space)}, options());
    EXPECT_EQ(built.preconditioner->row_space(), space);
    const auto part = outcome(*built.preconditioner, info(), rows_of(space, r));
    shared.solved.middleRows(space.begin(), space.size()) = part.solved;
    shared.drawn.middleRows(space.begin(), space.size()) = part.drawn;
    EXPECT_NEAR(part.log_det, expected.log_det, accuracy * std::abs(expected.log_det));
    const bool said = built.report.notes.find("on this rank alone") != std::string::npos;
    EXPECT_EQ(said, !whole()) << built.report.notes;
  });
  EXPECT_LE((shared.solved - expected.solved).norm(), accuracy * expected.solved.norm());
  if (whole()) {
    EXPECT_LE((shared.drawn - expected.drawn).norm(), accuracy * expected.drawn.norm());
  } else if (info().can_sample) {
    // Ranks draw from different streams: the parts do not repeat each other.
    EXPECT_GT((shared.drawn.topRows(cut) - shared.drawn.middleRows(cut, cut)).norm(), 0.1);
  }
}

TEST_P(PreconditionersOverRanks, ServeASolve) {
  const auto gp = problem();
  const Matrix exact = gp.a.matrix().ldlt().solve(gp.y);
  const krylov::SolverOptions solver{.tolerance = 1e-10, .max_iterations = 2000};
  const auto alone = make(info().name, gp.kernel_operator, gp.row_noise, options());
  Matrix x_alone = Matrix::Zero(n, 1), x = x_alone;
  const auto expected =
      krylov::fcg(gp.a, gp.y, x_alone, solver, {.preconditioner = alone.preconditioner.get()});
  krylov::SolveResult results[2];
  on_two_ranks(n, cut, [&](const RowSpace& space) {
    const SplitKernelOperator k(gp.kernel_operator, space);
    const auto noise = noise_of(gp, space);
    const linalg::ShiftedOperator a(k, noise);
    const auto built = make(info().name, Target{k, noise}, options());
    Matrix part = Matrix::Zero(space.size(), 1);
    results[space.begin() == 0 ? 0 : 1] = krylov::fcg(
        a, rows_of(space, gp.y), part, solver, {.preconditioner = built.preconditioner.get()});
    x.middleRows(space.begin(), space.size()) = part;
  });
  EXPECT_TRUE(results[0].converged());
  EXPECT_EQ(results[0].iterations, results[1].iterations);
  EXPECT_EQ(results[0].relative_residual, results[1].relative_residual);
  // Residual 1e-10 times the condition number, below 1e5.
  EXPECT_LE((x - exact).norm(), 1e-5 * exact.norm());
  if (whole()) {
    // In a hundred iterations the rounding of other sums grows to a few of them.
    EXPECT_NEAR(results[0].iterations, expected.iterations, 1 + 0.05 * expected.iterations);
  }
}

TEST_P(PreconditionersOverRanks, RefuseTogetherWhatOneRankRefuses) {
  const auto gp = problem();
  on_two_ranks(n, cut, [&](const RowSpace& space) {
    const SplitKernelOperator k(gp.kernel_operator, space);
    Vector noise = Vector::Ones(space.size());
    if (space.begin() > 0) noise(3) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW(make(info().name, Target{k, noise}, options()), Error);
  });
}

INSTANTIATE_TEST_SUITE_P(Registry, PreconditionersOverRanks,
                         ::testing::Combine(::testing::ValuesIn(all_but_none()), ::testing::Bool()),
                         test_name);

TEST(PreconditionerRegistryOverRanks, TheseAreTheSameMatrixOnAnyNumberOfRanks) {
  std::set<std::string_view> whole;
  for (const auto& info : preconditioners())
    if (info.over_ranks == OverRanks::whole) whole.insert(info.name);
  EXPECT_EQ(whole, (std::set<std::string_view>{"none", "jacobi", "regularized", "spectral",
                                               "nystrom", "fitc", "rpcholesky"}));
}

TEST(LandmarksOverRanks, AreTheSamePoints) {
  const auto gp = testing::small_gp({.num_points = 70, .kernel = "matern52:iso"});
  for (const auto choice : {Landmarks::uniform, Landmarks::kmeans, Landmarks::leverage}) {
    const approximations::LandmarkOptions options{.count = 12, .choice = choice, .pilot = 20};
    const auto alone = approximations::choose_landmarks(gp.kernel_operator, options);
    for (const Index cut : {Index{25}, Index{0}, Index{70}})
      on_two_ranks(70, cut, [&](const RowSpace& space) {
        const SplitKernelOperator k(gp.kernel_operator, space);
        EXPECT_EQ(approximations::choose_landmarks(k, options).points, alone.points);
      });
  }
}

}  // namespace ranks_test
}  // namespace mercer::preconditioners
