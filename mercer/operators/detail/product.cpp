#include "mercer/operators/detail/product.hpp"

#include <algorithm>
#include <memory>

#include "mercer/core/stop.hpp"
#include "mercer/core/subnormals.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::operators::detail {
namespace {

// What one thread needs to work on units in arithmetic T.
template <class T>
struct Worker {
  Worker(const Program& program, const std::vector<VectorChunk>& chunks, StripShape shape)
      : evaluator(program, shape), multiplier(chunks, shape.max_columns) {}
  StripEvaluator<T> evaluator;
  StripMultiplier<T> multiplier;
};

// A product in arithmetic T: vectors in that type and the workers' scratch.
template <class T>
class Pass {
 public:
  Pass(const Program& program, const PointSet& rows, const PointSet& columns,
       const std::vector<VectorChunk>& chunks, ConstMatrixView v, const std::vector<double>& scales,
       double* y, bool symmetric)
      : program_(program),
        rows_(rows),
        columns_(columns),
        chunks_(chunks),
        v_(pack_vectors<T>(columns, chunks, v, scales)),
        y_(y),
        symmetric_(symmetric),
        panel_(panel_columns(program, sizeof(T), chunks.front().many)),
        workers_(static_cast<std::size_t>(num_threads())) {}

  void run(const Unit& unit, int worker) {
    const NoSubnormals flushed;
    auto& slot = workers_[static_cast<std::size_t>(worker)];
    if (!slot) slot = make_worker();
    auto& evaluator = slot->evaluator;
    auto& multiplier = slot->multiplier;
    constexpr auto kPrecision = sizeof(T) == 4 ? Precision::float32 : Precision::float64;
    const Box row_box = rows_.box(unit.row_begin, unit.row_end);
    evaluator.set_rows(rows_, *unit.group, unit.row_begin, unit.row_end);
    const Index step = strip_rows(chunks_);
    for (Index c = unit.column_begin; c < unit.column_end; c += panel_) {
      const Index c_end = std::min(c + panel_, unit.column_end);
      stop_if_requested("multiplying by the kernel matrix");
      if (PointSet::negligible(program_, row_box, columns_.box(c, c_end), kPrecision)) continue;
      evaluator.set_columns(columns_, c, c_end);
      multiplier.set_columns(c, c_end - c);
      for (Index row = unit.row_begin; row < unit.row_end; row += step) {
        const Index count = std::min(step, unit.row_end - row);
        const T* strip = evaluator.evaluate(row - unit.row_begin, count);
        multiplier.multiply(strip, row, count, unit.symmetric);
        const Index done = row + count - unit.row_begin;
        if (unit.symmetric && (done % kFlushRows == 0 || row + count == unit.row_end))
          multiplier.flush();
      }
    }
  }

 private:
  std::unique_ptr<Worker<T>> make_worker() const {
    const StripShape shape{rows_.largest_block(), panel_, strip_rows(chunks_)};
    auto worker = std::make_unique<Worker<T>>(program_, chunks_, shape);
    auto& m = worker->multiplier;
    m.v_columns = v_.data();
    m.columns_padded = columns_.padded();
    m.y_rows = y_;
    m.rows_padded = rows_.padded();
    if (symmetric_) {
      m.v_rows = v_.data();
      m.y_columns = y_;
    }
    return worker;
  }

  const Program& program_;
  const PointSet& rows_;
  const PointSet& columns_;
  const std::vector<VectorChunk>& chunks_;
  Buffer<T> v_;
  double* y_;
  bool symmetric_;
  Index panel_;
  std::vector<std::unique_ptr<Worker<T>>> workers_;
};

// The passes a precision needs: float32 falls back to double for groups that are wide.
class Passes {
 public:
  Passes(const Program& program, const PointSet& rows, const PointSet& columns, Precision precision,
         ConstMatrixView v, bool symmetric)
      : chunks_(plan_chunks(v.cols())),
        scales_(precision == Precision::float32
                    ? column_scales(v)
                    : std::vector<double>(static_cast<std::size_t>(v.cols()), 1.0)),
        y_(stored_columns(chunks_) * rows.padded()),
        rows_(rows),
        factor_(program.outer_factor) {
    std::fill(y_.data(), y_.data() + stored_columns(chunks_) * rows.padded(), 0.0);
    if (precision == Precision::float32)
      narrow_ = std::make_unique<Pass<float>>(program, rows, columns, chunks_, v, scales_,
                                              y_.data(), symmetric);
    if (precision == Precision::float64 || rows.any_wide())
      wide_ = std::make_unique<Pass<double>>(program, rows, columns, chunks_, v, scales_, y_.data(),
                                             symmetric);
  }

  void run(const Unit& unit, int worker) {
    if (!narrow_ || unit.group->wide) {
      wide_->run(unit, worker);
    } else {
      narrow_->run(unit, worker);
    }
  }

  void finish(MatrixView y) const {
    unpack_vectors(rows_, chunks_, y_.data(), factor_, scales_, y);
  }

 private:
  std::vector<VectorChunk> chunks_;
  std::vector<double> scales_;
  Buffer<double> y_;
  const PointSet& rows_;
  double factor_;
  std::unique_ptr<Pass<float>> narrow_;
  std::unique_ptr<Pass<double>> wide_;
};

}  // namespace

Index strip_rows(const std::vector<VectorChunk>& chunks) { return chunks.size() > 1 ? 32 : 8; }

void symmetric_product(const Program& program, const PointSet& points, Precision precision,
                       ConstMatrixView v, MatrixView y) {
  if (v.cols() == 0 || points.size() == 0) return;
  Passes passes(program, points, points, precision, v, true);
  tournament(static_cast<Index>(points.blocks().size()), [&](Index i, Index j, Index, int worker) {
    for_each_unit(points, i, j, [&](const Unit& unit) { passes.run(unit, worker); });
  });
  passes.finish(y);
}

void cross_product(const Program& program, const PointSet& rows, const PointSet& columns,
                   Precision precision, ConstMatrixView v, MatrixView y) {
  if (v.cols() == 0 || rows.size() == 0) return;
  if (columns.size() == 0) {
    y.setZero();
    return;
  }
  Passes passes(program, rows, columns, precision, v, false);
  parallel_for(static_cast<Index>(rows.blocks().size()), [&](Index b, int worker) {
    for (const auto& group : rows.blocks()[static_cast<std::size_t>(b)].groups)
      passes.run({&group, group.begin, group.end, 0, columns.padded(), false}, worker);
  });
  passes.finish(y);
}

}  // namespace mercer::operators::detail
