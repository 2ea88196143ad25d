#include "mercer/approximations/vecchia_likelihood.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "mercer/approximations/detail/point_set_problem.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/small_sets.hpp"

namespace mercer::approximations {
namespace {

using detail::PointSetProblem;

constexpr Index kRowsToATask = 64;

Index num_tasks(Index n) { return (n + kRowsToATask - 1) / kRowsToATask; }

// What the points of a task add up to.
struct Partial {
  double value = 0;
  Vector gradient;
  Matrix information;
  Index raised = 0;

  /// One more point, whose members have these residuals.
  void add(PointSetProblem& problem, const Vector& y) {
    const Vector& g = problem.g();
    const double e = g.dot(y);
    value += std::log(g(g.size() - 1)) - 0.5 * e * e - 0.5 * std::log(2 * std::numbers::pi);
  }
  /// Its score; `noise_slope` is that of the members.
  void add_score(PointSetProblem& problem, const Vector& y, const Vector& noise_slope) {
    const Index p = gradient.size();
    const Vector& g = problem.g();
    const Vector v = problem.score_vector(y, g.dot(y));
    Vector score(p);
    problem.gradient(g, v, score.head(p - 1));
    score(p - 1) = 0;
    for (Index i = 0; i < g.size(); ++i) score(p - 1) += g(i) * v(i) * noise_slope(i);
    gradient += score;
    information += score * score.transpose();
  }
};

// The small problems of all points, one evaluation's worth of them.
class PointSets {
 public:
  PointSets(const VecchiaModel& model, const std::vector<Index>& order, const Matrix& x,
            const Neighbours& neighbours)
      : model_(model), order_(order), x_(x), neighbours_(neighbours) {}

  /// visit(problem, members, task, clean) for every point, those of a task one after the other.
  template <class Visit>
  void visit(Visit&& visit) const {
    const Index n = x_.rows();
    parallel_for(num_tasks(n), [&](Index task, int) {
      PointSetProblem problem(model_.kernel, x_);
      std::vector<Index> members;
      Vector noise;
      for (Index i = task * kRowsToATask; i < std::min(n, (task + 1) * kRowsToATask); ++i) {
        const auto before = neighbours_.of(i);
        members.clear();
        for (const auto j : before) members.push_back(point(j));
        members.push_back(point(i));
        problem.gather(before, i);
        noise = model_.noise(members);
        const bool clean = problem.factorise(noise);
        visit(problem, members, task, clean);
      }
    });
  }

 private:
  Index point(Index i) const { return order_[static_cast<std::size_t>(i)]; }

  const VecchiaModel& model_;
  const std::vector<Index>& order_;
  const Matrix& x_;
  const Neighbours& neighbours_;
};

// y without its trend, by generalised least squares: beta from [A, y]'G'G [A, y].
Vector without_trend(const PointSets& sets, const VecchiaModel& model) {
  const Index q = model.basis.cols();
  if (q == 0) return model.y;
  std::vector<Matrix> partials(static_cast<std::size_t>(num_tasks(model.y.size())),
                               Matrix::Zero(q + 1, q + 1));
  sets.visit([&](PointSetProblem& problem, const std::vector<Index>& members, Index task, bool) {
    Vector row(q + 1);
    for (Index c = 0; c < q; ++c) row(c) = problem.g().dot(model.basis.col(c)(members));
    row(q) = problem.g().dot(model.y(members));
    partials[static_cast<std::size_t>(task)] += row * row.transpose();
  });
  Matrix normal = Matrix::Zero(q + 1, q + 1);
  for (const auto& partial : partials) normal += partial;
  const Vector beta = normal.topLeftCorner(q, q).ldlt().solve(normal.col(q).head(q));
  return model.y - model.basis * beta;
}

}  // namespace

VecchiaLikelihood::VecchiaLikelihood(const kernels::Kernel& kernel, const linalg::Diagonal& noise,
                                     ConstMatrixView x, const VecchiaOptions& options)
    : order_(Rng(options.seed, "vecchia order").permutation(x.rows())), x_(x.rows(), x.cols()) {
  validate(options);
  for (Index i = 0; i < x.rows(); ++i) x_.row(i) = x.row(order_[static_cast<std::size_t>(i)]);
  auto search = options.search;
  search.count = options.neighbours;
  neighbours_ = most_correlated({kernel, x_, noise.rows(order_)}, search);
}

VecchiaEvidence VecchiaLikelihood::evaluate(const VecchiaModel& model, bool with_gradient) const {
  const Index n = size(), p = with_gradient ? model.kernel.num_parameters() + 1 : 0;
  if (model.y.size() != n)
    throw DimensionMismatch("vecchia likelihood: length of y", model.y.size(), "points", n);
  const PointSets sets(model, order_, x_, neighbours_);
  const Vector residual = without_trend(sets, model);
  std::vector<Partial> partials(
      static_cast<std::size_t>(num_tasks(n)),
      Partial{.gradient = Vector::Zero(p), .information = Matrix::Zero(p, p)});
  sets.visit(
      [&](PointSetProblem& problem, const std::vector<Index>& members, Index task, bool clean) {
        auto& t = partials[static_cast<std::size_t>(task)];
        if (!clean) ++t.raised;
        const Vector y = residual(members);
        t.add(problem, y);
        if (with_gradient) t.add_score(problem, y, model.noise_slope(members));
      });

  VecchiaEvidence out;
  out.gradient = Vector::Zero(p);
  out.information = Matrix::Zero(p, p);
  for (const auto& t : partials) {
    out.value += t.value;
    out.raised += t.raised;
    out.gradient += t.gradient;
    out.information += t.information;
  }
  return out;
}

double VecchiaLikelihood::bytes(Index n, Index d, Index neighbours) {
  return static_cast<double>(n) *
         (8.0 * static_cast<double>(d) + 4.0 * static_cast<double>(neighbours) + 24.0);
}

Vector inverse_trace(const Vecchia& factor, const kernels::Kernel& kernel, ConstMatrixView x,
                     ConstVectorView noise_slope) {
  const Index n = factor.size(), p = kernel.num_parameters() + 1;
  if (x.rows() != n) throw DimensionMismatch("inverse trace: rows of x", x.rows(), "points", n);
  Matrix partial = Matrix::Zero(p, num_tasks(n));
  parallel_for(num_tasks(n), [&](Index task, int) {
    operators::SmallSets sets(kernel);
    Matrix points;
    Vector term(p);
    for (Index i = task * kRowsToATask; i < std::min(n, (task + 1) * kRowsToATask); ++i) {
      const auto row = factor.row(i);
      const auto count = static_cast<Index>(row.index.size());
      const Eigen::Map<const Vector> g(row.value.data(), count);
      points.resize(count, x.cols());
      term(p - 1) = 0;
      for (Index j = 0; j < count; ++j) {
        const Index at = row.index[static_cast<std::size_t>(j)];
        points.row(j) = x.row(at);
        term(p - 1) += g(j) * g(j) * noise_slope(at);
      }
      sets.load(points);
      sets.gradient(g, g, term.head(p - 1));
      partial.col(task) += term;
    }
  });
  return partial.rowwise().sum();
}

}  // namespace mercer::approximations
