#include "cli/trace.hpp"

#include <fmt/format.h>

#include "cli/latent_text.hpp"
#include "cli/row_source.hpp"
#include "mercer/core/atomic_file.hpp"

namespace mercer::cli {
namespace {

using BlockCheck = std::function<void(const RowSource&, const data::PredictBlock&)>;

Vector joined(const std::vector<data::PredictBlock>& blocks,
              const Vector data::NoiseColumns::*column) {
  Index n = 0;
  for (const auto& b : blocks) n += (b.noise.*column).size();
  Vector out(n);
  Index at = 0;
  for (const auto& b : blocks) {
    out.segment(at, (b.noise.*column).size()) = b.noise.*column;
    at += (b.noise.*column).size();
  }
  return out;
}

// All rows of a file in one block, each block of it checked on the way.
data::PredictBlock read_rows(const std::string& file, const data::Schema& schema,
                             const BlockCheck& check = {}) {
  RowSource source(file, schema, {data::TargetUse::required, false});
  std::vector<data::PredictBlock> blocks;
  Index n = 0;
  for (data::PredictBlock block; source.next(block); n += block.rows()) {
    if (check) check(source, block);
    blocks.push_back(block);
  }
  if (n == 0) throw DataError(fmt::format("{}: there are no rows with a target", file));
  data::PredictBlock out;
  out.inputs.resize(n, schema.dimension());
  out.target.resize(n);
  Index at = 0;
  for (const auto& b : blocks) {
    out.inputs.middleRows(at, b.rows()) = b.inputs;
    out.target.segment(at, b.rows()) = b.target;
    at += b.rows();
  }
  out.noise.variance = joined(blocks, &data::NoiseColumns::variance);
  out.noise.count = joined(blocks, &data::NoiseColumns::count);
  return out;
}

}  // namespace

// The whole file each time: it is short, and a run that is killed leaves all its steps.
void TraceFile::add(const std::string& line) {
  lines_ += line;
  AtomicFile file(path_);
  file.write(lines_);
  file.commit();
}

Trace::Trace(std::string path, const std::string& validation, const data::Schema& schema)
    : file_(std::move(path), "step,seconds,rmse,mae,nll,crps,coverage90\n") {
  auto rows = read_rows(validation, schema);
  validation_.inputs = std::move(rows.inputs);
  validation_.target = std::move(rows.target);
  validation_.noise = std::move(rows.noise);
  validation_.on_step = [this](const models::TracePoint& point) {
    const auto& s = point.scores;
    file_.add(fmt::format("{},{:.6g},{:.10g},{:.10g},{:.10g},{:.10g},{:.6g}\n", point.step,
                          point.seconds, s.rmse, s.mae, s.nll, s.crps, s.coverage90));
  };
}

LatentTrace::LatentTrace(std::string path, const std::string& validation,
                         const data::Schema& schema, const models::Classes& classes)
    : file_(std::move(path), "step,seconds,error_rate,nll,brier,auc\n") {
  auto rows =
      read_rows(validation, schema, [&](const RowSource& source, const data::PredictBlock& block) {
        class_places(classes, block.target, [&](Index row) { return source.place(block, row); });
      });
  validation_.inputs = std::move(rows.inputs);
  validation_.target = std::move(rows.target);
  validation_.on_step = [this](const models::LatentTracePoint& point) {
    const auto& s = point.scores;
    file_.add(fmt::format("{},{:.6g},{:.10g},{:.10g},{:.10g},{}\n", point.step, point.seconds,
                          s.error_rate, s.nll, s.brier,
                          s.auc ? fmt::format("{:.10g}", *s.auc) : ""));
  };
}

}  // namespace mercer::cli
