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
  schema.inputs[0].date = true;
  schema.inputs[0].fill = 40.5;
  schema.inputs[0].missing_input = true;
  schema.inputs[1].fill_level = "red";
  schema.noise_column = "variance";
  schema.count_column = "times";
  schema.id_column = "number";
  schema.target = "y";
  schema.target_levels = {"no", "yes"};
  schema.dropped_constant = {"zero"};
  schema.generated_header = true;
  return schema;
}

TEST(Schema, EncodesOneNamePerInput) {
  EXPECT_EQ(example().dimension(), 4);
  EXPECT_EQ(example().encoded_names(),
            (std::vector<std::string>{"age", "age=missing", "colour=blue", "colour=red"}));
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
    if (key == "noise_column" || key == "count_column" || key == "id_column")
      EXPECT_NE(bad.get<Schema>(), example());  // files without it are older
    else
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
  const auto with = [&](int column, const char* key, const json& value) {
    json changed = good;
    changed["inputs"][column][key] = value;
    return refused(changed);
  };
  for (const json& value : {json("a"), json(nullptr), json(1e301), json::array()})
    expect_contains(with(0, "fill", value), {"'fill' of column 'age'"});
  for (const json& value : {json("green"), json(1.5), json("")})
    expect_contains(with(1, "fill", value), {"'fill' of column 'colour'"});
  expect_contains(with(0, "date", 1), {"'date'"});
  expect_contains(with(1, "date", true), {"'colour' holds both"});
  expect_contains(with(1, "missing_input", true), {"'colour' holds both"});
  bad = good;
  bad["inputs"][0].erase("fill");
  expect_contains(refused(bad), {"'age' has no 'fill'"});
  bad = good;
  bad["id_column"] = "age";
  expect_contains(refused(bad), {"'age' is there twice"});
}

}  // namespace schema_test
}  // namespace mercer::data
