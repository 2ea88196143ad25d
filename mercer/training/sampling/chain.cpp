#include "mercer/training/sampling/chain.hpp"

namespace mercer::training {

Vector Chain::normals(Rng& rng, Index count) {
  Vector z(count);
  for (Index i = 0; i < count; ++i) z(i) = rng.normal();
  return z;
}

void Chain::advance() {
  const Index iteration = report_.iterations + 1;
  const auto before = report_;
  try {
    step(iteration);
  } catch (...) {
    report_ = before;
    throw;
  }
  report_.iterations = iteration;
  method_state_ = target().method().save();
  if (keeps()) kept_.insert(kept_.end(), phi_.begin(), phi_.end());
}

Vector Chain::draw(Index iteration) const {
  const auto at = static_cast<std::size_t>((iteration - report_.first_kept) * phi_.size());
  return Eigen::Map<const Vector>(kept_.data() + at, phi_.size());
}

void Chain::visit_all(Archive& archive) {
  archive.number("iterations", report_.iterations);
  archive.number("acceptance", report_.acceptance);
  archive.number("step", report_.step);
  archive.number("first_kept", report_.first_kept);
  archive.number("frozen_at", report_.frozen_at);
  archive.number("divergent", report_.divergent);
  archive.number("failed", report_.failed);
  archive.number("evaluations", report_.evaluations);
  archive.number("gradients", report_.solves.gradients);
  archive.number("solve_iterations", report_.solves.iterations);
  archive.number("unsolved", report_.solves.unsolved);
  archive.number("unbiased", report_.solves.unbiased);
  archive.number("random_stops", report_.solves.random_stops);
  archive.number("continued", report_.solves.continued);
  archive.number("extra_iterations", report_.solves.extra_iterations);
  archive.number("stop_variance", report_.solves.variance);
  archive.number("float32_passes", report_.solves.float32_passes);
  archive.number("pass_error", report_.solves.pass_error);
  archive.number("walk_acceptance", report_.walk_acceptance);
  archive.number("evidence_error", report_.evidence_error);
  archive.array("start", report_.start);
  archive.array("phi", phi_);
  archive.numbers("ratios", report_.ratios);
  archive.numbers("kept", kept_);
  archive.nested("method_", method_state_);
  visit_state(archive);
}

inference::State Chain::save() {
  Archive archive;
  visit_all(archive);
  return archive.state();
}

void Chain::load(const inference::State& state) {
  Archive archive(state);
  visit_all(archive);
  if (!method_state_.empty()) target().method().load(method_state_, target().problem());
}

}  // namespace mercer::training
