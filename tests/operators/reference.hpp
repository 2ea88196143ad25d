// Kernel values in long double, straight from the textbook formulas and independent of the tiles:
// differences are taken first, in long double, and nothing is rearranged.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/kernels/kernel.hpp"
#include "tests/testing/closed_forms.hpp"

namespace mercer::testing {

struct Entry {
  Long value = 0;
  // Size against which an error is measured: the value, with cancellation inside dot products
  // taken out (their terms are rounded one by one).
  Long scale = 0;
};

inline Entry reference_leaf(const kernels::Leaf& leaf, const Matrix& a, Index i, const Matrix& b,
                            Index j) {
  const auto& form = closed_form(leaf.info().name);
  const bool dot = leaf.info().family == kernels::Family::dot;
  Long argument = 0;
  Long absolute = 0;
  for (Index k = 0; k < leaf.num_inputs(); ++k) {
    const Long x = a(i, leaf.column(k)), y = b(j, leaf.column(k)), l = leaf.lengthscale(k);
    const Long term = dot ? x * y / (l * l) : squared_distance(leaf, x, y, l);
    argument += term;
    absolute += std::abs(term);
  }
  const Long shape = leaf.shape;
  const Long value = form.value(argument, shape, leaf.degree);
  return {value, dot ? form.value(absolute, shape, leaf.degree) : std::abs(value)};
}

inline Entry reference_node(const kernels::Node& node, const Matrix& a, Index i, const Matrix& b,
                            Index j) {
  using kernels::Node;
  if (node.kind == Node::Kind::leaf) return reference_leaf(node.leaf, a, i, b, j);
  Entry total = reference_node(node.children[0], a, i, b, j);
  if (node.kind == Node::Kind::scale)
    return {node.variance * total.value, node.variance * total.scale};
  for (std::size_t k = 1; k < node.children.size(); ++k) {
    const Entry next = reference_node(node.children[k], a, i, b, j);
    if (node.kind == Node::Kind::sum) {
      total = {total.value + next.value, total.scale + next.scale};
    } else {
      total = {total.value * next.value, total.scale * next.scale};
    }
  }
  return total;
}

using LongMatrix = Eigen::Matrix<Long, Eigen::Dynamic, Eigen::Dynamic>;

struct ReferenceMatrix {
  LongMatrix values;
  LongMatrix scales;
};

inline ReferenceMatrix reference_matrix(const kernels::Kernel& kernel, const Matrix& a,
                                        const Matrix& b) {
  ReferenceMatrix out{LongMatrix(a.rows(), b.rows()), LongMatrix(a.rows(), b.rows())};
  for (Index j = 0; j < b.rows(); ++j)
    for (Index i = 0; i < a.rows(); ++i) {
      const Entry entry = reference_node(kernel.root(), a, i, b, j);
      out.values(i, j) = entry.value;
      out.scales(i, j) = entry.scale;
    }
  return out;
}

/// Largest |y - K v| in units of sum_j |k_ij| |v_j|, over all components.
inline double scaled_error(const ReferenceMatrix& k, const Matrix& v, const Matrix& y) {
  const LongMatrix wide = v.cast<Long>();
  const LongMatrix exact = k.values * wide;
  const LongMatrix scale = k.scales * wide.cwiseAbs();
  double worst = 0;
  for (Index c = 0; c < y.cols(); ++c)
    for (Index i = 0; i < y.rows(); ++i) {
      const Long error = std::abs(y(i, c) - exact(i, c));
      if (!(error <= scale(i, c) * 1e3L)) return 1e3;  // NaN too
      if (error > 0) worst = std::max(worst, static_cast<double>(error / scale(i, c)));
    }
  return worst;
}

inline Matrix random_matrix(Index rows, Index columns, std::uint64_t seed) {
  Matrix out(rows, columns);
  Rng(seed, "operators test").fill_normal(out);
  return out;
}

/// Every registered kernel, with and without ARD, and some expressions of them.
inline std::vector<std::string> all_kernels() {
  std::vector<std::string> texts;
  for (const auto& info : kernels::kernels_registry()) {
    std::string text(info.name);
    texts.push_back(text);
    if (info.has_lengthscale) texts.push_back(text + ":iso");
  }
  for (const char* text : {"rbf + linear", "matern52 * periodic", "rbf * (rq + 0.5 * linear)",
                           "2 * matern32 + 0.3 * rbf:iso * poly:3 + constant",
                           "(rbf + matern12) * (linear + constant)"})
    texts.emplace_back(text);
  return texts;
}

/// A kernel with distinct parameters: lengthscales near sqrt(d), shapes near 1.
inline kernels::Kernel some_kernel(const std::string& text, Index d,
                                   double lengthscale_factor = 1) {
  auto kernel = kernels::Kernel::parse(text, d);
  Vector theta = kernel.log_parameters();
  const auto is_lengthscale = kernel.is_lengthscale();
  for (Index p = 0; p < theta.size(); ++p) {
    theta(p) += 0.1 * std::sin(1.0 + 3.0 * static_cast<double>(p));
    if (is_lengthscale[static_cast<std::size_t>(p)])
      theta(p) += std::log(lengthscale_factor * std::sqrt(static_cast<double>(d)));
  }
  kernel.set_log_parameters(theta);
  return kernel;
}

struct Sums {
  Vector value;
  Vector scale;  // sum of absolute terms
};

// sum_ij s_ij dk_ij/dtheta_p pair by pair.
inline Sums reference_gradient(const kernels::Kernel& kernel, const Matrix& x, const Matrix& s) {
  Sums sums{Vector::Zero(kernel.num_parameters()), Vector::Zero(kernel.num_parameters())};
  Vector g(kernel.num_parameters());
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.rows(); ++j) {
      kernel.evaluate_with_gradient(x.data() + i, x.outerStride(), x.data() + j, x.outerStride(),
                                    g);
      sums.value += s(i, j) * g;
      sums.scale += std::abs(s(i, j)) * g.cwiseAbs();
    }
  return sums;
}

inline void expect_close(const Vector& gradient, const Sums& reference, double tolerance,
                         const std::string& what) {
  for (Index p = 0; p < gradient.size(); ++p)
    EXPECT_LE(std::abs(gradient(p) - reference.value(p)), tolerance * reference.scale(p))
        << what << ", parameter " << p << ", expected " << reference.value(p);
}

}  // namespace mercer::testing
