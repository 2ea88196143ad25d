// Law suites run over every registered preconditioner but `none`, with equal and unequal noise.
#pragma once

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "mercer/preconditioners/registry.hpp"

namespace mercer::preconditioners {

/// A preconditioner, and whether the noise of the points is equal.
using Case = std::tuple<PreconditionerInfo, bool>;

inline std::vector<PreconditionerInfo> all_but_none() {
  const auto& all = preconditioners();
  return {std::next(all.begin()), all.end()};
}

inline std::string test_name(const ::testing::TestParamInfo<Case>& test) {
  const auto& [info, equal] = test.param;
  std::string name = std::string(info.name) + (equal ? "" : "_unequal_noise");
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

}  // namespace mercer::preconditioners
