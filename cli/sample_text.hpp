// What `mercer sample` found, in words, as JSON, and draw by draw.
#pragma once

#include <string>

#include "cli/fit_command.hpp"
#include "cli/record.hpp"
#include "mercer/models/sampling/sample.hpp"

namespace mercer::cli {

struct SampleCommand {
  FitCommand fit;  // data, task, model file; its options are settled as those of fit
  models::SamplingOptions options;  // its fit is the one above, once that is settled
  std::string output = "chains.csv", picture;
};

template <class Visitor>
void visit_fields(SampleCommand& o, Visitor&& field) {
  field({"output", "FILE",
         "CSV file for the kept draws: chain, iteration, and every parameter, as values on the "
         "scale of the model; - is standard output; .gz packs it",
         "", Affects::nothing},
        o.output, Any{});
  field({"picture", "FILE",
         "write trace, density, autocorrelation and running mean of every parameter (SVG)",
         "not written", Affects::nothing},
        o.picture, Any{});
  field({"draws", "n",
         "draws that the model mixes over, evenly thinned; predictions take as many times longer"},
        o.options.draws, Positive{});
}

/// A run and what it left behind.
struct SampleRun {
  models::SampleResult result;
  std::string model_path;  // empty: not written
  double seconds = 0;      // of the whole run
};

Json sample_json(const SampleCommand& command, const Arguments& arguments,
                 const data::Dataset& data, const SampleRun& run);
std::string sample_text(const SampleCommand& command, const data::Dataset& data,
                        const SampleRun& run);
void write_chains(const std::string& path, const models::SampleResult& result);
/// The kept draws as an SVG.
void draw_chains(const std::string& path, const models::SampleResult& result);
/// Warnings about draws that are not to be trusted yet.
void tell_draws(const models::SampleResult& result, const Console& console);

}  // namespace mercer::cli
