#include "mercer/operators/cross_gradient.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/detail/tree_pass.hpp"

namespace mercer::operators {
namespace {

using detail::kGradientPanel;
using detail::kGradientRows;
using TreePass = detail::TreePass<double>;

// Rows of x that one task of diagonal_gradient adds up.
constexpr Index kDiagonalRows = 256;

void check_weights(const std::string& what, ConstMatrixView a, ConstMatrixView b,
                   ConstMatrixView w) {
  if (w.rows() != a.rows())
    throw DimensionMismatch(what + ": rows of w", w.rows(), "rows of a", a.rows());
  if (w.cols() != b.rows())
    throw DimensionMismatch(what + ": columns of w", w.cols(), "rows of b", b.rows());
}

void check_length(const std::string& what, const kernels::Kernel& kernel,
                  const VectorView& gradient) {
  if (gradient.size() != kernel.num_parameters())
    throw DimensionMismatch(what + ": length of gradient", gradient.size(), "number of parameters",
                            kernel.num_parameters());
}

// All pairs of a and b: strips have rows of b, sorted so that near ones share a group, and run
// along a, so that a column of w is read from top to bottom. Blocks of rows of b are the tasks.
class CrossSweep {
 public:
  CrossSweep(const kernels::Kernel& kernel, const ConstMatrixView& a, const ConstMatrixView& b,
             const ConstMatrixView& w)
      : w_(w),
        program_(kernel),
        columns_(program_, a, {.sort = false, .grouped = false}),
        rows_(program_, b,
              {.align = simd::kPackedRows,
               .block = detail::kTile,
               .origin = a.rows() > 0 ? a.data() : nullptr,
               .origin_stride = a.outerStride()}),
        passes_(static_cast<std::size_t>(num_threads())) {}

  const detail::Program& program() const { return program_; }
  const detail::PointSet& rows() const { return rows_; }
  Index num_blocks() const {
    return columns_.size() == 0 ? 0 : static_cast<Index>(rows_.blocks().size());
  }

  /// Calls task(block, visit) for each block of rows of b, on any thread; visit(strip, panel) runs
  /// strip(pass, row) after the forward pass of every strip, with w as the adjoint of the root, and
  /// panel(pass) after every panel.
  template <class Task>
  void run(const Task& task) {
    parallel_for(num_blocks(), [&](Index block, int worker) {
      auto& pass = passes_[static_cast<std::size_t>(worker)];
      if (!pass) pass = std::make_unique<TreePass>(program_, rows_, columns_, detail::kTile);
      task(block, [&](const auto& strip, const auto& panel) {
        for (const auto& group : rows_.blocks()[static_cast<std::size_t>(block)].groups)
          visit_group(*pass, group, strip, panel);
      });
    });
  }

 private:
  template <class Strip, class Panel>
  void visit_group(TreePass& pass, const detail::RowGroup& group, const Strip& strip,
                   const Panel& panel) const {
    pass.set_rows(group, group.begin, group.end);
    for (Index c = 0; c < columns_.padded(); c += kGradientPanel) {
      const Index c_end = std::min(c + kGradientPanel, columns_.padded());
      stop_if_requested("evaluating derivatives of the kernel");
      pass.begin_panel(c, c_end);
      for (Index row = group.begin; row < group.end; row += kGradientRows) {
        const Index count = std::min(kGradientRows, group.end - row);
        pass.forward(row - group.begin, count);
        fill_adjoint(row, count, c, c_end, pass.root_adjoint());
        strip(pass, row);
      }
      panel(pass);
    }
  }

  // Points that only fill up a tile have weight 0.
  void fill_adjoint(Index row, Index count, Index c, Index c_end, double* adjoint) const {
    const Index used = std::min(c_end, columns_.size()) - c;
    for (Index r = row; r < row + count; ++r, adjoint += c_end - c) {
      Index filled = 0;
      if (r < rows_.size()) {
        const Index j = rows_.order()[static_cast<std::size_t>(r)];
        std::copy_n(w_.data() + j * w_.outerStride() + c, used, adjoint);
        filled = used;
      }
      std::fill(adjoint + filled, adjoint + (c_end - c), 0.0);
    }
  }

