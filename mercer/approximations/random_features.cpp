#include "mercer/approximations/random_features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "mercer/core/error.hpp"
#include "mercer/core/planned_threads.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"

namespace mercer::approximations {
namespace {

using kernels::Family;
using kernels::Leaf;
using kernels::Node;
using Monomial = RandomFeatures::Monomial;
using Term = RandomFeatures::Term;

constexpr std::size_t most_monomials = 1000;
constexpr std::size_t most_terms = 100;
constexpr Index kCombineRows = 256;  // rows whose features are held at once, per thread

// --- The expression as a sum of products ---------------------------------------------------------

void check_monomials(std::size_t count) {
  if (count > most_monomials)
    throw InvalidArgument(
        fmt::format("random features: the polynomial part of the kernel has more than {} monomials",
                    most_monomials));
}

/// sum_c x_c y_c / l_c^2 as monomials x_c / l_c.
std::vector<Monomial> linear_monomials(const Leaf& leaf, Index d) {
  check_monomials(leaf.inputs.size());
  std::vector<Monomial> out;
  for (Index k = 0; k < leaf.num_inputs(); ++k) {
    Monomial one{1 / leaf.lengthscale(k), std::vector<int>(static_cast<std::size_t>(d), 0)};
    one.exponents[static_cast<std::size_t>(leaf.column(k))] = 1;
    out.push_back(std::move(one));
  }
  return out;
}

/// All products of a monomial of a and one of b; equal powers are put together (their squares add).
std::vector<Monomial> multiply(const std::vector<Monomial>& a, const std::vector<Monomial>& b) {
  std::map<std::vector<int>, double> squares;
  for (const auto& p : a)
    for (const auto& q : b) {
      auto exponents = p.exponents;
      for (std::size_t c = 0; c < exponents.size(); ++c) exponents[c] += q.exponents[c];
      squares[exponents] += std::pow(p.coefficient * q.coefficient, 2);
      check_monomials(squares.size());
    }
  std::vector<Monomial> out;
  out.reserve(squares.size());
  for (const auto& [exponents, square] : squares) out.push_back({std::sqrt(square), exponents});
  return out;
}

/// (s + offset)^degree, one factor after the other.
std::vector<Monomial> leaf_monomials(const Leaf& leaf, Index d) {
  const auto power = leaf.info().power(leaf.own());
  auto factor = linear_monomials(leaf, d);
  if (power.degree == 1 && power.offset == 0) return factor;
  const Monomial one{1, std::vector<int>(static_cast<std::size_t>(d), 0)};
  if (power.offset > 0) {
    factor.push_back(one);
    factor.back().coefficient = std::sqrt(power.offset);
  }
  std::vector<Monomial> out = {one};
  for (int i = 0; i < power.degree; ++i) out = multiply(out, factor);
  return out;
}

Term leaf_term(const Leaf& leaf, Index d) {
  const auto& info = leaf.info();
  if (!info.no_features.empty())
    throw InvalidArgument(
        fmt::format("random features: {} has none: {}", info.name, info.no_features));
  Term term;
  term.monomials = {{1, std::vector<int>(static_cast<std::size_t>(d), 0)}};
  if (info.family == Family::distance) term.distance_leaves = {leaf};
  if (info.family == Family::dot) term.monomials = leaf_monomials(leaf, d);
  return term;
}

Term multiply(const Term& a, const Term& b) {
  Term out = a;
  out.variance *= b.variance;
  out.distance_leaves.insert(out.distance_leaves.end(), b.distance_leaves.begin(),
                             b.distance_leaves.end());
  out.monomials = multiply(a.monomials, b.monomials);
  return out;
}

std::vector<Term> expand(const Node& node, Index d) {
  if (node.kind == Node::Kind::leaf) return {leaf_term(node.leaf, d)};
  auto terms = expand(node.children[0], d);
  if (node.kind == Node::Kind::scale)
    for (auto& term : terms) term.variance *= node.variance;
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    const auto more = expand(node.children[i], d);
    if (node.kind == Node::Kind::sum) {
      terms.insert(terms.end(), more.begin(), more.end());
    } else {
      std::vector<Term> product;
      for (const auto& a : terms)
        for (const auto& b : more) product.push_back(multiply(a, b));
      terms = std::move(product);
    }
    if (terms.size() > most_terms)
      throw InvalidArgument(fmt::format(
          "random features: the kernel multiplied out has more than {} terms", most_terms));
  }
  return terms;
}

bool is_exact(const Term& term) { return term.distance_leaves.empty(); }

/// Features of one frequency, or all of an exact term.
Index smallest(const Term& term) {
  return static_cast<Index>(term.monomials.size()) * (is_exact(term) ? 1 : 2);
}

Index smallest(const std::vector<Term>& terms) {
  Index sum = 0;
  for (const auto& term : terms) sum += smallest(term);
  return sum;
}

// --- Frequencies ---------------------------------------------------------------------------------

/// w(:, i) += a frequency of the leaf, in the inputs that it sees.
void add_frequencies(const Leaf& leaf, Rng& rng, Matrix& w) {
  Matrix own = Matrix::Zero(leaf.num_inputs(), w.cols());
  leaf.info().add_frequencies(leaf.all_lengthscales(), leaf.own(), rng, own);
  for (Index k = 0; k < leaf.num_inputs(); ++k) w.row(leaf.column(k)) += own.row(k);
}

/// Frequencies of every term: one each, the rest by share of the variance, what remains to the
/// first terms that it suffices for.
std::vector<Index> share(const std::vector<Term>& terms, Index count) {
  double variance = 0;
  for (const auto& term : terms) variance += is_exact(term) ? 0 : term.variance;
  const Index spare = count - smallest(terms);
  Index left = spare;
  std::vector<Index> out(terms.size(), 0);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (is_exact(terms[t])) continue;
    const double part = variance > 0 ? terms[t].variance / variance : 0;
    const auto more = static_cast<Index>(part * static_cast<double>(spare)) / smallest(terms[t]);
    out[t] = 1 + more;
    left -= more * smallest(terms[t]);
  }
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (is_exact(terms[t])) continue;
    const Index more = std::max<Index>(left, 0) / smallest(terms[t]);
    out[t] += more;
    left -= more * smallest(terms[t]);
  }
  return out;
}

