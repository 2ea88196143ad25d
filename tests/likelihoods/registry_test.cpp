// Laws of every likelihood: a new one is tested by being registered. Those of a density of one y
// and one f run over the likelihoods that have one; coupled_test.cpp has the same laws for rows.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "mercer/core/error.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"
#include "tests/likelihoods/brute_force.hpp"

namespace mercer::likelihoods {
namespace registry_test {

using testing::brute_average;
using testing::brute_log_predictive;

constexpr double kLatent[] = {-1e4, -1e3, -100, -37, -12, -5, -3.001, -2.999, -1,   -0.3,
                              0,    0.2,  1,    2.5, 6,   15, 40,     120,    1000, 1e4};
constexpr double kMeans[] = {-10, -2, 0.3, 4, 7};
constexpr double kVariances[] = {1e-4, 0.04, 1, 9, 25};

/// What holds for every one, whether it couples functions or not.
class AnyLikelihood : public ::testing::TestWithParam<LikelihoodInfo> {
 protected:
  std::unique_ptr<Likelihood> make_one() const { return GetParam().make({}); }

  /// As it starts, and with every parameter at other values.
  std::vector<std::unique_ptr<Likelihood>> variants() const {
    std::vector<std::unique_ptr<Likelihood>> all;
    all.push_back(make_one());
    const Vector start = all.front()->log_parameters();
    for (const double shift : {-2.0, 1.7}) {
      if (start.size() == 0) break;
      all.push_back(all.front()->clone());
      all.back()->set_log_parameters(start.array() + shift);
    }
    return all;
  }
};

class Likelihoods : public AnyLikelihood {
 protected:
  static std::vector<double> observations(const Likelihood& likelihood) {
    std::vector<double> y;
    for (const double candidate : {-40.0, -2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 40.0, 1000.0})
      if (likelihood.fault(candidate).empty()) y.push_back(candidate);
    return y;
  }

  static bool is_discrete(const Likelihood& likelihood) { return !likelihood.fault(0.5).empty(); }

