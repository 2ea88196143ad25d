// A method that is registered is in the help pages, in plans, in JSON records and runs, without
// another line: a dummy entry of each kind is added and looked for from outside.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/verbs.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/operators/registry.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/training/search.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::cli {
namespace registries_test {

std::string output_of(int (*verb)(const Words&), const Words& words) {
  ::testing::internal::CaptureStdout();
  const int code = verb(words);
  std::fflush(stdout);
  const auto text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0) << text;
  return text;
}

nlohmann::json json_of(int (*verb)(const Words&), Words words) {
  words.insert(words.end(), {"--json", "--quiet"});
  return nlohmann::json::parse(output_of(verb, words));
}

class Registries : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream out(data());
    out << "x,y\n";
    Rng rng(1, "registries");
    for (int i = 0; i < 60; ++i) {
      const double x = 6 * rng.uniform();
      out << x << ',' << std::sin(x) + 0.1 * rng.normal() << '\n';
    }
  }
  std::string data() const { return folder.file("d.csv"); }
  Words fit(Words more) const {
    Words words = {data(), "-m", folder.file("m.mcr")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static bool in_help(int (*verb)(const Words&), const std::string& name) {
    return output_of(verb, {"--help"}).find(name) != std::string::npos;
  }

  testing::TemporaryFolder folder;
};

TEST_F(Registries, ADummyTrainerIsAnOption) {
  EXPECT_FALSE(in_help(run_fit, "dummy-trainer"));
  EXPECT_THROW(run_fit(fit({"--train", "dummy-trainer", "--quiet"})), InvalidArgument);
  auto entry = training::trainers().find("adam");
  entry.name = "dummy-trainer";
  entry.run = [](training::Search&, const Vector& start) { return start; };
  const auto added = training::trainers().add(entry);
  EXPECT_TRUE(in_help(run_fit, "dummy-trainer"));
  const auto plan = json_of(run_plan, {data(), "--train", "dummy-trainer"});
  EXPECT_EQ(plan["train_method"], "dummy-trainer");
  EXPECT_NE(plan["methods"].dump().find("dummy-trainer"), std::string::npos) << plan.dump(1);
  const auto record = json_of(run_fit, fit({"--train", "dummy-trainer"}));
  EXPECT_EQ(record["train_method"], "dummy-trainer");
  EXPECT_EQ(record["options"]["train"], "dummy-trainer");
}

TEST_F(Registries, ADummyOperatorIsAnOption) {
  EXPECT_FALSE(in_help(run_solve, "dummy-operator"));
  auto entry = operators::default_operator();
  entry.name = "dummy-operator";
  const auto added = operators::operators().add(entry);
  for (auto* verb : {run_fit, run_solve, run_compare, run_plan})
    EXPECT_TRUE(in_help(verb, "dummy-operator"));
  const auto plan = json_of(run_plan, {data(), "--operator", "dummy-operator", "--solver", "cg"});
  EXPECT_NE(plan["methods"].dump().find("dummy-operator"), std::string::npos) << plan.dump(1);
  const auto record =
      json_of(run_solve, {data(), "--operator", "dummy-operator", "--solver", "cg"});
  EXPECT_EQ(record["operator"], "dummy-operator");
  EXPECT_EQ(record["stop"], "converged");
}

TEST_F(Registries, ADummyInferenceMethodIsListedAndTaken) {
  EXPECT_FALSE(in_help(run_fit, "dummy-inference"));
  auto entry = inference::methods().find("exact");
  entry.name = "dummy-inference";
  const auto added = inference::methods().add(entry);
  EXPECT_TRUE(in_help(run_fit, "dummy-inference"));
  EXPECT_EQ(json_of(run_plan, {data()})["inference"], "dummy-inference");
  EXPECT_EQ(json_of(run_fit, fit({"--train", "none"}))["plan"]["inference"], "dummy-inference");
}

TEST_F(Registries, DummySolversAndPreconditionersAreOptions) {
  auto solver = krylov::solvers().find("cg");
  solver.name = "dummy-solver";
  const auto added_solver = krylov::solvers().add(solver);
  auto preconditioner = preconditioners::preconditioners().find("jacobi");
  preconditioner.name = "dummy-preconditioner";
  const auto added = preconditioners::preconditioners().add(preconditioner);
  for (auto* verb : {run_fit, run_solve, run_plan}) {
    EXPECT_TRUE(in_help(verb, "dummy-solver"));
    EXPECT_TRUE(in_help(verb, "dummy-preconditioner"));
  }
  const auto record = json_of(
      run_solve, {data(), "--solver", "dummy-solver", "--preconditioner", "dummy-preconditioner"});
  EXPECT_EQ(record["solver"], "dummy-solver");
  EXPECT_EQ(record["preconditioner"], "dummy-preconditioner");
}

}  // namespace registries_test
}  // namespace mercer::cli
