// Chains of a sampler as a picture: for each parameter a row of panels with its trace, its density,
// its autocorrelation and its running mean with two standard deviations of the draws.
#pragma once

#include <string>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::report {

struct ChainPanels {
  std::string name;
  Matrix draws;                     // iterations x chains
  Matrix autocorrelation;           // lags 0, 1, ... x chains
  Matrix running_mean, running_sd;  // iterations x chains
  std::string note;                 // beside the name: R-hat, effective sample size
};

struct ChainPicture {
  std::string title, subtitle;
  std::vector<ChainPanels> parameters;
};

/// The picture as SVG. A draw that is not finite is a gap. Throws InvalidArgument when there is no
/// parameter, when one has no draws, or when its matrices disagree about the number of chains.
std::string svg(const ChainPicture& picture);

/// Gaussian kernel density of the finite draws at `points` places from their least to their largest
/// and three bandwidths beyond; Silverman's bandwidth, 0.9 min(sd, IQR / 1.34) n^(-1/5).
struct Density {
  Vector at, value;  // empty when there is no finite draw; one point when all are equal
};
Density kernel_density(ConstVectorView draws, Index points = 200);

}  // namespace mercer::report
MERCER_API_END
