#include "mercer/approximations/grid_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <unsupported/Eigen/FFT>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::approximations {
namespace {

using Complex = std::complex<double>;

constexpr Index longest_factor = 1024;  // above, a dense factor of an axis is dearer than Fourier
constexpr Index offsets_at_once = 1 << 16;
constexpr Index lines_at_once = 64;
constexpr Index parallel_values = 1 << 15;  // below, one thread is enough

void collect_inputs(const kernels::Node& node, std::set<Index>& inputs) {
  for (const auto& child : node.children) collect_inputs(child, inputs);
  if (node.kind == kernels::Node::Kind::leaf)
    inputs.insert(node.leaf.inputs.begin(), node.leaf.inputs.end());
}

/// A product over the inputs. What sees one input only is a factor of that input, whatever it is.
bool separable(const kernels::Node& node) {
  using Kind = kernels::Node::Kind;
  std::set<Index> inputs;
  collect_inputs(node, inputs);
  if (inputs.size() <= 1) return true;
  if (node.kind == Kind::sum) return false;
  if (node.kind == Kind::leaf) return node.leaf.info().separable;
  return std::all_of(node.children.begin(), node.children.end(),
                     [](const kernels::Node& child) { return separable(child); });
}

/// The next length at or above n without prime factors beyond 5.
Index smooth_length(Index n) {
  for (;; ++n) {
    Index left = n;
    for (const Index prime : {2, 3, 5})
      while (left % prime == 0) left /= prime;
    if (left == 1) return n;
  }
}

/// No embedding is needed for a single node.
Index embedded_length(Index nodes) { return nodes == 1 ? 1 : smooth_length(2 * nodes - 1); }

/// k(0, offset) for the rows of `offsets`.
Vector values_at(const kernels::Kernel& kernel, const Matrix& offsets) {
  Matrix out(offsets.rows(), 1);
  operators::cross_matrix(kernel, offsets, Matrix::Zero(1, offsets.cols()), out);
  return out.col(0);
}

std::vector<Complex>& scratch(std::size_t size) {
  thread_local std::vector<Complex> buffer;
  if (buffer.size() < size) buffer.resize(size);
  return buffer;
}

}  // namespace

bool separable(const kernels::Kernel& kernel) {
  return kernel.stationary() && separable(kernel.root());
}

double GridKernel::embedded_nodes(const std::vector<Index>& nodes) {
  double product = 1;
  for (const Index m : nodes) product *= static_cast<double>(embedded_length(m));
  return product;
}

GridKernel::GridKernel(const kernels::Kernel& kernel, std::vector<GridAxis> axes)
    : axes_(std::move(axes)) {
  if (static_cast<Index>(axes_.size()) != kernel.num_inputs())
    throw DimensionMismatch("grid: number of axes", static_cast<Index>(axes_.size()),
                            "inputs of the kernel", kernel.num_inputs());
  if (!kernel.stationary())
    throw InvalidArgument("grid: a kernel on a grid must depend on differences of points only");
  Index longest = 0;
  for (const auto& axis : axes_) {
    if (axis.nodes < 1) throw InvalidArgument("grid: an axis needs at least one node");
    nodes_ *= axis.nodes;
    longest = std::max(longest, axis.nodes);
  }
  if (separable(kernel) && longest <= longest_factor) {
    build_factors(kernel);
  } else {
    build_spectrum(kernel);
  }
}

void GridKernel::build_factors(const kernels::Kernel& kernel) {
  const auto d = static_cast<Index>(axes_.size());
  variance_ = values_at(kernel, Matrix::Zero(1, d))(0);
  for (Index c = 0; c < d; ++c) {
    const auto& axis = axes_[static_cast<std::size_t>(c)];
    Matrix offsets = Matrix::Zero(axis.nodes, d);
    for (Index i = 0; i < axis.nodes; ++i) offsets(i, c) = static_cast<double>(i) * axis.step;
    const Vector column = values_at(kernel, offsets) / variance_;
    Matrix factor(axis.nodes, axis.nodes);
    for (Index j = 0; j < axis.nodes; ++j)
      for (Index i = 0; i < axis.nodes; ++i) factor(i, j) = column(std::abs(i - j));
    factors_.push_back(std::move(factor));
    kernel_values_ += static_cast<double>(axis.nodes);
  }
}

