// Fits over rows that stay in their file, against the same fits with all rows in memory.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::models {
namespace stream_fit_test {

std::vector<std::string> streaming() {
  std::vector<std::string> names;
  for (const auto& entry : inference::methods())
    if (entry.abilities.streams) names.emplace_back(entry.name);
  return names;
}

// Two inputs far from standardised, a category, counts, known noise and some missing targets.
std::string write_rows(const testing::TemporaryFolder& folder, Index n, bool noise = false) {
  std::vector<std::string> header = {"a", "b", "kind"};
  if (noise) header.insert(header.end(), {"count", "variance"});
  header.emplace_back("y");
  const auto path = folder.file("rows.csv");
  data::CsvWriter writer(path, header);
  Rng rng(5, "streamed fits");
  for (Index i = 0; i < n; ++i) {
    const double a = 1000 + 3 * rng.normal(), b = 0.01 * rng.normal();
    const Index kind = rng.index(3);
    writer.number(a).number(b).text(kind == 0 ? "red" : kind == 1 ? "green" : "blue");
    if (noise) writer.integer(1 + rng.index(4)).number(0.01 + 0.05 * rng.uniform());
    const double y =
        5 + 3 * std::sin(a - 1000) + 100 * b + static_cast<double>(kind) + 0.3 * rng.normal();
    if (i % 40 == 7)
      writer.missing();
    else
      writer.number(y);
    writer.end_row();
  }
  writer.close();
  return path;
}

data::DataOptions data_options(bool noise = false) {
  data::DataOptions options;
  options.categorical = {"kind"};
  if (noise) {
    options.noise_column = "variance";
    options.count_column = "count";
  }
  return options;
}

FitOptions options_of(const std::string& method, const std::string& mean = "zero") {
  FitOptions options;
  options.approximation.method = method;
  options.method.preconditioning.rank = 14;
  options.method.mean = mean;
  options.train.restarts = 0;
  return options;
}

FitOptions fixed(FitOptions options) {
  options.train.train = "none";
  options.method.lengthscale = {1.2};
  options.method.signal_variance = 1.1;
  options.method.noise = 0.05;
  return options;
}

// Blocks so small that there are many.
data::StreamedData survey(const std::string& path, const data::DataOptions& options,
                          Index reservoir, Index block_rows = 37) {
  auto out = data::survey(path, options, {.reservoir = reservoir, .seed = 2});
  dynamic_cast<data::CsvRows&>(*out.source).set_block_rows(block_rows);
  return out;
}

void expect_same_model(const FitResult& a, const FitResult& b, const Matrix& x, double tolerance) {
  EXPECT_NEAR(a.likelihood.value, b.likelihood.value, tolerance * std::abs(a.likelihood.value));
  const auto p = Predictor(a.model, {}).predict(x), q = Predictor(b.model, {}).predict(x);
  EXPECT_LT((p.mean - q.mean).cwiseAbs().maxCoeff(), tolerance * p.mean.cwiseAbs().maxCoeff());
  EXPECT_LT((p.latent_sd - q.latent_sd).cwiseAbs().maxCoeff(), tolerance * p.latent_sd.maxCoeff());
}

class StreamFit : public ::testing::TestWithParam<std::string> {};

TEST(StreamFitOfAFile, IsRefusedWhenTheFileHasChanged) {
  const testing::TemporaryFolder folder;
  const auto path = write_rows(folder, 200);
  const auto stream = survey(path, data_options(), 50);
  const auto options = fixed(options_of(streaming().front()));
  EXPECT_NO_THROW(fit(stream, options));
  // As many rows, with the same sizes of cells: only the time tells.
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(2));
  EXPECT_THROW(fit(stream, options), DataError);
}

// One pass sums what memory sums, in other pieces: rounding only. The base points are given, so
// that the sample may be small.
TEST_P(StreamFit, OnePassIsTheFitInMemory) {
  const testing::TemporaryFolder folder;
  for (const bool noise : {false, true}) {
    const auto path = write_rows(folder, 400, noise);
    const auto all = data::read_dataset(path, data_options(noise));
    for (const char* mean : {"zero", "constant", "linear"}) {
      auto options = fixed(options_of(GetParam(), mean));
      options.method.preconditioning.rank.reset();
      options.approximation.points = all.inputs.topRows(14);
      const auto stream = survey(path, data_options(noise), 60);
      EXPECT_EQ(stream.rows, all.size());
      EXPECT_EQ(stream.sample.size(), 60);
      const auto memory = fit(all, options), passes = fit(stream, options);
      expect_same_model(memory, passes, all.inputs.topRows(20), 1e-10);
      EXPECT_EQ(passes.passes, 2);  // the survey and the sums
      EXPECT_EQ(passes.likelihood.rows, all.size());
      EXPECT_EQ(passes.model.num_rows(), all.size());
      EXPECT_TRUE(passes.plan.streamed);
      EXPECT_EQ(passes.plan.n, all.size());
    }
  }
}

// A sample that holds all rows learns as memory does; its scaling differs in the last digit, and
// both climbs end where less than 0.05 log units are left to gain.
TEST_P(StreamFit, ASampleOfAllRowsLearnsTheSame) {
  const testing::TemporaryFolder folder;
  const auto path = write_rows(folder, 300);
  const auto all = data::read_dataset(path, data_options());
  const auto options = options_of(GetParam());
  const auto memory = fit(all, options);
  const auto passes = fit(survey(path, data_options(), 5000), options);
  EXPECT_EQ(passes.plan.reservoir, all.size());
  EXPECT_EQ(passes.passes, 2);  // the last evaluation has the sums of the posterior
  EXPECT_NEAR(passes.likelihood.value, memory.likelihood.value, 0.05);
}

