#include "mercer/data/schema.hpp"

#include <nlohmann/json.hpp>

#include "mercer/data/data_json.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace schema_test {

using nlohmann::json;
using testing::expect_contains;
using testing::message_of;

Schema example() {
  Schema schema;
  schema.inputs = {{"age", false, {}}, {"colour", true, {"blue", "red"}}};
  schema.target = "y";
  schema.target_levels = {"no", "yes"};
  schema.dropped_constant = {"zero"};
  schema.generated_header = true;
  return schema;
}

TEST(Schema, EncodesOneNamePerInput) {
  EXPECT_EQ(example().dimension(), 3);
  EXPECT_EQ(example().encoded_names(),
            (std::vector<std::string>{"age", "colour=blue", "colour=red"}));
  EXPECT_EQ(level_index({"a", "c"}, "c"), 1);
  EXPECT_EQ(level_index({"a", "c"}, "b"), -1);
}

TEST(Schema, JsonRoundTrip) {
  const json stored = json::parse(json(example()).dump());
  EXPECT_EQ(stored.get<Schema>(), example());
}

TEST(Schema, HostileJsonIsRefused) {
  const json good = example();
  const auto refused = [](const json& bad) {
    return message_of<ModelFileError>([&] { (void)bad.get<Schema>(); });
  };
  for (const auto& [key, value] : good.items()) {
    json bad = good;
    bad.erase(key);
    expect_contains(refused(bad), {"schema", key.c_str()});
    for (const json& wrong : {json(nullptr), json(1.5), json::array({1}), json::object(), json(""),
                              json::array({json::array()})}) {
      bad[key] = wrong;
      expect_contains(refused(bad), {"schema"});
    }
  }
  for (const json& bad : {json(), json(3), json::array(), json("x"), json::object()}) refused(bad);
  json bad = good;
  bad["inputs"] = json::array();
  expect_contains(refused(bad), {"no input"});
  bad = good;
  bad["inputs"][0]["name"] = "y";
  expect_contains(refused(bad), {"'y' is there twice"});
  bad = good;
  bad["inputs"][1]["levels"] = {"red", "blue"};
  expect_contains(refused(bad), {"not sorted"});
  bad["inputs"][1]["levels"] = {"red", "red"};
  expect_contains(refused(bad), {"repeats"});
  bad["inputs"][1]["levels"] = json::array();
  expect_contains(refused(bad), {"'colour' has no levels"});
}

}  // namespace schema_test
}  // namespace mercer::data
