// Laws of single leaves, over the whole type list: a leaf is tested by being in it, and a leaf that
// is half done fails here. What is compared with is the textbook formula in tests/testing, in long
// double; values, gradients and SIMD tiles of expressions are in kernel_test.cpp and in the tests
// of operators and approximations, over the same list.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "mercer/core/error.hpp"
#include "mercer/kernels/kernel.hpp"
#include "tests/testing/closed_forms.hpp"

namespace mercer::kernels {
namespace leaf_test {

using testing::closed_form;
using testing::Long;

std::string folder(const char* path) { return std::string(MERCER_SOURCE_DIR) + "/" + path; }

class LeafLaw : public ::testing::TestWithParam<std::string> {
 protected:
  const LeafInfo& info() const { return leaf_info(GetParam()); }

  /// Values of the own numbers to test at.
  std::vector<OwnNumbers> numbers() const {
    std::vector<OwnNumbers> out;
    for (const int degree : info().has_degree() ? std::vector<int>{1, 2, 5} : std::vector<int>{1})
      for (const double factor : {0.3, 1.0, 1.7}) {
        const double shape = info().shape.start * factor;
        if (info().has_shape() && (shape < info().shape.least || shape > info().shape.most))
          continue;
        out.push_back({shape, degree});
        if (!info().has_shape()) break;
      }
    return out;
  }

  /// r^2, or s of either sign.
  std::vector<double> arguments() const {
    std::vector<double> out = {1e-4, 0.01, 0.3, 0.99, 1.01, 2.5, 12.0};
    if (info().family == Family::dot) out.insert(out.end(), {-0.2, -3.0});
    return out;
  }

