// A field that is written once, in the list of a struct, is an option of the command line: flag,
// help, configuration file and JSON record.
#include "cli/arguments.hpp"

#include <gtest/gtest.h>

#include "cli/option_list.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::cli {
namespace arguments_test {

// A registry that is filled at run time.
std::vector<std::string>& dummy_names() {
  static std::vector<std::string> names = {"auto", "first"};
  return names;
}

struct DummyOptions {
  std::string dummy_choice = "auto";
  std::optional<int> dummy_count;
  std::vector<double> dummy_list;
  std::vector<double> dummy_grid = {1, 2};
  bool dummy_flag = false;
  bool dummy_merge = true;
  std::optional<std::uint64_t> dummy_bytes;
  std::string dummy_file;
  int hidden = 3;
};

template <class Visitor>
void visit_fields(DummyOptions& o, Visitor&& field) {
  field({"dummy_choice", "NAME", "how the dummy is found"}, o.dummy_choice, OneOf{dummy_names()});
  field({"dummy_count", "N", "how many dummies", "as many as it takes"}, o.dummy_count, Positive{});
  field({"dummy_list", "L", "their sizes"}, o.dummy_list, Positive{});
  field({"dummy_grid", "G", "their places"}, o.dummy_grid, PositiveGrid{});
  field({"dummy_flag", "", "paint them"}, o.dummy_flag, Any{});
  field({"dummy_merge", "", "merge equal ones"}, o.dummy_merge, Any{});
  field({"dummy_bytes", "SIZE", "their memory"}, o.dummy_bytes, Bytes{});
  field({"dummy_file", "FILE", "where they go", "none", Affects::nothing}, o.dummy_file, Any{});
  field("hidden", o.hidden, Any{});
}

// A verb with these options only.
struct Verb {
  DummyOptions options;
  Arguments arguments{"test", "  mercer test", "A test."};

