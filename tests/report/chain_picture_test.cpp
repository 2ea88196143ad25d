// The picture of chains: what is drawn, and the density against its closed form.
#include "mercer/report/chain_picture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::report {
namespace chain_picture_test {

ChainPanels panels(Index iterations, Index chains) {
  ChainPanels p{.name = "l < 1", .note = "R-hat 1.002"};
  p.draws.resize(iterations, chains);
  Rng(3, "picture").fill_normal(p.draws);
  p.autocorrelation = Matrix::Constant(20, chains, 0.1);
  p.running_mean = Matrix::Zero(iterations, chains);
  p.running_sd = Matrix::Ones(iterations, chains);
  return p;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(ChainPicture, EveryChainHasItsLineInEveryPanel) {
  const auto text = svg(ChainPicture{"chains", "two parameters", {panels(50, 3), panels(40, 3)}});
  EXPECT_EQ(count(text, "<path"), 2u * 3u * (1 + 1 + 1 + 3));
  EXPECT_NE(text.find("l &lt; 1"), std::string::npos);
  EXPECT_NE(text.find("R-hat 1.002"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
}

TEST(ChainPicture, ChainsThatStandStillOrAreBrokenAreDrawnAsFarAsTheyGo) {
  auto still = panels(30, 2);
  still.draws.setConstant(1e-3);
  still.running_sd.setZero();
  still.autocorrelation.setConstant(std::numeric_limits<double>::quiet_NaN());
  auto broken = panels(30, 2);
  broken.draws(7, 0) = std::numeric_limits<double>::quiet_NaN();
  broken.draws(9, 1) = std::numeric_limits<double>::infinity();
  const auto text = svg(ChainPicture{"t", "", {still, broken, panels(1, 1)}});
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
}

TEST(ChainPicture, ManyDrawsAreThinned) {
  EXPECT_LT(svg(ChainPicture{"t", "", {panels(100000, 1)}}).size(), 200000u);
}

TEST(ChainPicture, RefusesWhatDoesNotFit) {
  EXPECT_THROW(svg(ChainPicture{}), InvalidArgument);
  EXPECT_THROW(svg(ChainPicture{"t", "", {ChainPanels{}}}), InvalidArgument);
  auto wrong = panels(10, 2);
  wrong.autocorrelation = Matrix::Zero(5, 3);
  EXPECT_THROW(svg(ChainPicture{"t", "", {wrong}}), DimensionMismatch);
}

TEST(KernelDensity, IsThatOfTheDraws) {
  Vector x(20000);
  Rng(4, "density").fill_normal(x);
  const auto density = kernel_density(x);
  const double step = density.at(1) - density.at(0);
  EXPECT_NEAR(density.value.sum() * step, 1, 1e-3);
  for (Index i = 0; i < density.at.size(); ++i) {
    const double truth = std::exp(-0.5 * density.at(i) * density.at(i)) / std::sqrt(2 * M_PI);
    // Bias h^2 / 2 |f''| is below 0.003 at this number, the standard error below 0.004.
    EXPECT_NEAR(density.value(i), truth, 0.02) << density.at(i);
  }
}

TEST(KernelDensity, OfFewDrawsIsTheSumOfItsKernels) {
  Vector x(3);
  x << 0, 1, 4;
  const auto density = kernel_density(x, 11);
  const double sd = std::sqrt((25.0 / 9 + 4.0 / 9 + 49.0 / 9) / 2);
  const double h = 0.9 * std::min(sd, 4 / 1.34) * std::pow(3.0, -0.2);
  for (Index i = 0; i < 11; ++i) {
    double sum = 0;
    for (const double centre : x)
      sum += std::exp(-0.5 * std::pow((density.at(i) - centre) / h, 2)) / (h * std::sqrt(2 * M_PI));
    EXPECT_NEAR(density.value(i), sum / 3, 1e-12);
  }
}

}  // namespace chain_picture_test
}  // namespace mercer::report
