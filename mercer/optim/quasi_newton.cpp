#include "mercer/optim/quasi_newton.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/optim/axes.hpp"

namespace mercer::optim {
namespace {

// Slopes below this share of their standard error are none; the error is known roughly only.
constexpr double kSignificant = 1.0 / 3;
constexpr double kDamping = 0.2;  // Powell's: y's is at least this share of s'H s

class Search {
 public:
  Search(const NoisyObjective& f, const Box& box, const QuasiNewtonOptions& options)
      : f_(f), box_(box), options_(options) {}
  QuasiNewtonResult run(Vector theta, Matrix hessian,
                        const std::function<Action(const QuasiNewtonStep&)>& observer);

 private:
  struct Point {
    Vector theta;
    NoisyGradient estimate;
    Vector step;
    double gain = 0, noise = 0;
    double sure = 0;  // gain along directions whose slope is more than noise
  };
  void judge(Point& p) const;
  void learn(const Vector& s, const Vector& y);

  const NoisyObjective& f_;
  const Box& box_;
  const QuasiNewtonOptions& options_;
  Matrix hessian_;
};

// The step from p with what is known of the Hessian now, and what it may gain. Parameters at a
// bound that the gradient pushes against stay there.
void Search::judge(Point& p) const {
  const Index n = p.theta.size();
  std::vector<Index> free;
  for (Index i = 0; i < n; ++i)
    if (!box_.blocks(i, p.theta(i), -p.estimate.gradient(i))) free.push_back(i);
  p.step = Vector::Zero(n);
  p.gain = p.noise = p.sure = 0;
  if (free.empty()) return;
  const Matrix h = hessian_(free, free);
  const Vector g = p.estimate.gradient(free);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(h);
  const Vector along = eigen.eigenvectors().transpose() * g;
  const Vector& steep = eigen.eigenvalues();
  Vector step = -(eigen.eigenvectors() * along.cwiseQuotient(steep));
  const double longest = step.cwiseAbs().maxCoeff();
  if (longest > options_.longest_step) step *= options_.longest_step / longest;
  p.step(free) = step;
  Vector variance = Vector::Zero(g.size());
  if (p.estimate.standard_error.size() > 0)
    variance = eigen.eigenvectors().cwiseAbs2().transpose() *
               Vector(p.estimate.standard_error(free)).cwiseAbs2();
  p.gain = 0.5 * along.cwiseAbs2().cwiseQuotient(steep).sum();
  p.noise = 0.5 * variance.cwiseQuotient(steep).sum();
  // One flat direction full of noise must not hide what the others have to gain.
  for (Index i = 0; i < along.size(); ++i)
    if (along(i) * along(i) > kSignificant * kSignificant * variance(i))
      p.sure += 0.5 * along(i) * along(i) / steep(i);
}

// BFGS, damped where the gradient says that H is much smaller along s; where it is not even
// positive there is nothing to learn for a positive H.
void Search::learn(const Vector& s, const Vector& y) {
  const Vector hs = hessian_ * s;
  const double shs = s.dot(hs);
  if (!(shs > 0)) return;
  const double sy = s.dot(y);
  if (!(sy > 0)) return;
  const double t = sy >= kDamping * shs ? 1.0 : (1 - kDamping) * shs / (shs - sy);
  const Vector r = t * y + (1 - t) * hs;
  hessian_ += r * r.transpose() / s.dot(r) - hs * hs.transpose() / shs;
}

QuasiNewtonResult Search::run(Vector theta, Matrix hessian,
                              const std::function<Action(const QuasiNewtonStep&)>& observer) {
  hessian_ = std::move(hessian);
  QuasiNewtonResult out;
  Point best;
  double length = 1;  // of Newton's step
  Vector next = box_.bounded() ? box_.inside(theta) : theta;
  out.theta = next;
  out.step = Vector::Zero(next.size());
  out.hessian = hessian_;
  for (int k = 0; k < options_.steps; ++k) {
    Point here{next, f_(next, k), {}};
    if (here.estimate.gradient.size() == 0) {
      out.stop = StopReason::interrupted;
      return out;
    }
    out.steps = k + 1;
    if (!here.estimate.gradient.allFinite()) {
      out.stop = StopReason::breakdown;
      return out;
    }
    if (here.estimate.standard_error.size() == 0)
      here.estimate.standard_error = best.estimate.standard_error;  // about the same
    const bool first = k == 0;
    // The trapezoidal rule for what the objective changed by: gradients are all there is.
    const bool accepted =
        first ||
        (here.theta - best.theta).dot(here.estimate.gradient + best.estimate.gradient) <= 0;
    if (first) {
      const auto axes = positive_axes(hessian_, here.estimate.gradient, options_.longest_step);
      hessian_ = axes.directions * axes.curvature.asDiagonal() * axes.directions.transpose();
    } else {
      learn(here.theta - best.theta, here.estimate.gradient - best.estimate.gradient);
      judge(best);
    }
    judge(here);
    length = accepted ? 1.0 : 0.5 * length;
    if (accepted) best = here;
    out.theta = best.theta;
    out.gain = best.gain;
    out.noise = best.noise;
    out.step = best.step;
    out.hessian = hessian_;
    if (observer &&
        observer({k + 1, here.theta, here.gain, here.noise, accepted}) == Action::stop) {
      out.stop = StopReason::interrupted;
      return out;
    }
    if (best.sure <= options_.gain_tolerance) {
      out.stop = StopReason::converged;
      return out;
    }
    next = best.theta + length * best.step;
    if (box_.bounded()) next = next.cwiseMax(box_.lower()).cwiseMin(box_.upper());
  }
  return out;
}

}  // namespace

QuasiNewtonResult quasi_newton(const NoisyObjective& f, ConstVectorView start,
                               ConstMatrixView hessian, const Box& box,
                               const QuasiNewtonOptions& options,
                               const std::function<Action(const QuasiNewtonStep&)>& observer) {
  validate(options);
  box.check_size(start.size());
  if (start.size() == 0)
    throw InvalidArgument("quasi-Newton: there is no parameter to minimise over");
  if (hessian.rows() != start.size() || hessian.cols() != start.size())
    throw DimensionMismatch("quasi-Newton: size of the hessian", hessian.size(),
                            "parameters squared", start.size() * start.size());
  if (!start.allFinite() || !hessian.allFinite())
    throw InvalidArgument("quasi-Newton: the start or its Hessian is not finite");
  return Search(f, box, options).run(start, 0.5 * (hessian + hessian.transpose()), observer);
}

}  // namespace mercer::optim
