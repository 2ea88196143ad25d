// Priors of hyperparameters against SciPy 1.10, differences and their own quantiles.
#include "mercer/training/sampling/prior.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::training {
namespace prior_test {

// scipy.stats: logpdf(theta) + log(theta), ppf(0.05), ppf(0.95), mean(), std().
struct Reference {
  const char* text;
  double theta, log_density, q05, q95, mean, sd;
};
constexpr Reference kReferences[] = {
    {"gamma(2,2)", 0.3, -1.62165124753198, 0.177680755349331, 2.37193225919529, 1,
     0.707106781186548},
    {"gamma(2,2)", 2.2, -1.43679091815157, 0.177680755349331, 2.37193225919529, 1,
     0.707106781186548},
    {"gamma(0.7,3.5)", 0.3, -1.27671413161306, 0.00347519983783097, 0.680748576756677, 0.2,
     0.239045721866879},
    {"gamma(0.7,3.5)", 2.2, -6.53201301632992, 0.00347519983783097, 0.680748576756677, 0.2,
     0.239045721866879},
    {"inverse-gamma(3,1.5)", 0.3, -0.864833443257644, 0.238254315514553, 1.83443278660005, 0.75,
     0.75},
    {"inverse-gamma(3,1.5)", 2.2, -2.52394211914644, 0.238254315514553, 1.83443278660005, 0.75,
     0.75},
    {"log-normal(-0.4,0.8)", 0.3, -1.20077331790274, 0.179804900584726, 2.49898063209625,
     0.923116346386636, 0.874031242706279},
    {"log-normal(-0.4,0.8)", 2.2, -1.79925662048734, 0.179804900584726, 2.49898063209625,
     0.923116346386636, 0.874031242706279},
    {"half-normal(1.7)", 0.3, -1.97596334228889, 0.106601522503464, 3.33193877371809,
     1.35640375336487, 1.02477746748145},
    {"half-normal(1.7)", 2.2, -0.805332485557161, 0.106601522503464, 3.33193877371809,
     1.35640375336487, 1.02477746748145},
    {"log-uniform(0.01,20)", 0.3, -2.02826698491928, 0.0146235057355696, 13.6766110409167,
     2.6299508652298, 4.40409092243804},
    {"log-uniform(0.01,20)", 2.2, -2.02826698491928, 0.0146235057355696, 13.6766110409167,
     2.6299508652298, 4.40409092243804},
};

TEST(Prior, AgreesWithSciPy) {
  constexpr double digits = 1e-12;  // of both implementations, relative
  for (const auto& r : kReferences) {
    const auto prior = Prior::parse(r.text);
    EXPECT_NEAR(prior.log_density(std::log(r.theta)), r.log_density, digits * 10) << r.text;
    EXPECT_NEAR(prior.quantile(0.05), r.q05, digits * r.q05) << r.text;
    EXPECT_NEAR(prior.quantile(0.95), r.q95, digits * r.q95) << r.text;
    EXPECT_NEAR(*prior.mean(), r.mean, digits * r.mean) << r.text;
    EXPECT_NEAR(*prior.sd(), r.sd, digits * r.sd) << r.text;
    EXPECT_EQ(prior.text(), r.text);
  }
}

TEST(Prior, EveryFamilyIsComparedWithSciPy) {
  for (const auto& info : priors())
    EXPECT_TRUE(std::any_of(std::begin(kReferences), std::end(kReferences), [&](const auto& r) {
      return std::string(r.text).starts_with(std::string(info.name) + "(");
    })) << info.name;
}

TEST(Prior, SlopeIsThatOfTheDensity) {
  constexpr double h = 1e-5;  // the error of a central difference is of order h^2
  for (const auto& r : kReferences) {
    const auto prior = Prior::parse(r.text);
    const double phi = std::log(r.theta);
    const double difference = (prior.log_density(phi + h) - prior.log_density(phi - h)) / (2 * h);
    EXPECT_NEAR(prior.slope(phi), difference, 1e-8 * std::max(1.0, std::abs(difference))) << r.text;
  }
}

TEST(Prior, DensityOfPhiIntegratesToOne) {
  for (const auto& r : kReferences) {
    const auto prior = Prior::parse(r.text);
    // Between two quantiles: no tail is left out, and the trapezoidal rule is smooth.
    const double from = std::log(prior.quantile(0.1)), to = std::log(prior.quantile(0.8));
    constexpr int count = 2000;
    const double h = (to - from) / count;
    double sum = 0;
    for (int i = 0; i <= count; ++i)
      sum += (i == 0 || i == count ? 0.5 : 1.0) * std::exp(prior.log_density(from + i * h)) * h;
    EXPECT_NEAR(sum, 0.7, 1e-6) << r.text;
  }
}

// The share of draws below a quantile: 4.5 standard errors, a false alarm in 150,000.
TEST(Prior, DrawsFollowTheQuantiles) {
  constexpr int count = 4000;
  for (const auto& r : kReferences) {
    const auto prior = Prior::parse(r.text);
    Rng rng(3, "prior test");
    int below = 0;
    for (int i = 0; i < count; ++i) below += prior.draw(rng) < r.q95;
    EXPECT_NEAR(below / double{count}, 0.95, 4.5 * std::sqrt(0.95 * 0.05 / count)) << r.text;
  }
}

TEST(Prior, MomentsThatDoNotExistAreNotGiven) {
  EXPECT_FALSE(Prior::parse("inverse-gamma(1,1)").mean());
  EXPECT_TRUE(Prior::parse("inverse-gamma(1.5,1)").mean());
  EXPECT_FALSE(Prior::parse("inverse-gamma(1.5,1)").sd());
}

TEST(Prior, OutsideItsBoundsTheDensityIsZero) {
  const auto prior = Prior::parse("log-uniform(0.5, 2)");
  EXPECT_EQ(prior.log_density(std::log(0.49)), -HUGE_VAL);
  EXPECT_EQ(prior.log_density(std::log(2.01)), -HUGE_VAL);
}

std::string refusal(const std::string& text) {
  try {
    Prior::parse(text);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Prior, WhatIsNoPriorIsRefusedWithTheReason) {
  EXPECT_NE(refusal("flat").find("improper"), std::string::npos);
  EXPECT_NE(refusal("uniform(0,1)").find("improper"), std::string::npos);
  EXPECT_NE(refusal("cauchy(1)").find("there are: gamma"), std::string::npos);
  EXPECT_NE(refusal("gamma(2)").find("2 numbers"), std::string::npos);
  EXPECT_NE(refusal("gamma").find("gamma(SHAPE,RATE)"), std::string::npos);
  EXPECT_NE(refusal("gamma(2,x)").find("'x' is not a number"), std::string::npos);
  EXPECT_NE(refusal("gamma(-1,2)").find("positive"), std::string::npos);
  EXPECT_NE(refusal("log-uniform(2,1)").find("first below"), std::string::npos);
  EXPECT_NE(refusal("gamma(2,inf)").find("finite"), std::string::npos);
}

TEST(JointPrior, NamesOneOrAllParameters) {
  const std::vector<std::string> names = {"signal_variance", "lengthscale[0]", "lengthscale[1]",
                                          "noise_variance"};
  // As the command line cuts its words: at every comma.
  const JointPrior prior(names, {"lengthscale=inverse-gamma(3", "2)", "lengthscale[1]=gamma(4",
                                 " 1)", "noise_variance=half-normal(0.5)"});
  EXPECT_EQ(prior.of(0).text(), kDefaultPrior);
  EXPECT_EQ(prior.of(1).text(), "inverse-gamma(3,2)");
  EXPECT_EQ(prior.of(2).text(), "gamma(4,1)");
  EXPECT_EQ(prior.of(3).text(), "half-normal(0.5)");
  EXPECT_TRUE(prior.is_default(0));
  EXPECT_FALSE(prior.is_default(3));
  EXPECT_THROW(JointPrior(names, {"period=gamma(2,2)"}), InvalidArgument);
  EXPECT_THROW(JointPrior(names, {"gamma(2,2)"}), InvalidArgument);
}

TEST(JointPrior, NamesTermsOfASum) {
  const JointPrior prior(
      {"signal_variance1", "rbf_1.lengthscale[0,2]", "signal_variance2", "periodic_2.period"},
      {"rbf_1.lengthscale[0,2]=gamma(3,3)", "period=log-normal(0,1)",
       "signal_variance=gamma(5,5)"});
  EXPECT_EQ(prior.of(0).text(), "gamma(5,5)");
  EXPECT_EQ(prior.of(1).text(), "gamma(3,3)");
  EXPECT_EQ(prior.of(2).text(), "gamma(5,5)");
  EXPECT_EQ(prior.of(3).text(), "log-normal(0,1)");
}

TEST(JointPrior, GradientIsThatOfTheDensity) {
  const JointPrior prior({"a", "b"}, {"a=gamma(3,2),b=inverse-gamma(2,1)"});
  const Vector phi{{0.3, -0.2}};
  Vector gradient = Vector::Zero(2);
  prior.add_gradient(phi, gradient);
  constexpr double h = 1e-5;
  for (Index i = 0; i < 2; ++i) {
    Vector up = phi, down = phi;
    up(i) += h;
    down(i) -= h;
    EXPECT_NEAR(gradient(i), (prior.log_density(up) - prior.log_density(down)) / (2 * h), 1e-8);
  }
}

}  // namespace prior_test
}  // namespace mercer::training
