#include "mercer/data/text.hpp"

#include <gtest/gtest.h>

namespace mercer::data {
namespace text_test {

Cell kind(std::string_view text) {
  double value = 0;
  return classify(text, value);
}

TEST(Text, NumbersInAllTheirForms) {
  double value = 0;
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, double>>{
           {"1", 1},
           {"-2.5", -2.5},
           {"+3", 3},
           {" 4 ", 4},
           {"\t5", 5},
           {".5", 0.5},
           {"6.", 6},
           {"1e3", 1000},
           {"1E-3", 1e-3},
           {"+.5e1", 5},
           {"-0", 0},
           {"0012", 12},
           {"5e-324", 5e-324},
           {"1e-400", 0},
           {"1.7976931348623157e308", 1.7976931348623157e308}}) {
    EXPECT_EQ(classify(text, value), Cell::number) << text;
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(Text, MissingInfiniteAndText) {
  for (const char* text :
       {"", " ", "NaN", "nan", "NAN", "NA", "na", "N/A", "n/a", "null", "NULL", "?", "-nan"})
    EXPECT_EQ(kind(text), Cell::missing) << text;
  for (const char* text : {"inf", "-Inf", "Infinity", "+inf", "1e999", "-1e400"})
    EXPECT_EQ(kind(text), Cell::infinite) << text;
  for (const char* text : {"abc", "1.2.3", "1,5", "0x10", "1e", "--1", "+-1", "++1", "+", "-",
                           "1 2", "nan(1)", "1_000", "e5", "."})
    EXPECT_EQ(kind(text), Cell::text) << text;
}

TEST(Text, Utf8) {
  for (const char* good :
       {"", "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBF"})
    EXPECT_TRUE(is_utf8(good)) << good;
  // Latin-1, cut sequences, overlong forms, surrogates, beyond U+10FFFF.
  for (const char* bad : {"\xE9t\xE9", "\xC3", "\xE2\x82", "\xC0\xAF", "\xE0\x80\x80",
                          "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\x80"})
    EXPECT_FALSE(is_utf8(bad));
}

TEST(Text, ShownIsShortAndPrintable) {
  EXPECT_EQ(shown("abc"), "'abc'");
  EXPECT_EQ(shown("a\nb\xFF"), "'a\\x0ab\\xff'");
  EXPECT_LT(shown(std::string(1000000, 'x')).size(), 60U);
  EXPECT_EQ(shown_list({"a", "b", "c"}, 2), "'a', 'b' and 1 more");
}

TEST(Text, UnknownColumnNamesTheCloseOnes) {
  const auto message = unknown_column("Hieght", {"age", "height", "weight"});
  EXPECT_NE(message.find("'Hieght'"), std::string::npos);
  EXPECT_NE(message.find("did you mean 'height'?"), std::string::npos) << message;
  EXPECT_NE(message.find("'age', 'height', 'weight'"), std::string::npos);
  EXPECT_EQ(unknown_column("zzz", {"age"}).find("did you mean"), std::string::npos);
}

}  // namespace text_test
}  // namespace mercer::data