// The first column of the embedding: k at offset i for i < m, at L - i for L - i < m, else 0. The
// kernels are even in every input, so offsets of one sign are enough.
void GridKernel::build_spectrum(const kernels::Kernel& kernel) {
  const std::size_t d = axes_.size();
  std::size_t total = 1;
  for (const auto& axis : axes_) {
    lengths_.push_back(embedded_length(axis.nodes));
    total *= static_cast<std::size_t>(lengths_.back());
  }
  std::vector<Complex> data(total, 0.0);
  std::vector<Index> at(d, 0);
  Matrix offsets;
  for (Index first = 0; first < nodes_; first += offsets_at_once) {
    const Index count = std::min(offsets_at_once, nodes_ - first);
    offsets.resize(count, static_cast<Index>(d));
    for (Index i = 0; i < count; ++i) {
      Index rest = first + i;
      for (std::size_t c = 0; c < d; ++c) {
        offsets(i, static_cast<Index>(c)) =
            static_cast<double>(rest % axes_[c].nodes) * axes_[c].step;
        rest /= axes_[c].nodes;
      }
    }
    const Vector values = values_at(kernel, offsets);
    for (Index i = 0; i < count; ++i) {
      // Every reflection of the offset, axis by axis.
      for (std::size_t mirror = 0; mirror < (std::size_t{1} << d); ++mirror) {
        Index rest = first + i, stride = 1, where = 0;
        for (std::size_t c = 0; c < d; ++c) {
          const Index node = rest % axes_[c].nodes;
          rest /= axes_[c].nodes;
          const bool mirrored = (mirror >> c & 1) != 0 && node > 0;
          where += stride * (mirrored ? lengths_[c] - node : node);
          stride *= lengths_[c];
        }
        data[static_cast<std::size_t>(where)] = values(i);
      }
    }
  }
  kernel_values_ = static_cast<double>(nodes_);
  for (std::size_t c = 0; c < d; ++c) transform_axis(c, true, false, data);
  spectrum_.resize(total);
  for (std::size_t i = 0; i < total; ++i)
    spectrum_[i] = data[i].real() / static_cast<double>(total);
}

// All lines along one axis. Pruned: axes before it are full, those after it hold the grid only,
// since forward transforms run from the first axis to the last and inverse ones back.
void GridKernel::transform_axis(std::size_t axis, bool forward, bool pruned,
                                std::vector<Complex>& data) const {
  const Index length = lengths_[axis];
  if (length == 1) return;
  Index stride = 1, outer = 1;
  for (std::size_t c = 0; c < axis; ++c) stride *= lengths_[c];
  for (std::size_t c = axis + 1; c < lengths_.size(); ++c)
    outer *= pruned ? axes_[c].nodes : lengths_[c];
  const Index lines = stride * outer;
  const auto body = [&](Index task, int) {
    thread_local Eigen::FFT<double> fft(Eigen::default_fft_impl<double>(),
                                        Eigen::FFT<double>::Unscaled);
    thread_local std::vector<Complex> in, out;
    in.resize(static_cast<std::size_t>(length));
    out.resize(in.size());
    const Index end = std::min(lines, (task + 1) * lines_at_once);
    for (Index line = task * lines_at_once; line < end; ++line) {
      Index where = line % stride, rest = line / stride, step = stride * length;
      for (std::size_t c = axis + 1; c < lengths_.size(); ++c) {
        const Index extent = pruned ? axes_[c].nodes : lengths_[c];
        where += rest % extent * step;
        rest /= extent;
        step *= lengths_[c];
      }
      Complex* first = data.data() + where;
      for (Index i = 0; i < length; ++i) in[static_cast<std::size_t>(i)] = first[i * stride];
      if (forward) {
        fft.fwd(out.data(), in.data(), length);
      } else {
        fft.inv(out.data(), in.data(), length);
      }
      for (Index i = 0; i < length; ++i) first[i * stride] = out[static_cast<std::size_t>(i)];
    }
  };
  const Index tasks = (lines + lines_at_once - 1) / lines_at_once;
  if (lines * length >= parallel_values) {
    parallel_for(tasks, std::ref(body));
  } else {
    for (Index task = 0; task < tasks; ++task) body(task, 0);
  }
}

