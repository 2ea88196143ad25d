#include "mercer/approximations/landmarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/linalg/reductions.hpp"

namespace mercer::approximations {
namespace {

using linalg::for_panels;
using linalg::kPanelRows;
using linalg::RowSpace;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

Vector finite_diagonal(const operators::KernelOperator& k) {
  Vector diagonal = k.diagonal();
  if (!k.row_space().all(diagonal.allFinite()))
    throw InvalidArgument("landmarks: the kernel is not finite at some point");
  return diagonal;
}

double largest_entry(const RowSpace& space, const Vector& diagonal) {
  return space.max(diagonal.size() > 0 ? diagonal.maxCoeff() : 0.0);
}

/// The first `count` points of `order` whose inputs differ from all chosen before.
ChosenLandmarks first_distinct(const Matrix& x, const std::vector<Index>& order, Index count) {
  const auto before = [&](Index a, Index b) {
    for (Index c = 0; c < x.cols(); ++c)
      if (x(a, c) != x(b, c)) return x(a, c) < x(b, c);
    return false;
  };
  std::set<Index, decltype(before)> seen(before);
  ChosenLandmarks chosen;
  for (const Index i : order) {
    if (static_cast<Index>(chosen.points.size()) == count) return chosen;
    if (seen.insert(i).second) chosen.points.push_back(i);
  }
  chosen.exhausted = static_cast<Index>(chosen.points.size()) < count;
  return chosen;
}

ChosenLandmarks uniform(const operators::KernelOperator& k, const LandmarkOptions& options) {
  const Index n = k.points().rows();
  return first_distinct(k.points(), Rng(options.seed, "landmarks").permutation(n),
                        std::min(options.count, n));
}

/// Weights, summed in fixed panels, from which points are drawn. Each rank has the weights of its
/// rows and the sums of all panels; a draw fetches the weights of one panel.
class Urn {
 public:
  explicit Urn(const RowSpace& space)
      : space_(space),
        weights_(space.size()),
        sums_(static_cast<std::size_t>((space.global_size() + kPanelRows - 1) / kPanelRows), 0.0) {}

  /// weights(i) = weight(i) for every row i held here.
  template <class Weight>
  void update(const Weight& weight) {
    if (space_.split()) {
      std::fill(sums_.begin(), sums_.end(), 0.0);
      for (Index i = 0; i < weights_.size(); ++i)
        sums_[static_cast<std::size_t>((space_.begin() + i) / kPanelRows)] += weights_(i) =
            weight(i);
      space_.reduce(sums_);
      return;
    }
    for_panels(weights_.size(), [&](Index first, Index rows) {
      double sum = 0;
      for (Index i = first; i < first + rows; ++i) sum += weights_(i) = weight(i);
      sums_[static_cast<std::size_t>(first / kPanelRows)] = sum;
    });
  }
  double operator()(Index i) const { return weights_(i); }
  double total() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

  /// A point with probability weight / total, by inversion at u in (0, 1); never one of weight 0.
  Index draw(double u) const {
    double target = u * total();
    std::size_t part = 0;
    while (part + 1 < sums_.size() && (target >= sums_[part] || sums_[part] == 0))
      target -= sums_[part++];
    while (sums_[part] == 0) --part;  // rounding led past the last weight
    const Index first = static_cast<Index>(part) * kPanelRows;
    const Vector panel = weights_of(first, std::min(kPanelRows, space_.global_size() - first));
    Index last = first;
    for (Index i = 0; i < panel.size(); ++i) {
      if (panel(i) == 0) continue;
      last = first + i;
      if (target < panel(i)) break;
      target -= panel(i);
    }
    return last;
  }

 private:
  Vector weights_of(Index first, Index rows) const {
    if (!space_.split()) return weights_.segment(first, rows);
    Vector panel = Vector::Zero(rows);
    for (Index i = 0; i < rows; ++i)
      if (space_.holds(first + i)) panel(i) = weights_(first + i - space_.begin());
    space_.reduce({panel.data(), static_cast<std::size_t>(rows)});
    return panel;
  }

  RowSpace space_;
  Vector weights_;
  std::vector<double> sums_;
};

ChosenLandmarks kmeans(const operators::KernelOperator& k, const LandmarkOptions& options) {
  const RowSpace space = k.row_space();
  const Index n = k.size(), count = std::min(options.count, space.global_size());
  const Vector diagonal = finite_diagonal(k);
  // A distance is the difference of three kernel values: below this it is their rounding error.
  const double nothing = 16 * kEpsilon * largest_entry(space, diagonal);
  Rng rng(options.seed, "landmarks");
  ChosenLandmarks chosen;
  chosen.columns.resize(n, count);
  Urn distance(space);
  distance.update([](Index) { return 1.0; });
  for (Index done = 0; done < count; ++done) {
    if (distance.total() == 0) {
      chosen.exhausted = true;
      break;
    }
    const Index s = distance.draw(rng.uniform());
    auto column = chosen.columns.col(done);
    k.columns(std::span(&s, 1), column);
    chosen.points.push_back(s);
    const bool first = done == 0;
    const double of_s = k.kernel().diagonal(k.points().middleRows(s, 1))(0);
    distance.update([&](Index i) {
      const double d = diagonal(i) + of_s - 2 * column(i);
      if (space.begin() + i == s || !(d > nothing)) return 0.0;
      return first ? d : std::min(distance(i), d);
    });
  }
  const auto found = static_cast<Index>(chosen.points.size());
  if (found < count) chosen.columns.conservativeResize(n, found);
  chosen.kernel_values = static_cast<double>(n) * static_cast<double>(found);
  return chosen;
}

ChosenLandmarks leverage(const operators::KernelOperator& k, const LandmarkOptions& options) {
  const RowSpace space = k.row_space();
  const Index n = space.global_size();
  Vector scores = linalg::gather_all(
      space, leverage_scores(k, options.noise_variance, options.pilot, options.seed));
  if (options.count < options.pilot) scores = scores.cwiseMin(1.0);
  // Without replacement, in proportion to the scores: the largest log(u) / score first
  // (Efraimidis & Spirakis, 2006). Points of score 0 come last, in random order.
  Rng rng(options.seed, "leverage landmarks");
  const auto order_of_zeros = rng.permutation(n);
  Vector key(n);
  for (Index i = 0; i < n; ++i) {
    const double log_uniform = std::log(rng.uniform());
    key(i) = scores(i) > 0 ? log_uniform / scores(i) : -std::numeric_limits<double>::infinity();
  }
  std::vector<Index> order = order_of_zeros;
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key(a) > key(b); });
  auto chosen = first_distinct(k.points(), order, std::min(options.count, n));
  chosen.kernel_values = landmark_kernel_values(n, options);
  return chosen;
}

}  // namespace

