#include "cli/trace.hpp"

#include <fmt/format.h>

#include "cli/row_source.hpp"
#include "mercer/core/atomic_file.hpp"

namespace mercer::cli {
namespace {

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

}  // namespace

Trace::Trace(std::string path, const std::string& validation, const data::Schema& schema)
    : path_(std::move(path)), lines_("step,seconds,rmse,mae,nll,crps,coverage90\n") {
  RowSource source(validation, schema, {data::TargetUse::required, false});
  std::vector<data::PredictBlock> blocks;
  Index n = 0;
  for (data::PredictBlock block; source.next(block); n += block.rows()) blocks.push_back(block);
  if (n == 0) throw DataError(fmt::format("{}: there are no rows with a target", validation));
  validation_.inputs.resize(n, blocks.front().inputs.cols());
  validation_.target.resize(n);
  Index at = 0;
  for (const auto& b : blocks) {
    validation_.inputs.middleRows(at, b.rows()) = b.inputs;
    validation_.target.segment(at, b.rows()) = b.target;
    at += b.rows();
  }
  validation_.noise.variance = joined(blocks, &data::NoiseColumns::variance);
  validation_.noise.count = joined(blocks, &data::NoiseColumns::count);
  validation_.on_step = [this](const models::TracePoint& point) { add(point); };
}

// The whole file each time: it is short, and a run that is killed leaves all its steps.
void Trace::add(const models::TracePoint& point) {
  const auto& s = point.scores;
  lines_ += fmt::format("{},{:.6g},{:.10g},{:.10g},{:.10g},{:.10g},{:.6g}\n", point.step,
                        point.seconds, s.rmse, s.mae, s.nll, s.crps, s.coverage90);
  AtomicFile file(path_);
  file.write(lines_);
  file.commit();
}

}  // namespace mercer::cli
