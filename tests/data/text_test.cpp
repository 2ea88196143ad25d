#include "mercer/data/text.hpp"

#include <gtest/gtest.h>

#include "tests/data/files.hpp"

namespace mercer::data {
namespace text_test {

TEST(Text, NothingSteersATerminal) {
  EXPECT_EQ(printable("\x1b[31mred\x7f\a"), "\\x1b[31mred\\x7f\\x07");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\x0ab\\x09c\\x0dd");
  EXPECT_EQ(printable("a\nb\tc\rd", Plain::lines), "a\nb\tc\\x0dd");
  EXPECT_EQ(printable("\xC2\x9B"
                      "1m \x9B"
                      "2m"),
            "\\x9b1m \\x9b2m");  // CSI in UTF-8 and in eight bits
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "abc\xE2\x81\xA6"),
            "\\u202eabc\\u2066");
  EXPECT_EQ(printable("\x7f\xC2\x9B\n", Plain::json), "\\u007f\\u009b\n");
  const std::string letters =
      "stra\xC3\x9F"
      "e \xE6\x97\xA5 \xF0\x9F\x98\x80 \xC2\xB0";
  EXPECT_EQ(printable(letters), letters);
  EXPECT_EQ(shown("\xC2\x9B"
                  "1m"),
            "'\\x9b1m'");
}

TEST(Text, NamesAsOptionsTakeThem) {
  EXPECT_EQ(joined_names({"a", "b c"}), "a,b c");
  EXPECT_EQ(joined_names({"a,b", "c"}), "\"a,b\",c");
  EXPECT_EQ(joined_names({"\"q\""}), "\"\"\"q\"\"\"");
}

TEST(Text, DatesAreDaysSince1970) {
  EXPECT_EQ(parse_date("1970-01-01"), 0);
  EXPECT_EQ(parse_date("1970/01/02"), 1);
  EXPECT_EQ(parse_date("1969-12-31"), -1);
  EXPECT_EQ(parse_date(" 2000-02-29 "), 11016);  // date -d 2000-02-29 +%s / 86400
  EXPECT_EQ(parse_date("2010-05-31"), 14760);
  EXPECT_EQ(parse_date("1600-03-01"), -135080);
  EXPECT_EQ(parse_date("1970-01-01T12:00"), 0.5);
  EXPECT_EQ(parse_date("1970-01-01 12:00:00Z"), 0.5);
  EXPECT_EQ(parse_date("1970-01-01T12:00:00.5"), 43200.5 / 86400);
  EXPECT_EQ(parse_date("1970-01-01T12:00+06:00"), 0.25);
  EXPECT_EQ(parse_date("1970-01-01T12:00-0600"), 0.75);
  for (const char* bad : {"", "2010", "2010-13-01", "2010-02-30", "1900-02-29", "2010-05-31T",
                          "2010-05-31T24:00", "2010-05-31T12:60", "2010-05-31 12:30:60",
                          "2010-05-31x", "2010-05/31", "20100531", "2010-05", "31-05-2010",
                          "05/06/2010", "2010-00-01", "2010-01-00", "2010-05-31T12:30+25:00"})
    EXPECT_FALSE(parse_date(bad)) << bad;
  EXPECT_TRUE(is_ambiguous_date("05/06/2010"));
  EXPECT_TRUE(is_ambiguous_date("31.12.10"));
  EXPECT_FALSE(is_ambiguous_date("2010-05-31"));
  testing::expect_contains(date_advice("05/06/2010"), {"'05/06/2010'", "year first", "2010-05-31"});
  testing::expect_contains(date_advice("soon"), {"'soon' is not a date", "2010/05/31"});
}

TEST(Text, NamesThatReadLikeNumbersOfRows) {
  for (const char* name : {"id", "ID", "row_id", "Index", "No", "case_nr", "Unnamed: 0"})
    EXPECT_TRUE(reads_like_id(name)) << name;
  for (const char* name : {"t", "day", "age", "number_of_rooms", "year"})
    EXPECT_FALSE(reads_like_id(name)) << name;
}

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
