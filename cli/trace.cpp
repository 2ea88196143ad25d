#include "cli/trace.hpp"

#include <fmt/format.h>

#include <cmath>

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
                             const BlockCheck& check) {
  RowSource source(file, schema, {data::TargetUse::required, false});
  std::vector<data::PredictBlock> blocks;
  Index n = 0;
  for (data::PredictBlock block; source.next(block); n += block.rows()) {
    check(source, block);
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

std::string known(double value) {
  return std::isfinite(value) ? fmt::format("{:.10g}", value) : "";
}

std::string line(const models::TracePoint& point) {
  const auto begin = fmt::format("{},{:.6g},", point.step, point.seconds);
  if (const auto& s = point.scores.classes)
    return begin + fmt::format("{:.10g},{:.10g},{:.10g},{}\n", s->error_rate, s->nll, s->brier,
                               s->auc ? known(*s->auc) : "");
  const auto& s = *point.scores.numbers;
  return begin + fmt::format("{:.10g},{:.10g},{},{},{:.6g}\n", s.rmse, s.mae, known(s.nll),
                             known(s.crps), s.coverage90);
}

}  // namespace

// The whole file each time: it is short, and a run that is killed leaves all its steps.
void TraceFile::add(const std::string& line) {
  lines_ += line;
  AtomicFile file(path_);
  file.write(lines_);
  file.commit();
}

Trace::Trace(std::string path, const std::string& validation, const data::Schema& schema,
             const models::FitOptions& options)
    : file_(std::move(path), options.classes.count() > 0
                                 ? "step,seconds,error_rate,nll,brier,auc\n"
                                 : "step,seconds,rmse,mae,nll,crps,coverage90\n") {
  const auto likelihood = likelihoods::make(options.likelihood);
  const auto columns = prediction_schema(schema, likelihood->gaussian_noise().has_value());
  auto rows =
      read_rows(validation, columns, [&](const RowSource& source, const data::PredictBlock& block) {
        models::check_targets(options.classes, *likelihood, block.target,
                              [&](Index row) { return source.place(block, row); });
      });
  validation_.inputs = std::move(rows.inputs);
  validation_.target = std::move(rows.target);
  validation_.noise = std::move(rows.noise);
  validation_.on_step = [this](const models::TracePoint& point) {
    try {
      file_.add(line(point));
      failure_.clear();
    } catch (const IoError& error) {  // no reason to lose the run; the next step writes all again
      failure_ = error.what();
    }
  };
}

}  // namespace mercer::cli
