#include "cli/trace.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/row_source.hpp"
#include "cli/shared_options.hpp"
#include "mercer/core/atomic_file.hpp"

namespace mercer::cli {
namespace {

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
             const models::FitOptions& options, const std::optional<std::string>& delimiter)
    : file_(std::move(path), options.classes.count() > 0
                                 ? "step,seconds,error_rate,nll,brier,auc\n"
                                 : "step,seconds,rmse,mae,nll,crps,coverage90\n") {
  const auto likelihood = likelihoods::make(options.likelihood);
  const auto columns = prediction_schema(schema, likelihood->gaussian_noise().has_value());
  data::DataOptions reading;
  reading.delimiter = delimiter;
  PredictionRows source(validation, columns,
                        row_options(data::TargetUse::required, reading, options.method.memory));
  auto rows = source.all();
  if (rows.rows() == 0)
    throw DataError(fmt::format("{}: there are no rows with a target", validation));
  models::check_targets(options.classes, *likelihood, rows.target,
                        [&](Index row) { return source.place(rows, row); });
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