// --- Evaluation ----------------------------------------------------------------------------------

double value(const Monomial& monomial, ConstMatrixView x, Index i) {
  double out = monomial.coefficient;
  for (Index c = 0; c < x.cols(); ++c)
    for (int power = 0; power < monomial.exponents[static_cast<std::size_t>(c)]; ++power)
      out *= x(i, c);
  return out;
}

/// Rows first .. first + rows of the features of one term, at columns column .. of out. The first
/// m columns hold the phases X W.
void evaluate_rows(const Term& term, ConstMatrixView x, Index first, Index rows, Index column,
                   MatrixView out) {
  const Index m = term.frequencies.cols(), last = first + rows;
  const auto monomials = static_cast<Index>(term.monomials.size());
  const double root = std::sqrt(term.variance / static_cast<double>(std::max<Index>(m, 1)));
  if (m > 0)
    for (Index j = 0; j < m; ++j)
      for (Index i = first; i < last; ++i) {
        const double phase = out(i, column + j);
        out(i, column + j) = root * std::cos(phase);
        out(i, column + m + j) = root * std::sin(phase);
      }
  // Later monomials copy the pairs, so the first is multiplied in last.
  const Index width = std::max<Index>(2 * m, 1);
  Vector factor(rows);
  for (Index e = monomials - 1; e >= 0; --e) {
    for (Index i = 0; i < rows; ++i)
      factor(i) = value(term.monomials[static_cast<std::size_t>(e)], x, first + i);
    if (m == 0) {
      out.col(column + e).segment(first, rows) = root * factor;
      continue;
    }
    for (Index j = 0; j < width; ++j)
      out.col(column + e * width + j).segment(first, rows) =
          out.col(column + j).segment(first, rows).cwiseProduct(factor);
  }
}

}  // namespace

Index RandomFeatures::Term::features() const {
  return static_cast<Index>(monomials.size()) * std::max<Index>(2 * frequencies.cols(), 1);
}

RandomFeatures::RandomFeatures(const kernels::Kernel& kernel, Index count, std::uint64_t seed)
    : num_inputs_(kernel.num_inputs()), terms_(expand(kernel.root(), num_inputs_)) {
  if (smallest(terms_) > count)
    throw InvalidArgument(
        fmt::format("random features: {} features are asked for, but the kernel {} needs {}", count,
                    kernel.text(), smallest(terms_)));
  const auto frequencies = share(terms_, count);
  for (std::size_t t = 0; t < terms_.size(); ++t) {
    auto& term = terms_[t];
    term.frequencies = Matrix::Zero(num_inputs_, frequencies[t]);
    for (std::size_t l = 0; l < term.distance_leaves.size(); ++l) {
      Rng rng(seed, "random features", t * 1000 + l);
      add_frequencies(term.distance_leaves[l], rng, term.frequencies);
    }
    count_ += term.features();
  }
}

Matrix RandomFeatures::combine(ConstMatrixView x, ConstMatrixView c) const {
  Matrix out(x.rows(), c.cols());
  const auto body = [&](Index task, int) {
    const Index first = task * kCombineRows, rows = std::min(kCombineRows, x.rows() - first);
    Matrix phi(rows, count_);
    evaluate(x.middleRows(first, rows), phi);
    linalg::gemm(1.0, phi, linalg::Transpose::no, c, linalg::Transpose::no, 0.0,
                 out.middleRows(first, rows));
  };
  parallel_for((x.rows() + kCombineRows - 1) / kCombineRows, std::ref(body));
  return out;
}

double RandomFeatures::combine_bytes(Index features) {
  return 8.0 * static_cast<double>(features * kCombineRows * kPlannedThreads);
}

void RandomFeatures::evaluate(ConstMatrixView x, MatrixView out) const {
  if (x.cols() != num_inputs_)
    throw DimensionMismatch("random features: columns of x", x.cols(), "number of inputs",
                            num_inputs_);
  if (out.rows() != x.rows())
    throw DimensionMismatch("random features: rows of out", out.rows(), "rows of x", x.rows());
  if (out.cols() != count_)
    throw DimensionMismatch("random features: columns of out", out.cols(), "number of features",
                            count_);
  Index column = 0;
  for (const auto& term : terms_) {
    const Index m = term.frequencies.cols();
    if (m > 0)
      linalg::gemm(1.0, x, linalg::Transpose::no, term.frequencies, linalg::Transpose::no, 0.0,
                   out.middleCols(column, m));
    linalg::for_panels(x.rows(), [&](Index first, Index rows) {
      evaluate_rows(term, x, first, rows, column, out);
    });
    column += term.features();
  }
}

Index RandomFeatures::smallest_count(const kernels::Kernel& kernel) {
  return smallest(expand(kernel.root(), kernel.num_inputs()));
}

std::string RandomFeatures::refusal(const kernels::Kernel& kernel) {
  try {
    expand(kernel.root(), kernel.num_inputs());
    return "";
  } catch (const InvalidArgument& reason) {
    return reason.what();
  }
}

}  // namespace mercer::approximations
