#include "mercer/training/base_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/optim/lbfgs.hpp"
#include "mercer/optim/replay.hpp"
#include "mercer/training/search.hpp"

namespace mercer::training {
namespace {

using inference::Inference;
using inference::Problem;
using inference::State;

// Base points may leave the range of the data by this share of its width.
constexpr double kBeyondRange = 0.5;
// The step of a base point is of a lengthscale, but of no less than this share of the range.
constexpr double kLeastScale = 1e-3;
// The value decides when to stop; with many variables a gradient says little.
constexpr double kGradientTolerance = 1e-7;
constexpr double kUsualBaseSteps = 40;
constexpr const char* kMethodPrefix = "method_";

/// The shortest way in each input over which the kernel changes.
void shorten_scales(const kernels::Node& node, Vector& scale) {
  for (const auto& child : node.children) shorten_scales(child, scale);
  if (node.kind != kernels::Node::Kind::leaf) return;
  const auto& leaf = node.leaf;
  if (leaf.info().family != kernels::Family::distance) return;
  for (Index k = 0; k < leaf.num_inputs(); ++k) {
    double length = leaf.lengthscale(k);
    if (leaf.info().inputs == kernels::InputMap::circle)
      length = std::min(length, 1.0) * leaf.shape / (2 * std::numbers::pi);
    scale(leaf.column(k)) = std::min(scale(leaf.column(k)), length);
  }
}

// The variables of L-BFGS, u = [theta, base points / scale], and minus the evidence per entry.
class JointClimb {
 public:
  JointClimb(Inference& method, const Problem& at, const BaseClimb& climb);
  BaseClimbResult run();

 private:
  Vector joined(const Vector& theta, const Matrix& base) const;
  Matrix base_of(ConstVectorView u) const;
  optim::Box joint_box(const Matrix& range) const;
  void load(const State& from);
  State state() const;
  double evaluate(ConstVectorView u, VectorView gradient);
  double remember_best(ConstVectorView u, double value, ConstVectorView gradient);
  Action after_step(const Iteration& iteration);
  void climb_from(const optim::Objective& f);
  void conclude();

