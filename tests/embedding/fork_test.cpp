// A program with a team of threads forks, and its child fits and predicts: it must not wait for
// threads that only the parent has. Source of the danger: fork copies the calling thread alone.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "mercer/core/threads.hpp"
#include "tests/embedding/answers.hpp"
#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define MERCER_TEST_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MERCER_TEST_UNDER_TSAN
#endif
#endif

namespace mercer::testing {
namespace {

// Learns three hyperparameters and predicts, by a factor and by solves.
std::vector<double> fit_and_predict() {
  const Matrix x = unit_square(200, 2);
  std::vector<double> all;
  for (const char* solver : {"cholesky", "cg"}) {
    models::FitOptions options;
    options.method.kernel = "rbf:iso";
    options.method.solver = solver;
    options.train.restarts = 0;
    options.train.steps = 3;
    const auto result = models::fit(data::make_dataset(x, target_at(x, 0)), options);
    const models::Predictor predictor(result.model, {});
    const auto numbers = numbers_of(predictor.predict(unit_square(30, 3)));
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

/// What `work` returns in a child process; empty when the child died or did not end in time.
template <class Work>
std::vector<double> in_child(const Work& work) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);  // a child that hangs is killed
    const auto numbers = work();
    const auto bytes = numbers.size() * sizeof(double);
    const bool written = write(ends[1], numbers.data(), bytes) == static_cast<ssize_t>(bytes);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> numbers;
  double value = 0;
  while (read(ends[0], &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value)))
    numbers.push_back(value);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return numbers;
}

class Fork : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef MERCER_TEST_UNDER_TSAN
    GTEST_SKIP() << "the thread sanitizer allows no threads after fork";
#endif
    set_num_threads(2);
  }
  void TearDown() override { set_num_threads(before_); }
  int before_ = num_threads();
};

TEST_F(Fork, AChildOfAParentWithATeamHasTheSameBits) {
  const auto expected = fit_and_predict();
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(in_child(fit_and_predict), expected);
  EXPECT_EQ(fit_and_predict(), expected);  // the parent still has its own team
}

TEST_F(Fork, AGrandchildToo) {
  const auto expected = fit_and_predict();
  const auto child = [&] {
    fit_and_predict();
    return in_child(fit_and_predict);
  };
  EXPECT_EQ(in_child(child), expected);
}

TEST_F(Fork, TheChildRunsLoopsOnSeveralThreads) {
  const auto workers = [] {
    std::vector<double> seen(2, 0);
    // Each of two tasks waits until the other has begun: one thread alone would not end.
    std::atomic<int> begun{0};
    parallel_for(2, [&](Index task, int worker) {
      ++begun;
      while (begun.load() < 2) {
      }
      seen[static_cast<std::size_t>(task)] = worker;
    });
    return seen;
  };
  workers();
  const auto seen = in_child(workers);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_NE(seen[0], seen[1]);
}

#ifdef _OPENMP
// libgomp hangs in a child that starts a team when its parent had one; OpenBLAS would.
TEST_F(Fork, AParentWithAnOpenMpTeamToo) {
  int threads = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
  threads = omp_get_num_threads();
  ASSERT_EQ(threads, 2);
  const auto expected = fit_and_predict();
  EXPECT_EQ(in_child(fit_and_predict), expected);
}

TEST(OpenMp, HasItsNumberOfThreadsBackAfterACall) {
  omp_set_num_threads(3);
  fit_and_predict();
  EXPECT_EQ(omp_get_max_threads(), 3);
}
#endif

}  // namespace
}  // namespace mercer::testing