// Full gradients improve on what a small sample has learned, and never spoil it.
TEST_P(StreamFit, AllRowsImproveOnASmallSample) {
  const testing::TemporaryFolder folder;
  const auto path = write_rows(folder, 1500);
  const auto stream = survey(path, data_options(), 120);
  const auto learned = fit(stream, options_of(GetParam()));
  ASSERT_FALSE(learned.training.full_steps.empty());
  const auto& steps = learned.training.full_steps;
  EXPECT_LE(learned.training.full_gradients, 3);
  EXPECT_LE(learned.passes, 8);
  EXPECT_EQ(learned.passes,
            1 + learned.training.full_evaluations + learned.training.full_gradients);
  EXPECT_GT(steps.front().predicted_gain, 0.5);
  EXPECT_GT(learned.likelihood.value, steps.front().log_likelihood + 0.5);
  for (std::size_t i = 1; i < steps.size(); ++i)
    EXPECT_GT(steps[i].log_likelihood, steps[i - 1].log_likelihood);
  // A gradient that is asked for takes a pass more, unless learning has left it behind.
  auto with_gradient = options_of(GetParam());
  with_gradient.gradient = true;
  const auto asked = fit(stream, with_gradient);
  EXPECT_EQ(asked.likelihood.value, learned.likelihood.value);
  EXPECT_EQ(asked.likelihood.gradient.size(), asked.model.problem.log_parameters().size());
  EXPECT_EQ(asked.passes, learned.passes + (learned.likelihood.gradient.size() > 0 ? 0 : 1));
  // The evidence that is reported is that of the model, in memory as well.
  const auto all = data::read_dataset(path, data_options());
  auto given = options_of(GetParam());
  given.method.preconditioning.rank.reset();
  given.approximation.points = learned.model.sparse->base;
  learned.model.scaling.unscale_inputs(given.approximation.points);
  const auto again = refit(learned.model, all, given);
  EXPECT_NEAR(again.likelihood.value, learned.likelihood.value,
              1e-8 * std::abs(learned.likelihood.value));
}

INSTANTIATE_TEST_SUITE_P(Methods, StreamFit, ::testing::ValuesIn(streaming()));

TEST(StreamFits, HaveTheSameBitsOnAnyNumberOfThreads) {
  const testing::TemporaryFolder folder;
  const auto path = write_rows(folder, 600);
  const int before = num_threads();
  std::vector<double> values;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const auto fitted = fit(survey(path, data_options(), 100), options_of("vfe"));
    values.push_back(fitted.likelihood.value);
    values.push_back(fitted.model.functions.front().weights.w.sum());
  }
  set_num_threads(before);
  EXPECT_EQ(values[0], values[2]);
  EXPECT_EQ(values[0], values[4]);
  EXPECT_EQ(values[1], values[3]);
  EXPECT_EQ(values[1], values[5]);
}

// Stopped in every pass in turn, the same call goes on from the checkpoint to the same bits.
TEST(StreamFits, ResumeToTheSameBits) {
  const testing::TemporaryFolder folder;
  const auto path = write_rows(folder, 900);
  auto options = options_of("vfe");
  const auto whole = fit(survey(path, data_options(), 90), options);
  ASSERT_GE(whole.passes, 4);
  options.train.checkpoint = folder.file("run.mck");
  int interrupted = 0;
  for (int pass = 1; pass < whole.passes; ++pass) {
    const auto name = fmt::format("pass {} ", pass);
    const auto data = survey(path, data_options(), 90);
    const auto stopping = [&](const Progress& now) {
      return now.stage.starts_with(name) && now.fraction > 0.5 ? Action::stop : Action::proceed;
    };
    try {
      const auto early = fit(data, options, stopping);
      interrupted += early.interrupted() ? 1 : 0;
      EXPECT_TRUE(std::isfinite(early.likelihood.value));
    } catch (const Interrupted&) {
      ++interrupted;
    }
  }
  EXPECT_GT(interrupted, 0);
  const auto resumed = fit(survey(path, data_options(), 90), options);
  EXPECT_GT(resumed.training.resumed_full_values, 0);
  EXPECT_EQ(resumed.likelihood.value, whole.likelihood.value);
  EXPECT_EQ(resumed.model.problem.log_parameters(), whole.model.problem.log_parameters());
  EXPECT_EQ(resumed.model.functions.front().weights.w, whole.model.functions.front().weights.w);
}

TEST(StreamFits, RefuseWhatTheyCannotDo) {
  const testing::TemporaryFolder folder;
  const auto path = write_rows(folder, 60);
  const auto data = survey(path, data_options(), 50);
  const auto refused = [&](const FitOptions& options, const char* saying) {
    try {
      fit(data, options);
      ADD_FAILURE() << saying;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(saying), std::string::npos) << error.what();
    }
  };
  auto options = options_of("vfe");
  options.approximation.check_rows = 5;
  refused(options, "in memory");
  options = options_of("fitc");
  options.likelihood = "student-t";
  refused(options, "Gaussian noise");
  options = options_of("vfe");
  options.method.preconditioning.rank = 51;
  refused(options, "more than the 50");
}

TEST(StreamFits, NoticeAFileThatHasChanged) {
  const testing::TemporaryFolder folder;
  const auto path = write_rows(folder, 200);
  const auto data = survey(path, data_options(), 50);
  write_rows(folder, 150);
  EXPECT_THROW(fit(data, fixed(options_of("dtc"))), DataError);
}

}  // namespace stream_fit_test
}  // namespace mercer::models