  Long formula(Long x, OwnNumbers own) const {
    return closed_form(info().name).value(x, own.shape, own.degree);
  }
};

TEST_P(LeafLaw, ProfileIsTheTextbookFormula) {
  for (const auto own : numbers())
    for (const double x : arguments()) {
      const auto expected = static_cast<double>(formula(x, own));
      EXPECT_NEAR(info().profile(x, own), expected, 1e-14 * std::abs(expected)) << x;
    }
  if (info().family != Family::distance) return;
  for (const auto own : numbers())
    EXPECT_EQ(info().profile(0.0, own), 1.0) << "a distance leaf is 1 at r = 0";
}

// The distance of `expected` from central differences of fourth order, at the best of three steps.
double difference_error(const std::function<Long(Long)>& f, Long step, double expected) {
  Long best = 1e300L;
  for (const Long h : {step, 0.1L * step, 0.01L * step}) {
    const Long slope = (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
    best = std::min(best, std::abs(slope - expected));
  }
  return static_cast<double>(best);
}

// Rounding of long double over the step, and the step to the fourth power: below 1e-11.
TEST_P(LeafLaw, SlopesAreThoseOfTheTextbookFormula) {
  if (info().family == Family::constant) return;
  for (const auto own : numbers())
    for (const double x : arguments()) {
      const double slope = info().slope(x, own);
      const auto along_x = [&](Long h) { return formula(x + h, own); };
      EXPECT_LE(difference_error(along_x, 1e-2L * std::abs(static_cast<Long>(x)), slope),
                1e-10 * (std::abs(slope) + 1))
          << x;
      if (info().shape_slope == nullptr) continue;
      const double in_shape = info().shape_slope(x, slope, own);
      const auto along_shape = [&](Long h) {
        const Long shape = static_cast<Long>(own.shape) * std::exp(h);
        return closed_form(info().name).value(x, shape, own.degree);
      };
      EXPECT_LE(difference_error(along_shape, 1e-2L, in_shape), 1e-10 * (std::abs(in_shape) + 1))
          << x;
    }
}

TEST_P(LeafLaw, SmoothAtZeroMeansAFiniteSlopeThere) {
  if (info().family != Family::distance) return;
  for (const auto own : numbers()) {
    const auto slope = [&](Long r2) { return std::abs((formula(r2, own) - formula(0, own)) / r2); };
    // A slope that goes like r2^-p grows by 10^(8 p) over eight decades.
    const Long growth = slope(1e-14L) / slope(1e-6L);
    EXPECT_EQ(info().smooth_at_zero, growth < 1.2L) << static_cast<double>(growth);
    EXPECT_TRUE(std::isfinite(info().slope(0.0, own)));
  }
}

TEST_P(LeafLaw, ExponentBoundsTheDecay) {
  if (info().family != Family::distance) return;
  for (const auto own : numbers())
    for (double r2 = 1; r2 < 1e7; r2 *= 1.1) {
      const double exponent = info().exponent(r2, own);
      if (info().inputs == InputMap::circle) {
        EXPECT_EQ(exponent, 0);
      }
      if (exponent > 100) {
        EXPECT_LE(formula(r2, own), std::exp(-static_cast<Long>(exponent)) * (1 + 1e-9L));
      }
    }
}

TEST_P(LeafLaw, SeparableMeansAProductOverTheInputs) {
  if (info().family == Family::constant) return;
  const auto kernel = Kernel::parse(info().name, 2);
  const auto at = [&](double x, double y) {
    const double a[] = {0.4, 0.9}, b[] = {0.4 + x, 0.9 + y};
    return kernel.evaluate(a, 1, b, 1);
  };
  const double product = at(0.37, 0) * at(0, 0.73) / at(0, 0);
  EXPECT_EQ(info().separable, std::abs(product - at(0.37, 0.73)) < 1e-12);
}

// k(u) is the mean of cos(w u) over the frequencies. The mean of 40,000 draws lies within five of
// its standard errors, which are below 1/sqrt(2 * 40000).
TEST_P(LeafLaw, FrequenciesHaveTheKernelAsTheirMean) {
  if (info().family != Family::distance || !info().no_features.empty()) return;
  const Index draws = 40000;
  for (const auto own : numbers()) {
    auto kernel = Kernel::parse(info().name, 1);
    kernel.set_all_lengthscales(0.8);
    Leaf leaf = kernel.root().children[0].leaf;
    leaf.shape = own.shape;
    Matrix w = Matrix::Zero(1, draws);
    Rng rng(1, "frequencies");
    info().add_frequencies(std::vector<double>{0.8}, own, rng, w);
    for (const double u : {0.2, 0.6, 1.5}) {
      const Long r2 = testing::squared_distance(leaf, u, 0, 0.8);
      EXPECT_NEAR((w.array() * u).cos().mean(), static_cast<double>(formula(r2, own)),
                  5 / std::sqrt(2.0 * static_cast<double>(draws)))
          << u;
    }
  }
}

TEST_P(LeafLaw, PowerFormIsTheProfile) {
  if (info().power == nullptr) return;
  for (const auto own : numbers())
    for (const double s : arguments()) {
      const auto form = info().power(own);
      EXPECT_NEAR(info().profile(s, own), std::pow(s + form.offset, form.degree),
                  1e-13 * std::pow(std::abs(s) + form.offset, form.degree));
    }
}

TEST_P(LeafLaw, NameAndAliasesAreReadAndTheNameIsPrinted) {
  for (const auto name : {info().name, info().words.aliases[0], info().words.aliases[1]}) {
    if (name.empty()) continue;
    const auto kernel = Kernel::parse(name, 2);
    EXPECT_EQ(kernel.text().substr(0, info().name.size()), info().name);
    EXPECT_EQ(Kernel::parse(kernel.text(), 2).text(), kernel.text());
    EXPECT_EQ(leaf_info(name).kind, info().kind);
  }
}

TEST_P(LeafLaw, OwnNumbersAreReadAndKeptInsideTheirLimits) {
  const auto text = [&](const std::string& key, double value) {
    return fmt::format("{}:{}={}", info().name, key, value);
  };
  if (info().has_shape()) {
    const std::string key(info().shape.name);
    const auto kernel = Kernel::parse(text(key, info().shape.start), 1);
    EXPECT_TRUE(kernel.parameter_names().back() == key) << kernel.parameter_names().back();
    EXPECT_NEAR(std::exp(kernel.log_parameters()(kernel.num_parameters() - 1)), info().shape.start,
                1e-15 * info().shape.start);
    if (info().shape.least > 0) {
      EXPECT_THROW(Kernel::parse(text(key, info().shape.least / 2), 1), InvalidArgument);
    }
    if (std::isfinite(info().shape.most)) {
      EXPECT_THROW(Kernel::parse(text(key, info().shape.most * 2), 1), InvalidArgument);
    }
  }
  if (info().has_degree()) {
    EXPECT_NO_THROW(Kernel::parse(text("degree", info().degree.most), 1));
    EXPECT_THROW(Kernel::parse(text("degree", info().degree.most + 1), 1), InvalidArgument);
  }
}

// The line of the table in docs/kernels.md, made from what the leaf says of itself.
TEST_P(LeafLaw, IsInTheTableOfTheDocumentation) {
  std::string own;
  if (info().has_shape())
    own = fmt::format("`{}`, default {}", info().shape.name, info().shape.start);
  if (info().has_degree()) own += fmt::format("; degree, default {}", info().degree.start);
  std::string aliases;
  for (const auto alias : info().words.aliases)
    if (!alias.empty()) aliases += fmt::format("{}`{}`", aliases.empty() ? "" : ", ", alias);
  const auto line = fmt::format("| `{}` | {} | {} | {} | {} |\n", info().name, aliases,
                                info().words.formula, own, info().words.remark);
  std::ifstream in(folder("docs/kernels.md"));
  std::stringstream page;
  page << in.rdbuf();
  EXPECT_NE(page.str().find(line), std::string::npos) << "docs/kernels.md lacks the line\n" << line;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& info : kernels_registry()) names.emplace_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, LeafLaw, ::testing::ValuesIn(all_names()),
                         [](const auto& leaf) { return leaf.param; });

TEST(Leaves, AreOneFileEach) {
  std::set<std::string> files, expected;
  for (const auto& entry : std::filesystem::directory_iterator(folder("mercer/kernels/leaves")))
    files.insert(entry.path().filename().string());
  for (const auto& info : kernels_registry()) expected.insert(std::string(info.name) + "-inl.hpp");
  EXPECT_EQ(files, expected);
}

TEST(Leaves, HaveNamesAndAliasesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const auto& info : kernels_registry())
    for (const auto name : {info.name, info.words.aliases[0], info.words.aliases[1]}) {
      if (name.empty()) continue;
      EXPECT_TRUE(names.insert(name).second) << name;
    }
}

TEST(Leaves, ClosedFormsAreOfRegisteredLeaves) {
  for (const auto& form : testing::kClosedForms) EXPECT_NO_THROW(leaf_info(form.name));
}

}  // namespace leaf_test
}  // namespace mercer::kernels