std::string_view to_string(Landmarks landmarks) {
  switch (landmarks) {
    case Landmarks::uniform:
      return "uniform";
    case Landmarks::kmeans:
      return "kmeans";
    case Landmarks::leverage:
      return "leverage";
  }
  return "unknown";
}

namespace {
constexpr std::array kAllLandmarks = {Landmarks::uniform, Landmarks::kmeans, Landmarks::leverage};
}

Landmarks landmarks(std::string_view name) {
  for (const auto choice : kAllLandmarks)
    if (to_string(choice) == name) return choice;
  throw InvalidArgument(fmt::format("there are no landmarks '{}'; there are: {}", name,
                                    fmt::join(landmark_names(), ", ")));
}

std::vector<std::string_view> landmark_names() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kAllLandmarks));
  for (const auto choice : kAllLandmarks) names.push_back(to_string(choice));
  return names;
}

ChosenLandmarks choose_landmarks(const operators::KernelOperator& k,
                                 const LandmarkOptions& options) {
  validate(options);
  if (k.points().rows() == 0) return {};
  switch (options.choice) {
    case Landmarks::uniform:
      return uniform(k, options);
    case Landmarks::kmeans:
      return kmeans(k, options);
    case Landmarks::leverage:
      return leverage(k, options);
  }
  throw Error("landmarks: unknown choice");
}

// K_JJ = Q w Q'; then k(x,J) (K_JJ + shift)^-1 k(J,x) = |(w + shift)^-1/2 Q' k(J,x)|^2.
Vector leverage_scores(const operators::KernelOperator& k, double lambda, Index pilot,
                       std::uint64_t seed) {
  const RowSpace space = k.row_space();
  const Index n = k.size(), all = space.global_size();
  Vector diagonal = finite_diagonal(k);
  if (all == 0) return diagonal;
  const auto points = uniform(k, {.count = pilot, .seed = seed}).points;
  const auto p = static_cast<Index>(points.size());
  Matrix g(n, p);
  k.columns(points, g);
  const auto eigen = linalg::symmetric_eigen(linalg::gather_rows(space, g, points));
  const double rounding = static_cast<double>(p) * kEpsilon * std::max(eigen.values(p - 1), 0.0);
  // Scaled like the sum over all points, of which the pilot is p / N.
  const double shift =
      std::max(lambda * static_cast<double>(p) / static_cast<double>(all), rounding);
  const Vector inverse_root =
      (eigen.values.array().max(0.0) + shift).max(std::numeric_limits<double>::min()).rsqrt();
  linalg::multiply_in_place(g, eigen.vectors * inverse_root.asDiagonal());
  const Vector explained = linalg::squared_rows(g);
  const double nothing = 16 * kEpsilon * largest_entry(space, diagonal);
  Vector scores(n);
  for (Index i = 0; i < n; ++i) {
    const double left = diagonal(i) - explained(i);
    scores(i) = left > nothing ? left / lambda : 0.0;
  }
  return scores;
}

double landmark_kernel_values(Index n, const LandmarkOptions& options) {
  const auto points = static_cast<double>(n);
  if (options.choice == Landmarks::kmeans)
    return points * static_cast<double>(std::min(options.count, n));
  if (options.choice == Landmarks::leverage)
    return points * static_cast<double>(std::min(options.pilot, n));
  return 0;
}

double landmark_flops(Index n, const LandmarkOptions& options) {
  const auto points = static_cast<double>(n);
  if (options.choice == Landmarks::kmeans)
    return 4 * points * static_cast<double>(std::min(options.count, n));
  if (options.choice == Landmarks::leverage) {
    const auto p = static_cast<double>(std::min(options.pilot, n));
    return 3 * points * p * p + 9 * p * p * p;
  }
  return 0;
}

double landmark_bytes(Index n, const LandmarkOptions& options) {
  const auto points = static_cast<double>(n);
  if (options.choice == Landmarks::kmeans)
    return 8 * points * static_cast<double>(std::min(options.count, n) + 3);
  if (options.choice == Landmarks::leverage) {
    const auto p = static_cast<double>(std::min(options.pilot, n));
    return 8 * (points * (p + 6) + 4 * p * p);
  }
  return 16 * points;
}

}  // namespace mercer::approximations
