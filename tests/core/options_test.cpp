#include "mercer/core/options.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "mercer/core/options_json.hpp"
#include "mercer/core/options_text.hpp"

namespace mercer {
namespace options_test {

std::vector<std::string> colours() { return {"red", "green"}; }

struct SampleOptions {
  double tolerance = 1e-6;
  int count = 0;
  std::optional<double> noise;
  std::string colour = "red";
  std::vector<double> scales = {1, 2};
  bool merge = true;
  std::optional<std::uint64_t> memory;
  std::string file;
  int inner = 7;
};

template <class Visitor>
void visit_fields(SampleOptions& o, Visitor&& field) {
  field({"tolerance", "E", "stop there"}, o.tolerance, Positive{});
  field("count", o.count, NonNegative{});
  field({"noise", "V", "variance", "from the data"}, o.noise, Positive{});
  field({"colour", "NAME", "of the line"}, o.colour, OneOf{colours()});
  field({"scales", "S", "of each input"}, o.scales, Positive{});
  field({"merge", "", "merge rows"}, o.merge, Any{});
  field({"memory", "SIZE", "to stay inside", "all", Affects::plan}, o.memory, Bytes{});
  field({"file", "FILE", "to write", "none", Affects::nothing}, o.file, Any{});
  field("inner", o.inner, Positive{});
}

std::string complaint(const SampleOptions& options) {
  try {
    validate(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Options, APartInQuotesMayHoldCommas) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split_at_commas("`inputs`", "a,b"), (Parts{"a", "b"}));
  EXPECT_EQ(split_at_commas("`inputs`", "\"a,b\",c"), (Parts{"a,b", "c"}));
  EXPECT_EQ(split_at_commas("`inputs`", "c,\"say \"\"x\"\"\""), (Parts{"c", "say \"x\""}));
  EXPECT_EQ(split_at_commas("`inputs`", "5\" pipe,a"), (Parts{"5\" pipe", "a"}));
  for (const char* bad : {"", "a,", ",a", "\"a", "\"a,b", "\"a\"b", "\"\"", "a,\""})
    EXPECT_THROW(split_at_commas("`inputs`", bad), InvalidArgument) << bad;
}

TEST(Options, DefaultsHold) { EXPECT_EQ(complaint({}), ""); }

TEST(Options, TheFirstBrokenRuleIsNamedWithItsValue) {
  EXPECT_EQ(complaint({.tolerance = -1}), "`tolerance` is -1, but must be positive");
  EXPECT_EQ(complaint({.count = -3}), "`count` is -3, but must be zero or positive");
}

TEST(Options, NotANumberAndInfinityBreakEveryRule) {
  EXPECT_NE(complaint({.tolerance = std::numeric_limits<double>::quiet_NaN()}), "");
  EXPECT_NE(complaint({.tolerance = std::numeric_limits<double>::infinity()}), "");
}

TEST(Options, AnUnsetFieldIsNotChecked) {
  EXPECT_EQ(complaint({.noise = std::nullopt}), "");
  EXPECT_EQ(complaint({.noise = 0.0}), "`noise` is 0, but must be positive");
}

TEST(Options, AChoiceIsRefusedWithTheListOfNames) {
  EXPECT_EQ(complaint({.colour = "green"}), "");
  EXPECT_EQ(complaint({.colour = "blue"}), "unknown `colour` 'blue'; there are: red, green");
}

TEST(Options, TheRuleOfAListHoldsForEachEntry) {
  EXPECT_EQ(complaint({.scales = {}}), "");
  EXPECT_EQ(complaint({.scales = {1, 0}}), "`scales` is 0, but must be positive");
}

TEST(Options, AShortFieldIsNotForUsers) {
  SampleOptions options;
  std::string names;
  visit_fields(options, [&](const Field& field, auto&, const auto&) {
    if (field.for_users()) names += std::string(field.name) + " ";
  });
  EXPECT_EQ(names, "tolerance noise colour scales merge memory file ");
}

TEST(Options, TheIdentityHasEveryFieldThatSteersTheResult) {
  EXPECT_EQ(identity_text(SampleOptions{}),
            "tolerance=1e-06|count=0|noise=|colour=red|scales=1,2|merge=true|inner=7");
  // Neighbouring numbers differ: every digit counts.
  const double next = std::nextafter(1e-6, 1.0);
  EXPECT_NE(identity_text(SampleOptions{}), identity_text(SampleOptions{.tolerance = next}));
  EXPECT_NE(identity_text(SampleOptions{}), identity_text(SampleOptions{.inner = 8}));
  EXPECT_EQ(identity_text(SampleOptions{}), identity_text(SampleOptions{.memory = 5, .file = "f"}));
}

TEST(Options, JsonHasEveryFieldButFiles) {
  const auto json = options_json(SampleOptions{.noise = 0.1, .memory = 1024, .file = "f"});
  EXPECT_EQ(json, nlohmann::json::parse(R"({"tolerance": 1e-6, "count": 0, "noise": 0.1,
      "colour": "red", "scales": [1.0, 2.0], "merge": true, "memory": 1024, "inner": 7})"));
  EXPECT_TRUE(options_json(SampleOptions{}).at("noise").is_null());
}

TEST(Options, WhatJsonSaysIsReadBackToTheSameBits) {
  const SampleOptions wrote{
      .tolerance = 1.0 / 3, .noise = 0.1, .scales = {2.0 / 7}, .merge = false};
  const auto json = nlohmann::json::parse(options_json(wrote).dump());
  SampleOptions read;
  visit_fields(read, [&](const Field& field, auto& value, const auto& rule) {
    if (field.affects != Affects::nothing)
      read_json<std::decay_t<decltype(rule)>>(json.at(std::string(field.name)), value);
  });
  EXPECT_EQ(identity_text(read), identity_text(wrote));
  EXPECT_EQ(read.tolerance, wrote.tolerance);
}

template <class Rule = Any, class T>
std::string type_complaint(const char* json, T value) {
  try {
    read_json<Rule>(nlohmann::json::parse(json), value);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Options, JsonOfAnotherTypeIsRefused) {
  EXPECT_EQ(type_complaint("\"a\"", 1.0), "must be a number, but is \"a\"");
  EXPECT_EQ(type_complaint("1.5", 1), "must be a whole number, but is 1.5");
  EXPECT_EQ(type_complaint("-1", std::uint64_t{1}),
            "must be a whole number of 0 or more, but is -1");
  EXPECT_NE(type_complaint("5000000000", 1), "");  // more than an int
  EXPECT_EQ(type_complaint("1", true), "must be true or false, but is 1");
  EXPECT_EQ(type_complaint("3", std::string()), "must be a text, but is 3");
  EXPECT_EQ(type_complaint("[1, \"a\"]", std::vector<double>()),
            "must be a list of numbers, but is [1,\"a\"]");
  EXPECT_EQ(type_complaint("true", std::optional<double>()), "must be a number, but is true");
}

TEST(Options, JsonMayLeaveOutListsOfOneAndWriteBytesAsText) {
  std::vector<double> list;
  read_json<Positive>(nlohmann::json(3), list);
  EXPECT_EQ(list, std::vector<double>{3});
  std::optional<std::uint64_t> memory;
  read_json<Bytes>(nlohmann::json("2K"), memory);
  EXPECT_EQ(memory, 2048);
  read_json<Bytes>(nlohmann::json(nullptr), memory);
  EXPECT_EQ(memory, 2048);
}

}  // namespace options_test
}  // namespace mercer
