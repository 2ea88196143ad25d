#include "mercer/optim/replay.hpp"

#include <cstring>
#include <limits>

#include "mercer/core/error.hpp"

namespace mercer::optim {
namespace {

bool same_bits(ConstVectorView a, ConstVectorView b) {
  return a.size() == b.size() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(),
                                       sizeof(double) * static_cast<std::size_t>(a.size())) == 0);
}

}  // namespace

ReplayLog::ReplayLog(std::vector<Evaluation> recorded) : evaluations_(std::move(recorded)) {}

Objective ReplayLog::record(Objective live, std::function<void(const ReplayLog&)> after_live) {
  return [this, live = std::move(live), after_live = std::move(after_live)](ConstVectorView theta,
                                                                            VectorView gradient) {
    const auto count = static_cast<Index>(evaluations_.size());
    if (position_ < count) {
      const Evaluation& known = evaluations_[static_cast<std::size_t>(position_)];
      if (same_bits(known.theta, theta)) {
        gradient = known.gradient;
        ++position_;
        ++replayed_;
        return known.value;
      }
      dropped_ += count - position_;
      evaluations_.resize(static_cast<std::size_t>(position_));
    }
    Evaluation fresh{theta, 0, Vector::Zero(theta.size())};
    try {
      fresh.value = live(theta, fresh.gradient);
    } catch (const NotPositiveDefinite&) {
      fresh.value = std::numeric_limits<double>::infinity();
      fresh.gradient.setZero();
    }
    gradient = fresh.gradient;
    const double value = fresh.value;
    evaluations_.push_back(std::move(fresh));
    ++position_;
    ++live_;
    if (after_live) after_live(*this);
    return value;
  };
}

std::vector<double> ReplayLog::packed() const {
  std::vector<double> numbers;
  for (const Evaluation& e : evaluations_) {
    numbers.insert(numbers.end(), e.theta.data(), e.theta.data() + e.theta.size());
    numbers.push_back(e.value);
    numbers.insert(numbers.end(), e.gradient.data(), e.gradient.data() + e.gradient.size());
  }
  return numbers;
}

ReplayLog ReplayLog::unpacked(std::span<const double> numbers, Index num_parameters) {
  const Index each = 2 * num_parameters + 1, count = static_cast<Index>(numbers.size()) / each;
  if (num_parameters < 1 || count * each != static_cast<Index>(numbers.size()))
    throw InvalidArgument("replay log: the numbers do not divide into whole evaluations");
  std::vector<Evaluation> evaluations;
  for (Index i = 0; i < count; ++i) {
    const double* p = numbers.data() + i * each;
    evaluations.push_back({Eigen::Map<const Vector>(p, num_parameters), p[num_parameters],
                           Eigen::Map<const Vector>(p + num_parameters + 1, num_parameters)});
  }
  return ReplayLog(std::move(evaluations));
}

}  // namespace mercer::optim