  const ConstMatrixView& w_;
  detail::Program program_;
  detail::PointSet columns_;
  detail::PointSet rows_;
  std::vector<std::unique_ptr<TreePass>> passes_;
};

}  // namespace

void cross_gradient(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView b,
                    ConstMatrixView w, VectorView gradient) {
  check_weights("cross gradient", a, b, w);
  check_length("cross gradient", kernel, gradient);
  CrossSweep sweep(kernel, a, b, w);
  Matrix partial = Matrix::Zero(kernel.num_parameters(), sweep.num_blocks());
  sweep.run([&](Index block, const auto& visit) {
    double* sums = partial.data() + block * partial.rows();
    visit([&](TreePass& pass, Index) { pass.backward(sums); },
          [&](TreePass& pass) { pass.end_panel(sums); });
  });
  gradient.setZero();
  for (Index block = 0; block < partial.cols(); ++block) gradient += partial.col(block);
}

void input_gradient(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView b,
                    ConstMatrixView w, MatrixView out) {
  check_weights("input gradient", a, b, w);
  if (out.rows() != b.rows())
    throw DimensionMismatch("input gradient: rows of out", out.rows(), "rows of b", b.rows());
  if (out.cols() != b.cols())
    throw DimensionMismatch("input gradient: columns of out", out.cols(), "columns of b", b.cols());
  CrossSweep sweep(kernel, a, b, w);
  const Index d = b.cols();
  sweep.run([&](Index block, const auto& visit) {
    const auto& range = sweep.rows().blocks()[static_cast<std::size_t>(block)];
    std::vector<double> sums(static_cast<std::size_t>((range.end - range.begin) * d), 0.0);
    visit([&](TreePass& pass,
              Index row) { pass.backward_inputs(sums.data() + (row - range.begin) * d); },
          [](TreePass&) {});
    const Index end = std::min(range.end, sweep.rows().size());
    for (Index row = range.begin; row < end; ++row)
      for (Index c = 0; c < d; ++c)
        out(sweep.rows().order()[static_cast<std::size_t>(row)], c) +=
            sums[static_cast<std::size_t>((row - range.begin) * d + c)];
  });
}

void diagonal_gradient(const kernels::Kernel& kernel, ConstMatrixView x, ConstVectorView w,
                       VectorView gradient) {
  if (w.size() != x.rows())
    throw DimensionMismatch("diagonal gradient: length of w", w.size(), "points", x.rows());
  if (x.cols() != kernel.num_inputs())
    throw DimensionMismatch("diagonal gradient: columns of the points", x.cols(),
                            "inputs of the kernel", kernel.num_inputs());
  check_length("diagonal gradient", kernel, gradient);
  gradient.setZero();
  if (x.rows() == 0) return;
  const auto at = [&](Index i, Vector& derivative) {
    const double* point = x.data() + i;
    kernel.evaluate_with_gradient(point, x.outerStride(), point, x.outerStride(), derivative);
  };
  // k(x, x) of a stationary kernel is the same number everywhere.
  if (kernel.stationary()) {
    Vector derivative(kernel.num_parameters());
    at(0, derivative);
    gradient = w.sum() * derivative;
    return;
  }
  const Index tasks = (x.rows() + kDiagonalRows - 1) / kDiagonalRows;
  Matrix partial = Matrix::Zero(kernel.num_parameters(), tasks);
  parallel_for(tasks, [&](Index task, int) {
    Vector derivative(kernel.num_parameters());
    const Index end = std::min(x.rows(), (task + 1) * kDiagonalRows);
    for (Index i = task * kDiagonalRows; i < end; ++i) {
      at(i, derivative);
      partial.col(task) += w(i) * derivative;
    }
  });
  for (Index task = 0; task < tasks; ++task) gradient += partial.col(task);
}

}  // namespace mercer::operators
