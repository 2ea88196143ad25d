#include "mercer/core/registry.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace mercer {
namespace registry_test {

struct Shape {
  std::string_view name;
  std::string_view summary;
  int corners = 0;
};

Registry<Shape> shapes() {
  return Registry<Shape>("shape", {{"square", "four equal sides", 4}, {"triangle", "three", 3}});
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Registry, FindsEntriesByNameAndKeepsTheirOrder) {
  const auto registry = shapes();

  EXPECT_EQ(registry.names(), (std::vector<std::string>{"square", "triangle"}));
  EXPECT_EQ(registry.all().front().name, "square");
  EXPECT_EQ(registry.find("triangle").corners, 3);
  int corners = 0;
  for (const auto& shape : registry) corners += shape.corners;
  EXPECT_EQ(corners, 7);
  EXPECT_TRUE(registry.contains("square"));
  EXPECT_FALSE(registry.contains("squar"));
}

TEST(Registry, ListsTheNamesWhenOneIsUnknown) {
  const auto registry = shapes();

  EXPECT_EQ(message_of([&] { registry.find("circle"); }),
            "there is no shape 'circle'; there are: square, triangle");
}

TEST(Registry, AnAddedEntryStaysAsLongAsItsRegistration) {
  auto registry = shapes();
  const Shape& square = registry.find("square");
  {
    const auto circle = registry.add({"circle", "round", 0});
    const auto star = registry.add({"star", "five points", 10});

    EXPECT_EQ(registry.names(), (std::vector<std::string>{"square", "triangle", "circle", "star"}));
    EXPECT_EQ(&registry.find("square"), &square);
  }
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"square", "triangle"}));
}

TEST(Registry, RegistrationsEndInAnyOrderAndCanBeMoved) {
  auto registry = shapes();
  std::optional<Registry<Shape>::Registration> kept;
  {
    auto circle = registry.add({"circle", "round", 0});
    const auto star = registry.add({"star", "five points", 10});
    kept.emplace(std::move(circle));
  }
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"square", "triangle", "circle"}));
  kept.reset();
  EXPECT_FALSE(registry.contains("circle"));
}

TEST(Registry, RefusesASecondEntryOfOneNameAndEntriesWithoutWords) {
  auto registry = shapes();
  const auto refusal = [&](const Shape& shape) {
    return message_of([&] { const auto added = registry.add(shape); });
  };

  EXPECT_EQ(refusal({"square", "another", 4}), "there is already a shape 'square'");
  EXPECT_EQ(refusal({"", "nameless", 4}), "a shape has no name");
  EXPECT_EQ(refusal({"circle", "", 0}), "the shape 'circle' has no summary");
  EXPECT_EQ(registry.all().size(), 2U);
}

}  // namespace registry_test
}  // namespace mercer