  Inference& method_;
  Problem problem_;
  const BaseClimb& climb_;
  Index parameters_;
  Vector theta_;  // where it begins
  Matrix base_;
  Vector scale_;  // of each input
  optim::ReplayLog log_;
  State method_state_;
  double start_value_ = HUGE_VAL, best_value_ = HUGE_VAL;
  Vector start_gradient_, best_, best_gradient_;
  BaseClimbResult result_;
};

JointClimb::JointClimb(Inference& method, const Problem& at, const BaseClimb& climb)
    : method_(method), problem_(at), climb_(climb), theta_(at.log_parameters()) {
  parameters_ = theta_.size();
  climb.box.check_size(parameters_);
  if (climb.range.rows() != 2 || climb.range.cols() != at.kernel.num_inputs())
    throw DimensionMismatch("base points: size of the range of inputs", climb.range.size(),
                            "twice the inputs", 2 * at.kernel.num_inputs());
  if (!climb.from.empty()) {
    theta_ = inference::saved_array(climb.from, "start_theta", parameters_);
    base_ = inference::saved_array(climb.from, "start_base");
  } else {
    if (method.base_points().size() == 0) method.renew(at);
    base_ = method.base_points();
    if (base_.size() == 0)
      throw InvalidArgument("base points: this method has none that could be optimised");
  }
  problem_.set_log_parameters(theta_);
  const Vector width = climb.range.row(1) - climb.range.row(0);
  scale_ = width;
  shorten_scales(problem_.kernel.root(), scale_);
  for (Index c = 0; c < width.size(); ++c)
    scale_(c) = width(c) > 0 ? std::max(scale_(c), kLeastScale * width(c)) : 1.0;
  load(climb.from);
}

Vector JointClimb::joined(const Vector& theta, const Matrix& base) const {
  Vector u(parameters_ + base.size());
  u.head(parameters_) = theta;
  for (Index c = 0; c < base.cols(); ++c)
    u.segment(parameters_ + c * base.rows(), base.rows()) = base.col(c) / scale_(c);
  return u;
}

Matrix JointClimb::base_of(ConstVectorView u) const {
  const Index m = base_.rows();
  Matrix base(m, base_.cols());
  for (Index c = 0; c < base.cols(); ++c)
    base.col(c) = u.segment(parameters_ + c * m, m) * scale_(c);
  return base;
}

// An input that is the same in all rows stays what it is in the base points.
optim::Box JointClimb::joint_box(const Matrix& range) const {
  Matrix low(base_.rows(), base_.cols()), high = low;
  for (Index c = 0; c < base_.cols(); ++c) {
    const double beyond = kBeyondRange * (range(1, c) - range(0, c));
    const double least = std::min(range(0, c), base_.col(c).minCoeff()) - beyond;
    const double most = std::max(range(1, c), base_.col(c).maxCoeff()) + beyond;
    low.col(c) = beyond > 0 ? Vector::Constant(base_.rows(), least) : Vector(base_.col(c));
    high.col(c) = beyond > 0 ? Vector::Constant(base_.rows(), most) : Vector(base_.col(c));
  }
  const bool bounded = climb_.box.bounded();
  const Vector none = Vector::Constant(parameters_, HUGE_VAL);
  return {joined(bounded ? climb_.box.lower() : Vector(-none), low),
          joined(bounded ? climb_.box.upper() : none, high)};
}

void JointClimb::load(const State& from) {
  if (from.empty()) return;
  const Matrix& table = inference::saved_array(from, "log");
  const Index variables = parameters_ + base_.size();
  if (table.size() > 0 && table.rows() != 2 * variables + 1)
    throw ModelFileError("the checkpoint of the base points is damaged");
  log_ =
      optim::ReplayLog::unpacked({table.data(), static_cast<std::size_t>(table.size())}, variables);
  const std::string prefix = kMethodPrefix;
  for (const auto& [name, values] : from)
    if (name.starts_with(prefix)) method_state_[name.substr(prefix.size())] = values;
  method_.load(method_state_, problem_);
}

State JointClimb::state() const {
  const auto numbers = log_.packed();
  const Index rows = 2 * (parameters_ + base_.size()) + 1;
  State out;
  out["log"] =
      Eigen::Map<const Matrix>(numbers.data(), rows, static_cast<Index>(numbers.size()) / rows);
  out["start_theta"] = theta_;
  out["start_base"] = base_;
  for (const auto& [name, values] : method_state_) out[kMethodPrefix + name] = values;
  return out;
}

double JointClimb::evaluate(ConstVectorView u, VectorView gradient) {
  const double share = 1 / climb_.entries;
  problem_.set_log_parameters(u.head(parameters_));
  const Matrix base = base_of(u);
  method_.use_base(base);
  Matrix in_base;
  inference::Evidence evidence;
  try {
    evidence = method_.evaluate_with_base(problem_, {}, in_base);
  } catch (const NotPositiveDefinite&) {
    method_state_ = method_.save();
    throw;
  }
  method_state_ = method_.save();
  gradient.head(parameters_) = -share * evidence.gradient;
  for (Index c = 0; c < base.cols(); ++c)
    gradient.segment(parameters_ + c * base.rows(), base.rows()) =
        -share * scale_(c) * in_base.col(c);
  return -share * evidence.value;
}

double JointClimb::remember_best(ConstVectorView u, double value, ConstVectorView gradient) {
  if (std::isfinite(value) && gradient.allFinite() && value < best_value_) {
    best_value_ = value;
    best_ = u;
    best_gradient_ = gradient;
  }
  return value;
}

Action JointClimb::after_step(const Iteration& iteration) {
  if (!climb_.observer) return Action::proceed;
  return climb_.observer({.number = iteration.number,
                          .evidence = -best_value_ * climb_.entries,
                          .theta = best_.head(parameters_)});
}

// The first evaluation is that of the start as it is; L-BFGS begins there unless it is at a bound,
// from where it is moved inside.
void JointClimb::climb_from(const optim::Objective& f) {
  const Vector start = joined(theta_, base_);
  start_gradient_ = Vector::Zero(start.size());
  start_value_ = remember_best(start, f(start, start_gradient_), start_gradient_);
  ++result_.evaluations;
  if (best_.size() == 0) {
    result_.stop = StopReason::breakdown;
    return;
  }
  const auto box = joint_box(climb_.range);
  bool known = box.inside(start) == start;
  const optim::Objective g = [&](ConstVectorView u, VectorView gradient) {
    if (std::exchange(known, false)) {
      gradient = start_gradient_;
      --result_.evaluations;
      return start_value_;
    }
    return remember_best(u, f(u, gradient), gradient);
  };
  optim::LbfgsOptions options;
  options.max_iterations = climb_.steps;
  options.value_tolerance = climb_.value_tolerance;
  options.gradient_tolerance = kGradientTolerance;
  options.gain_tolerance = climb_.gain_left / climb_.entries;
  const auto found =
      optim::lbfgs(g, start, box, options, [this](const Iteration& it) { return after_step(it); });
  result_.steps = found.iterations;
  result_.evaluations += found.evaluations;
  result_.failed_evaluations = found.rejected_evaluations;
  result_.stop = found.stop;
}

void JointClimb::conclude() {
  result_.resumed_evaluations = static_cast<int>(log_.num_replayed());
  if (best_.size() == 0) {
    if (result_.stop == StopReason::interrupted)
      throw Interrupted("interrupted at the first evidence of the base points");
    throw ToleranceNotReached(
        "learning of the base points cannot begin: the evidence at the start is not a number in "
        "double precision");
  }
  result_.theta = best_.head(parameters_);
  // The start itself, not the start divided by its scale and multiplied again.
  result_.base = best_value_ == start_value_ ? base_ : base_of(best_);
  result_.start_evidence = -start_value_ * climb_.entries;
  result_.evidence = -best_value_ * climb_.entries;
  result_.gradient = -climb_.entries * best_gradient_.head(parameters_);
  method_.use_base(result_.base);
}

BaseClimbResult JointClimb::run() {
  const auto f =
      log_.record([this](ConstVectorView u, VectorView gradient) { return evaluate(u, gradient); },
                  [this](const optim::ReplayLog&) {
                    if (climb_.keep) climb_.keep(state());
                  });
  try {
    climb_from(f);
  } catch (const Interrupted&) {  // in the middle of an evaluation
    result_.stop = StopReason::interrupted;
  }
  conclude();
  return std::move(result_);
}

}  // namespace

Matrix input_range(ConstMatrixView x) {
  if (x.rows() == 0) throw InvalidArgument("base points: there are no rows to take the range of");
  Matrix range(2, x.cols());
  range.row(0) = x.colwise().minCoeff();
  range.row(1) = x.colwise().maxCoeff();
  return range;
}

BaseClimbResult climb_base(Inference& method, const Problem& at, const BaseClimb& climb) {
  return JointClimb(method, at, climb).run();
}

BaseClimbResult climb_base(Search& search, Inference& method, const Vector& start) {
  auto problem = search.start();
  problem.set_log_parameters(start);
  const int steps = search.exact_steps();
  BaseClimb climb{.box = search.box(),
                  .range = input_range(search.all().x),
                  .entries = Search::entries(search.all()),
                  .steps = steps,
                  .value_tolerance = search.rules().value_tolerance,
                  .from = search.base_state()};
  climb.keep = [&](State state) { search.keep_base(std::move(state)); };
  climb.observer = [&](const BaseStep& step) {
    search.reached(step.theta);
    const double usual = std::min<double>(kUsualBaseSteps, steps);
    return search.stopped("learn (base points)", 1 - std::exp(-step.number / usual),
                          fmt::format("step {}, evidence {:.6g}", step.number, step.evidence))
               ? Action::stop
               : Action::proceed;
  };
  auto result = climb_base(method, problem, climb);
  search.report.steps += result.steps;
  search.report.evaluations += result.evaluations;
  search.report.failed_evaluations += result.failed_evaluations;
  search.report.stop = result.stop;
  search.remember(result.theta);
  return result;
}

}  // namespace mercer::training