  /// Sum over counts, or integral over the line, of g(y); g falls at least like y^-3.
  template <class G>
  static double total(const Likelihood& likelihood, double centre, const G& g) {
    double sum = 0;
    if (is_discrete(likelihood)) {
      for (double y = 0; y < 4000 && likelihood.fault(y).empty(); ++y) sum += g(y);
      return sum;
    }
    const double step = 0.005;  // y - centre = sinh(t) / 10
    for (double t = -25; t <= 25; t += step)
      sum += g(centre + 0.1 * std::sinh(t)) * 0.1 * std::cosh(t) * step;
    return sum;
  }
};

/// The derivative of g at x by four values, and what rounding may do to it when g is made of terms
/// of size `terms`.
struct Difference {
  template <class G>
  Difference(const G& g, double x, double h, double terms = 0) {
    const double a = g(x - 2 * h), b = g(x - h), c = g(x + h), d = g(x + 2 * h);
    value = (8 * (c - b) - (d - a)) / (12 * h);
    // x +- h is itself rounded.
    const double position = 1e-16 * std::abs(x) / h;
    error = 4e-15 * (std::abs(b) + std::abs(c) + terms) / h + 4 * position * std::abs(value);
  }
  double value = 0, error = 0;
};

void expect_slope(const Difference& difference, double slope) {
  if (!std::isfinite(difference.value) || !std::isfinite(slope)) return;  // beyond exp's range
  EXPECT_NEAR(difference.value, slope, 1e-8 * std::abs(slope) + difference.error + 1e-300);
}

double latent_step(double f) { return 1e-4 * std::max(1.0, std::abs(f) / 1000); }

TEST_P(Likelihoods, DerivativesMatchDifferences) {
  for (const auto& likelihood : variants())
    for (const double y : observations(*likelihood))
      for (const double f : kLatent) {
        SCOPED_TRACE(::testing::Message() << likelihood->text() << " y=" << y << " f=" << f);
        const auto at = [&](double x) { return likelihood->log_density(y, x); };
        const auto d = at(f);
        const double h = latent_step(f);
        expect_slope({[&](double x) { return at(x).value; }, f, h}, d.first);
        expect_slope({[&](double x) { return at(x).first; }, f, h}, d.second);
        expect_slope({[&](double x) { return at(x).second; }, f, h}, d.third);
      }
}

TEST_P(Likelihoods, NothingIsNotANumber) {
  for (const auto& likelihood : variants())
    for (const double y : observations(*likelihood))
      for (const double f : kLatent) {
        SCOPED_TRACE(::testing::Message() << likelihood->text() << " y=" << y << " f=" << f);
        const auto d = likelihood->log_density(y, f);
        const bool overflows = std::exp(std::abs(f)) == INFINITY;
        for (const double x : {d.value, d.first, d.second, d.third}) {
          EXPECT_FALSE(std::isnan(x));
          EXPECT_TRUE(overflows || std::isfinite(x));
        }
        for (const double v : {0.0, 1e-8, 1.0, 100.0}) {
          EXPECT_FALSE(std::isnan(likelihood->log_predictive(y, f, v))) << v;
          const double p = likelihood->predictive_cdf(y, f, v);
          EXPECT_TRUE(p >= 0 && p <= 1 + 1e-12) << v << " " << p;
          const auto both = likelihood->predictive(f, v);
          EXPECT_FALSE(std::isnan(both.mean)) << v;
          EXPECT_FALSE(std::isnan(both.variance)) << v;
        }
      }
}

TEST_P(Likelihoods, CurvatureIsNotNegativeAndHasItsSlope) {
  for (const auto& likelihood : variants())
    for (const double y : observations(*likelihood))
      for (const double f : kLatent) {
        SCOPED_TRACE(::testing::Message() << likelihood->text() << " y=" << y << " f=" << f);
        const auto w = likelihood->curvature(y, f);
        EXPECT_GE(w.value, 0);
        expect_slope(
            {[&](double x) { return likelihood->curvature(y, x).value; }, f, latent_step(f)},
            w.slope);
        if (likelihood->log_concave()) {
          EXPECT_EQ(w.value, -likelihood->log_density(y, f).second);
        }
      }
}

TEST_P(Likelihoods, ParameterSlopesMatchDifferences) {
  for (const auto& likelihood : variants()) {
    const Vector theta = likelihood->log_parameters();
    std::vector<ParameterSlope> slopes(static_cast<std::size_t>(theta.size()));
    for (const double y : observations(*likelihood))
      for (const double f : kLatent) {
        likelihood->parameter_slopes(y, f, slopes);
        for (Index j = 0; j < theta.size(); ++j) {
          SCOPED_TRACE(::testing::Message() << likelihood->text() << " y=" << y << " f=" << f);
          const auto moved = [&](double x) {
            auto other = likelihood->clone();
            Vector there = theta;
            there(j) = x;
            other->set_log_parameters(there);
            return other;
          };
          const auto& slope = slopes[static_cast<std::size_t>(j)];
          const double x = theta(j), h = 1e-3, terms = 1 + std::abs(y);
          expect_slope({[&](double to) { return moved(to)->log_density(y, f).value; }, x, h, terms},
                       slope.value);
          expect_slope({[&](double to) { return moved(to)->log_density(y, f).first; }, x, h, terms},
                       slope.first);
          expect_slope({[&](double to) { return moved(to)->curvature(y, f).value; }, x, h, terms},
                       slope.curvature);
        }
      }
  }
}

TEST_P(Likelihoods, DensityHasItsMoments) {
  for (const auto& likelihood : variants())
    for (const double f : {-6.0, -1.0, 0.4, 2.0}) {
      SCOPED_TRACE(::testing::Message() << likelihood->text() << " f=" << f);
      const auto density = [&](double y) { return std::exp(likelihood->log_density(y, f).value); };
      const auto [mean, variance] = likelihood->predictive(f, 0);
      const auto sum = [&](const auto& g) { return total(*likelihood, f, g); };
      EXPECT_NEAR(sum(density), 1, 1e-10);
      // The variance of a heavy tail converges slowly: its part beyond the range is the last digit.
      EXPECT_NEAR(sum([&](double y) { return y * density(y); }), mean, 1e-8);
      EXPECT_NEAR(sum([&, m = mean](double y) { return (y - m) * (y - m) * density(y); }), variance,
                  1e-6 * variance);
    }
}

TEST_P(Likelihoods, CdfIsThatOfTheDensity) {
  for (const auto& likelihood : variants())
    for (const double f : {-3.0, 0.4, 3.0})
      for (const double y : {-0.5, 0.0, 0.3, 1.0, 6.0, 25.0}) {
        SCOPED_TRACE(::testing::Message() << likelihood->text() << " f=" << f << " y=" << y);
        const auto density = [&](double x) {
          return std::exp(likelihood->log_density(x, f).value);
        };
        const auto cdf = [&](double x) { return likelihood->predictive_cdf(x, f, 0); };
        if (is_discrete(*likelihood)) {
          const auto below = [&](double x) { return x <= y ? density(x) : 0.0; };
          EXPECT_NEAR(cdf(y), total(*likelihood, y, below), 1e-12);
        } else {
          // Thirty standard deviations out a normal density changes by a hundredth in 1e-4.
          expect_slope({cdf, y, 2e-5}, density(y));
        }
      }
}

TEST_P(Likelihoods, LogPredictiveMatchesBruteForce) {
  for (const auto& likelihood : variants())
    for (const double y : observations(*likelihood))
      for (const double mean : kMeans)
        for (const double variance : kVariances) {
          // Brute force looks 30 standard deviations far; a log-concave density may draw f further.
          const double towards = is_discrete(*likelihood) ? std::log(std::abs(y) + 1) : y;
          if (likelihood->log_concave() && !likelihood->is_binary() &&
              std::abs(towards - mean) > 25 * std::sqrt(variance))
            continue;
          // A large logarithm has no more digits than its size allows.
          const double expected = brute_log_predictive(*likelihood, y, mean, variance);
          EXPECT_NEAR(likelihood->log_predictive(y, mean, variance), expected,
                      1e-9 + 1e-14 * std::abs(expected))
              << likelihood->text() << " y=" << y << " mean=" << mean << " var=" << variance;
        }
}

TEST_P(Likelihoods, PredictiveMatchesBruteForce) {
  for (const auto& likelihood : variants())
    for (const double mean : kMeans)
      for (const double variance : {1e-4, 0.04, 1.0, 4.0}) {
        SCOPED_TRACE(::testing::Message()
                     << likelihood->text() << " mean=" << mean << " var=" << variance);
        const auto found = likelihood->predictive(mean, variance);
        const auto given = [&](double f) { return likelihood->predictive(f, 0); };
        const double centre =
            brute_average([&](double f) { return given(f).mean; }, mean, variance);
        const double spread = brute_average(
            [&](double f) {
              const auto now = given(f);
              return now.variance + (now.mean - centre) * (now.mean - centre);
            },
            mean, variance);
        EXPECT_NEAR(found.mean, centre, 1e-10 * std::abs(centre));
        EXPECT_NEAR(found.variance, spread, 1e-10 * spread);
      }
}

TEST_P(Likelihoods, PredictiveCdfMatchesBruteForce) {
  for (const auto& likelihood : variants())
    for (const double y : {-2.5, -0.1, 0.0, 0.7, 1.0, 3.0, 30.0, 1000.0})
      for (const double mean : {-2.0, 0.3, 7.0})
        for (const double variance : {1e-4, 0.04, 1.0, 25.0}) {
          const auto given = [&](double f) { return likelihood->predictive_cdf(y, f, 0); };
          // A cdf that jumps over less than a node of the brute force shows in its error.
          EXPECT_NEAR(likelihood->predictive_cdf(y, mean, variance),
                      brute_average(given, mean, variance, 200), 1e-10)
              << likelihood->text() << " y=" << y << " mean=" << mean << " var=" << variance;
        }
}

TEST_P(Likelihoods, QuantileInvertsTheCdf) {
  for (const auto& likelihood : variants())
    for (const double p : {1e-4, 0.025, 0.3, 0.5, 0.9, 0.975, 0.9999})
      for (const double mean : {-3.0, 0.0, 2.0, 9.0})
        for (const double variance : {0.0, 0.01, 1.0, 9.0}) {
          SCOPED_TRACE(::testing::Message() << likelihood->text() << " p=" << p << " mean=" << mean
                                            << " var=" << variance);
          const double y = likelihood->predictive_quantile(p, mean, variance);
          const auto cdf = [&](double x) { return likelihood->predictive_cdf(x, mean, variance); };
          if (is_discrete(*likelihood)) {
            EXPECT_EQ(likelihood->fault(y), "");
            EXPECT_GE(cdf(y), p);
            EXPECT_LT(cdf(y - 1), p);
          } else {
            EXPECT_NEAR(cdf(y), p, 1e-10 * p);
          }
        }
}

TEST_P(Likelihoods, AnOffsetMakesTheDataLikely) {
  const auto likelihood = make_one();
  const auto all = observations(*likelihood);
  const Vector y = Eigen::Map<const Vector>(all.data(), static_cast<Index>(all.size()));
  const double offset = likelihood->offset(y);
  EXPECT_TRUE(std::isfinite(offset));
  EXPECT_TRUE(std::isfinite(likelihood->offset(Vector::Zero(3))));
  const auto sum = [&](double f) {
    double value = 0;
    for (const double each : all) value += likelihood->log_density(each, f).value;
    return value;
  };
  EXPECT_GE(sum(offset), sum(offset + 3));
  EXPECT_GE(sum(offset), sum(offset - 3));
}

TEST_P(AnyLikelihood, FaultsSayWhatMustBe) {
  const auto likelihood = make_one();
  for (const double y : {double(NAN), double(INFINITY), double(-INFINITY)})
    EXPECT_EQ(likelihood->fault(y).substr(0, 5), "must ");
  EXPECT_EQ(likelihood->fault(1), "");
  if (likelihood->is_binary()) {
    EXPECT_NE(likelihood->fault(2), "");
  }
}

double some_density(const Likelihood& likelihood) {
  if (likelihood.coupled() == nullptr) return likelihood.log_density(1, 0.4).value;
  return likelihood.coupled()->row_log_density(Vector::Unit(3, 1), Vector::LinSpaced(3, -1, 0.4));
}

TEST_P(AnyLikelihood, CopiesAndTextsAreTheSameLikelihood) {
  for (const auto& likelihood : variants()) {
    const auto copy = likelihood->clone(), read = make(likelihood->text());
    EXPECT_EQ(copy->text(), likelihood->text());
    EXPECT_EQ(read->text(), likelihood->text());
    EXPECT_EQ(copy->log_parameters(), likelihood->log_parameters());
    read->set_log_parameters(likelihood->log_parameters());
    const double there = some_density(*likelihood);
    EXPECT_EQ(some_density(*copy), there);
    EXPECT_EQ(some_density(*read), there);
    EXPECT_EQ(read->parameter_names(), likelihood->parameter_names());
  }
}

TEST_P(AnyLikelihood, ParametersAreSetInLogs) {
  const auto likelihood = make_one();
  const Index n = likelihood->log_parameters().size();
  EXPECT_EQ(likelihood->parameter_names().size(), static_cast<std::size_t>(n));
  const Vector theta = Vector::LinSpaced(n, 0.2, 0.9);
  likelihood->set_log_parameters(theta);
  EXPECT_EQ(likelihood->log_parameters(), theta);
  EXPECT_THROW(likelihood->set_log_parameters(Vector::Zero(n + 1)), DimensionMismatch);
  std::vector<ParameterSlope> slopes(static_cast<std::size_t>(n) + 1);
  EXPECT_THROW(likelihood->parameter_slopes(1, 0, slopes), DimensionMismatch);
  if (n > 0) {
    EXPECT_THROW(likelihood->set_log_parameters(Vector::Constant(n, 1e4)), InvalidArgument);
    EXPECT_THROW(likelihood->set_log_parameters(Vector::Constant(n, NAN)), InvalidArgument);
  }
}

TEST_P(AnyLikelihood, UnknownOptionsAreRefused) {
  const std::string name(GetParam().name);
  EXPECT_EQ(make(name)->text().substr(0, name.size()), name);
  for (const char* tail : {":", ":3", ":no_such=3", ": ", "x"})
    EXPECT_THROW(make(name + tail), InvalidArgument) << tail;
}

std::string test_name(const ::testing::TestParamInfo<LikelihoodInfo>& test) {
  std::string name(test.param.name);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registry, AnyLikelihood, ::testing::ValuesIn(likelihoods()), test_name);
INSTANTIATE_TEST_SUITE_P(Registry, Likelihoods, ::testing::ValuesIn(testing::with_coupling(false)),
                         test_name);

TEST(LikelihoodRegistry, AnUnknownNameIsAnsweredWithTheList) {
  for (const char* text : {"gamma", "", ":", "Poisson", "gamma:df=4"}) {
    try {
      make(text);
      FAIL() << text;
    } catch (const InvalidArgument& error) {
      for (const auto& info : likelihoods())
        EXPECT_NE(std::string(error.what()).find(info.name), std::string::npos) << error.what();
    }
  }
}

TEST(LikelihoodRegistry, NamesAndSummariesDiffer) {
  std::set<std::string_view> names, summaries;
  for (const auto& info : likelihoods()) {
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_TRUE(summaries.insert(info.summary).second);
  }
}

}  // namespace registry_test
}  // namespace mercer::likelihoods