void GridKernel::apply(ConstMatrixView x, MatrixView y) const {
  if (x.rows() != nodes_) throw DimensionMismatch("grid: rows of x", x.rows(), "nodes", nodes_);
  if (y.rows() != nodes_) throw DimensionMismatch("grid: rows of y", y.rows(), "nodes", nodes_);
  if (y.cols() != x.cols())
    throw DimensionMismatch("grid: columns of y", y.cols(), "columns of x", x.cols());
  if (kronecker()) {
    for (Index j = 0; j < x.cols(); ++j) apply_factors(x.col(j), y.col(j));
    return;
  }
  for (Index j = 0; j < x.cols(); j += 2) {
    const Index columns = std::min<Index>(2, x.cols() - j);
    apply_spectrum(x.middleCols(j, columns), y.middleCols(j, columns));
  }
}

// x seen as m_c x rest: out = x' T_c is rest x m_c, with the next axis in front. After all axes the
// first is in front again.
void GridKernel::apply_factors(ConstVectorView x, VectorView y) const {
  thread_local std::vector<double> buffers[2];
  for (auto& buffer : buffers)
    if (buffer.size() < static_cast<std::size_t>(nodes_))
      buffer.resize(static_cast<std::size_t>(nodes_));
  double* from = buffers[0].data();
  double* to = buffers[1].data();
  Eigen::Map<Vector>(from, nodes_) = variance_ * x;
  for (const Matrix& t : factors_) {
    const Index m = t.rows(), rest = nodes_ / m;
    linalg::gemm(1.0, Eigen::Map<const Matrix>(from, m, rest), linalg::Transpose::yes, t,
                 linalg::Transpose::no, 0.0, Eigen::Map<Matrix>(to, rest, m));
    std::swap(from, to);
  }
  y = Eigen::Map<const Vector>(from, nodes_);
}

// One column, or two at once as real and imaginary part: the embedding is real.
void GridKernel::apply_spectrum(ConstMatrixView x, MatrixView y) const {
  const bool pair = x.cols() == 2;
  auto& data = scratch(spectrum_.size());
  std::fill(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(spectrum_.size()), 0.0);
  const auto for_nodes = [&](const auto& visit) {  // visit(node, its place in the embedding)
    const Index row = axes_.empty() ? 1 : axes_[0].nodes;
    for (Index first = 0; first < nodes_; first += row) {
      Index rest = first / row, stride = lengths_.empty() ? 1 : lengths_[0], where = 0;
      for (std::size_t c = 1; c < axes_.size(); ++c) {
        where += stride * (rest % axes_[c].nodes);
        rest /= axes_[c].nodes;
        stride *= lengths_[c];
      }
      for (Index i = 0; i < row; ++i) visit(first + i, static_cast<std::size_t>(where + i));
    }
  };
  for_nodes([&](Index node, std::size_t where) {
    data[where] = {x(node, 0), pair ? x(node, 1) : 0.0};
  });
  for (std::size_t c = 0; c < axes_.size(); ++c) transform_axis(c, true, true, data);
  for (std::size_t i = 0; i < spectrum_.size(); ++i) data[i] *= spectrum_[i];
  for (std::size_t c = axes_.size(); c-- > 0;) transform_axis(c, false, true, data);
  for_nodes([&](Index node, std::size_t where) {
    y(node, 0) = data[where].real();
    if (pair) y(node, 1) = data[where].imag();
  });
}

double GridKernel::bytes() const {
  if (!kronecker()) return 24.0 * static_cast<double>(spectrum_.size());
  double sum = 16.0 * static_cast<double>(nodes_);
  for (const Matrix& t : factors_) sum += 8.0 * static_cast<double>(t.size());
  return sum;
}

double GridKernel::apply_flops() const {
  if (!kronecker()) {
    const auto total = static_cast<double>(spectrum_.size());
    return 10 * total * std::log2(total + 1);
  }
  double sum = 0;
  for (const auto& axis : axes_) sum += static_cast<double>(axis.nodes);
  return 2 * static_cast<double>(nodes_) * sum;
}

}  // namespace mercer::approximations
