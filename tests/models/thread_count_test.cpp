// The same bits on any number of threads, also where memory is so tight that the plan has to cut
// something.
#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/models/fit.hpp"

namespace mercer::models {
namespace thread_count_test {

data::Dataset numbers(Index n) {
  Matrix x(n, 2);
  Rng(4, "threads").fill_normal(x);
  Vector y(n), noise(n);
  Rng(5, "threads").fill_normal(noise);
  for (Index i = 0; i < n; ++i) y(i) = std::sin(2 * x(i, 0)) + x(i, 1) + 0.1 * noise(i);
  return data::make_dataset(x, y);
}

// The weights of a fit inside so many bytes beside program and data; none when it does not fit.
Matrix weights(const data::Dataset& data, double bytes, int threads) {
  set_num_threads(threads);
  FitOptions options;
  options.method.kernel = "rbf:iso";
  options.method.solver = "cg";
  options.train.train = "none";
  options.evidence = false;
  options.method.memory =
      static_cast<std::uint64_t>(planning::base_bytes(data.size(), data.dimension()) + bytes);
  try {
    return fit(data, options).model.function(0).weights.w;
  } catch (const DoesNotFit&) {
    return {};
  }
}

TEST(ThreadCount, ChangesNoBitUnderATightMemory) {
  const int before = num_threads();
  const auto data = numbers(300);
  int fitted = 0, refused = 0;
  // From less than any way needs to more than the largest preconditioner takes.
  for (double megabytes = 1; megabytes < 24; megabytes *= 1.5) {
    const Matrix one = weights(data, megabytes * 1048576, 1);
    const Matrix two = weights(data, megabytes * 1048576, 2);
    EXPECT_EQ(one, two) << megabytes;
    (one.size() > 0 ? fitted : refused) += 1;
  }
  EXPECT_GT(fitted, 3);
  EXPECT_GT(refused, 1);
  set_num_threads(before);
}

}  // namespace thread_count_test
}  // namespace mercer::models