  Verb() {
    arguments.add(options);
    arguments.add_config();
  }
  std::string refusal(const std::vector<std::string>& words) {
    try {
      arguments.parse(words);
    } catch (const InvalidArgument& error) {
      return with_dashes(error.what());
    }
    return "";
  }
};

class Config : public ::testing::Test {
 protected:
  std::string write(const std::string& text) { return folder.write("config.json", text); }
  testing::TemporaryFolder folder;
};

TEST(Arguments, AFieldOfTheListIsOnTheHelpPage) {
  Verb verb;
  ::testing::internal::CaptureStdout();
  EXPECT_FALSE(verb.arguments.parse({"--help"}));
  const auto page = ::testing::internal::GetCapturedStdout();
  for (const char* part : {"--dummy-choice NAME", "auto | first: how the dummy is found",
                           "[default: auto]", "--dummy-count N", "[default: as many as it takes]",
                           "[default: 1,2]", "--no-dummy-merge", "do not merge equal ones"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  EXPECT_EQ(page.find("hidden"), std::string::npos);
  EXPECT_EQ(page.find("--no-dummy-flag"), std::string::npos);
}

TEST(Arguments, WordsFillTheFieldsAndTheRecord) {
  Verb verb;
  ASSERT_TRUE(verb.arguments.parse(
      {"--dummy-count", "5", "--dummy-list", "0.5,2", "--dummy-list", "3", "--dummy-grid",
       "1:100:3", "--dummy-flag", "--no-dummy-merge", "--dummy-bytes", "2K", "--dummy-file", "f"}));
  EXPECT_EQ(verb.options.dummy_count, 5);
  EXPECT_EQ(verb.options.dummy_list, (std::vector<double>{0.5, 2, 3}));
  EXPECT_EQ(verb.arguments.record(), Json::parse(R"({"dummy_choice": "auto", "dummy_count": 5,
      "dummy_list": [0.5, 2.0, 3.0], "dummy_grid": [1.0, 10.0, 100.0], "dummy_flag": true,
      "dummy_merge": false, "dummy_bytes": 2048})"));
  EXPECT_TRUE(verb.arguments.given("dummy_merge"));
  EXPECT_FALSE(verb.arguments.given("dummy_choice"));
}

TEST(Arguments, ANameOfARegistryIsAChoiceAtOnce) {
  EXPECT_NE(Verb().refusal({"--dummy-choice", "second"}).find("there are: auto, first"),
            std::string::npos);
  dummy_names().emplace_back("second");
  EXPECT_EQ(Verb().refusal({"--dummy-choice", "second"}), "");
  dummy_names().pop_back();
}

TEST_F(Config, TheRecordOfARunGivesTheSameOptions) {
  Verb first;
  first.arguments.parse({"--dummy-count", "5", "--dummy-list", "0.1,0.30000000000000004",
                         "--dummy-flag", "--no-dummy-merge", "--dummy-bytes", "2K"});
  const auto whole = write(Json{{"n", 3}, {"options", first.arguments.record()}}.dump());
  Verb again;
  ASSERT_TRUE(again.arguments.parse({"--config", whole}));
  EXPECT_EQ(again.arguments.record(), first.arguments.record());
  EXPECT_EQ(identity_text(again.options), identity_text(first.options));
  EXPECT_TRUE(again.arguments.given("dummy_count"));
  // What the file repeats of the defaults was not asked for.
  EXPECT_FALSE(again.arguments.given("dummy_choice"));
}

TEST_F(Config, WordsOverrideTheFile) {
  const auto path = write(R"({"dummy_count": 5, "dummy_flag": true, "dummy_merge": false,
                              "dummy_list": [1, 2]})");
  Verb verb;
  ASSERT_TRUE(verb.arguments.parse({"--dummy-count", "6", "--no-dummy-flag", "--dummy-merge",
                                    "--dummy-list", "9", "--config", path}));
  EXPECT_EQ(verb.options.dummy_count, 6);
  EXPECT_FALSE(verb.options.dummy_flag);
  EXPECT_TRUE(verb.options.dummy_merge);
  EXPECT_EQ(verb.options.dummy_list, std::vector<double>{9});
}

TEST_F(Config, NamesAndTypesAreRefusedWithFileAndField) {
  const auto refused = [&](const char* text) {
    const auto path = write(text);
    const auto said = Verb().refusal({"--config", path});
    EXPECT_NE(said.find(path), std::string::npos) << said;
    return said;
  };
  EXPECT_NE(refused(R"({"dumy_count": 5})").find("'dumy_count' (did you mean 'dummy_count'?)"),
            std::string::npos);
  EXPECT_NE(refused(R"({"dummy_count": "five"})").find("'dummy_count' must be a whole number"),
            std::string::npos);
  EXPECT_NE(refused(R"({"dummy_count": 0})").find("--dummy"), 0);
  EXPECT_NE(refused(R"({"dummy_choice": "third"})").find("there are: auto, first"),
            std::string::npos);
  EXPECT_NE(refused(R"({"hidden": 4})").find("'hidden'"), std::string::npos);
  EXPECT_NE(refused("[1]").find("no JSON object"), std::string::npos);
  EXPECT_NE(refused("{").find("no JSON object"), std::string::npos);
  EXPECT_NE(Verb().refusal({"--config", "nowhere.json"}).find("nowhere.json"), std::string::npos);
}

TEST(Messages, AnOptionIsNamedAsItIsTyped) {
  EXPECT_EQ(with_dashes("`max_iterations` must be positive"), "--max-iterations must be positive");
  EXPECT_EQ(with_dashes("take `solver=kcg`, or leave `precision` out"),
            "take --solver kcg, or leave --precision out");
  EXPECT_EQ(with_dashes("`merge=false` or `standardize`"), "--no-merge or --no-standardize");
  EXPECT_EQ(with_dashes("`drop_missing`, `n`"), "--drop-missing, -n");
}

TEST(Messages, OtherQuotesAreLeftAlone) {
  for (const char* text : {"`mercer fit`", "a ` alone", "`", "", "`a` `b", "`=kcg`"})
    EXPECT_EQ(with_dashes(text), text);
  EXPECT_EQ(with_dashes("a ` alone `seed`"), "a ` alone --seed");
}

// An option of preconditioners that nobody is asked about would be accepted by all in silence.
TEST(Preconditioners, EveryOptionHasItsTakers) {
  preconditioners::PreconditionerOptions options;
  std::vector<std::string> listed, asked;
  visit_fields(options,
               [&](const Field& field, auto&, const auto&) { listed.emplace_back(field.name); });
  listed.emplace_back("landmarks");
  visit_options(options, {}, [&](const char* name, auto&, bool) { asked.emplace_back(name); });
  EXPECT_EQ(asked, listed);
}

}  // namespace arguments_test
}  // namespace mercer::cli
