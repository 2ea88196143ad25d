#include "mercer/approximations/grid_interpolation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "mercer/approximations/clusters.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::approximations {
namespace {

constexpr double nodes_wanted = 1e6;     // the most of N^(3/2)
constexpr double embedded_wanted = 5e6;  // of 2^d times it, up to four inputs
constexpr double affordable_growth = 4;  // of the grid, to resolve lengthscales
constexpr double least_per_lengthscale = 4, most_per_lengthscale = 32;
constexpr Index fewest_cubic_nodes = 8;
constexpr Index outside = 3;  // nodes of a cubic axis beyond its intervals
constexpr Index point_chunk = 1024;
constexpr Index most_weights = 256;  // 4^4

double power(double base, Index exponent) { return std::pow(base, static_cast<double>(exponent)); }

/// Keys' kernel at distances 1 + t, t, 1 - t, 2 - t.
void cubic_weights(double t, double* w) {
  const auto near = [](double s) { return (1.5 * s - 2.5) * s * s + 1; };
  const auto far = [](double s) { return ((-0.5 * s + 2.5) * s - 4) * s + 2; };
  w[0] = far(1 + t);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

std::vector<GridAxis> make_axes(const kernels::Kernel& kernel, ConstMatrixView points) {
  const Index n = points.rows(), d = points.cols();
  const bool cubic = d <= most_cubic_inputs;
  const Index plain = default_axis_nodes(n, d);
  const Vector scales = shortest_lengthscales(kernel);
  std::vector<GridAxis> axes(static_cast<std::size_t>(d));
  std::vector<double> resolved(axes.size());
  double total = 1;
  for (Index c = 0; c < d; ++c) {
    auto& axis = axes[static_cast<std::size_t>(c)];
    const double low = n == 0 ? 0 : points.col(c).minCoeff();
    const double extent = n == 0 ? 0 : points.col(c).maxCoeff() - low;
    axis.origin = low;
    axis.step = extent;  // for now
    axis.nodes = extent > 0 || cubic ? plain : 1;
    if (cubic) {
      const double lengths = extent / scales(c);
      const double most = std::ceil(most_per_lengthscale * lengths) + double(outside);
      axis.nodes =
          std::max(fewest_cubic_nodes, static_cast<Index>(std::min(double(axis.nodes), most)));
      resolved[static_cast<std::size_t>(c)] = std::max(
          double(axis.nodes), std::ceil(least_per_lengthscale * lengths) + double(outside));
      total *= resolved[static_cast<std::size_t>(c)];
    }
  }
  std::vector<Index> nodes;
  const bool few = cubic && total <= most_nodes_wanted(n, d);
  if (few) nodes.assign(resolved.begin(), resolved.end());
  const bool affordable =
      few && (separable(kernel) || GridKernel::embedded_nodes(nodes) <= most_grid_nodes);
  for (std::size_t c = 0; c < axes.size(); ++c) {
    auto& axis = axes[c];
    if (affordable) axis.nodes = nodes[c];
    const Index intervals = axis.nodes - (cubic ? outside : 1);
    axis.step = axis.step > 0 ? axis.step / static_cast<double>(intervals) : 1.0;
    if (cubic) axis.origin -= axis.step;
  }
  return axes;
}

std::vector<GridAxis> checked_axes(const kernels::Kernel& kernel, ConstMatrixView points) {
  const auto reason = grid_refusal(kernel, points.rows(), points.cols());
  if (!reason.empty()) throw InvalidArgument("grid: " + reason);
  if (!points.allFinite()) throw InvalidArgument("grid: a point is not finite");
  return make_axes(kernel, points);
}

}  // namespace

Index default_axis_nodes(Index n, Index d) {
  if (d == 0) return 1;
  double total = std::min(std::pow(static_cast<double>(n), 1.5), nodes_wanted);
  if (d <= most_cubic_inputs) total = std::min(total, embedded_wanted / power(2, d));
  const auto nodes = static_cast<Index>(std::ceil(std::pow(total, 1.0 / double(d)) - 1e-9));
  return std::max<Index>(nodes, d <= most_cubic_inputs ? fewest_cubic_nodes : 2);
}

double most_nodes_wanted(Index n, Index d) {
  const double plain = power(static_cast<double>(default_axis_nodes(n, d)), d);
  return d <= most_cubic_inputs ? affordable_growth * plain : plain;
}

std::string grid_refusal(const kernels::Kernel& kernel, Index n, Index d) {
  if (!kernel.stationary())
    return "a grid needs a kernel that depends on differences of points only; linear and poly do "
           "not";
  const Index m = default_axis_nodes(n, d);
  const double nodes =
      separable(kernel)
          ? power(static_cast<double>(m), d)
          : GridKernel::embedded_nodes(std::vector<Index>(static_cast<std::size_t>(d), m));
  if (nodes <= most_grid_nodes) return "";
  return fmt::format("a grid of {} nodes on each of {} inputs takes {:.1e} values, above {:.0e}{}",
                     m, d, nodes, most_grid_nodes,
                     separable(kernel) ? "" : " (fewer for kernels such as rbf)");
}

GridInterpolation::GridInterpolation(const kernels::Kernel& kernel, ConstMatrixView points)
    : size_(points.rows()),
      width_(points.cols() <= most_cubic_inputs ? 4 : 1),
      grid_(kernel, checked_axes(kernel, points)) {
  const Index d = points.cols();
  const auto& axes = grid_.axes();
  neighbours_ = {0};
  Index stride = 1;
  for (const auto& axis : axes) {
    const std::vector<Index> before = neighbours_;
    for (Index a = 1; a < width_; ++a)
      for (const Index q : before) neighbours_.push_back(q + a * stride);
    stride *= axis.nodes;
  }
  first_.assign(static_cast<std::size_t>(size_), 0);
  if (width_ == 4) axis_weights_.resize(static_cast<std::size_t>(4 * d * size_));
  for (Index i = 0; i < size_; ++i) {
    stride = 1;
    for (Index c = 0; c < d; ++c) {
      const auto& axis = axes[static_cast<std::size_t>(c)];
      const double at = (points(i, c) - axis.origin) / axis.step;
      Index node = 0;
      if (width_ == 4) {  // between nodes `inner` and `inner` + 1
        const Index inner = std::clamp<Index>(static_cast<Index>(at), 1, axis.nodes - outside);
        cubic_weights(at - static_cast<double>(inner), axis_weights_.data() + 4 * (c + d * i));
        node = inner - 1;
      } else {
        node = std::clamp<Index>(static_cast<Index>(std::lround(at)), 0, axis.nodes - 1);
      }
      first_[static_cast<std::size_t>(i)] += stride * node;
      stride *= axis.nodes;
    }
  }
}

Index GridInterpolation::expand(Index i, double* weights) const {
  weights[0] = 1;
  if (width_ == 4) {
    const auto d = static_cast<Index>(grid_.axes().size());
    const double* w = axis_weights_.data() + 4 * d * i;
    Index length = 1;
    for (Index c = 0; c < d; ++c, length *= 4, w += 4)
      for (Index a = 3; a >= 0; --a)
        for (Index q = 0; q < length; ++q) weights[a * length + q] = weights[q] * w[a];
  }
  return first_[static_cast<std::size_t>(i)];
}

void GridInterpolation::apply(ConstMatrixView x, MatrixView y) const {
  if (x.rows() != size_) throw DimensionMismatch("grid: rows of x", x.rows(), "size", size_);
  const std::size_t seen = neighbours_.size();
  const Index m = grid_.nodes();
  thread_local std::vector<double> buffer;
  if (buffer.size() < static_cast<std::size_t>(2 * m))
    buffer.resize(static_cast<std::size_t>(2 * m));
  double* const g = buffer.data();  // taken here: each worker has a buffer of its own
  for (Index first = 0; first < x.cols(); first += 2) {  // in pairs, as the grid likes them
    const Index columns = std::min<Index>(2, x.cols() - first);
    Eigen::Map<Matrix> nodes(g, m, columns);
    nodes.setZero();
    // One thread: points share nodes, and the order of the sums must not change.
    double weights[most_weights];
    for (Index i = 0; i < size_; ++i) {
      const Index at = expand(i, weights);
      for (Index j = 0; j < columns; ++j)
        for (std::size_t q = 0; q < seen; ++q)
          g[j * m + at + neighbours_[q]] += weights[q] * x(i, first + j);
    }
    grid_.apply(nodes, nodes);
    const auto body = [&](Index task, int) {
      double w[most_weights];
      const Index end = std::min(size_, (task + 1) * point_chunk);
      for (Index i = task * point_chunk; i < end; ++i) {
        const Index at = expand(i, w);
        for (Index j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::size_t q = 0; q < seen; ++q) sum += w[q] * g[j * m + at + neighbours_[q]];
          y(i, first + j) = sum;
        }
      }
    };
    parallel_for((size_ + point_chunk - 1) / point_chunk, std::ref(body));
  }
}

double GridInterpolation::bytes() const {
  return grid_.bytes() + 16.0 * static_cast<double>(grid_.nodes()) +
         8.0 * static_cast<double>(first_.size() + axis_weights_.size());
}

double GridInterpolation::apply_flops() const {
  return grid_.apply_flops() +
         6.0 * static_cast<double>(size_) * static_cast<double>(neighbours_.size());
}

}  // namespace mercer::approximations
