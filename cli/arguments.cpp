#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "cli/exit_code.hpp"
#include "cli/suggest.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"

namespace mercer::cli {
namespace {

template <class T>
constexpr std::string_view kind_of_number() {
  if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else if constexpr (std::is_unsigned_v<T>)
    return "a whole number of 0 or more";
  else
    return "a whole number";
}

template <class T>
T parse_number(const std::string& name, std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const char* first = text.starts_with('+') ? text.data() + 1 : text.data();
  const auto [rest, error] = std::from_chars(first, end, value);
  if (error == std::errc::result_out_of_range)
    throw InvalidArgument(fmt::format("{}: '{}' is out of range", name, text));
  if (error != std::errc{} || rest != end)
    throw InvalidArgument(fmt::format("{}: '{}' is not {}", name, text, kind_of_number<T>()));
  return value;
}

std::vector<std::string> split_at_commas(const std::string& name, const std::string& text) {
  std::vector<std::string> parts;
  std::size_t first = 0;
  while (true) {
    const std::size_t comma = text.find(',', first);
    parts.push_back(text.substr(first, comma - first));
    if (parts.back().empty())
      throw InvalidArgument(fmt::format("{}: '{}' has an empty part between commas", name, text));
    if (comma == std::string::npos) return parts;
    first = comma + 1;
  }
}

// The name that messages use: the long one.
std::string long_name(const std::string& names) {
  const auto place = names.find("--");
  return place == std::string::npos ? names : names.substr(place, names.find(',', place) - place);
}

class HelpPage : public CLI::Formatter {
 public:
  HelpPage() { column_width(32); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_option_text().empty() ? "" : " " + option->get_option_text();
  }
  std::string make_usage(const CLI::App* app, std::string) const override {
    std::string text = fmt::format("\nUsage: mercer {}", app->get_name());
    for (const auto* option : app->get_options())
      if (option->get_positional()) text += " " + option->get_name(true, false);
    return text + " [options]\n\n";
  }
  std::string make_group(std::string title, bool positional,
                         std::vector<const CLI::Option*> options) const override {
    std::string text = (positional ? "Arguments" : title) + ":\n";
    for (const auto* option : options) text += make_option(option, positional);
    return positional ? text + "\n" : text;
  }
};

}  // namespace

struct Arguments::Impl {
  CLI::App app;
  std::string group_title = "Options";
  std::string appendices;

  CLI::Option* add(const std::string& names, const std::string& what, const std::string& help,
                   const std::function<void(const std::string&)>& take) {
    auto* option = app.add_option_function<std::string>(names, take, help);
    return option->option_text(what)->group(group_title);
  }

  template <class T>
  void add_number(const std::string& names, const std::string& what, T& value,
                  const std::string& help) {
    add(names, what, fmt::format("{} [default: {}]", help, value),
        [&value, name = long_name(names)](const std::string& text) {
          value = parse_number<T>(name, text);
        });
  }

  template <class T>
  void add_number(const std::string& names, const std::string& what, std::optional<T>& value,
                  const std::string& help) {
    add(names, what, help, [&value, name = long_name(names)](const std::string& text) {
      value = parse_number<T>(name, text);
    });
  }

  void add_list(const std::string& names, const std::string& what, const std::string& help,
                std::function<void(const std::string&)> take) {
    auto* option = app.add_option_function<std::vector<std::string>>(
        names,
        [take = std::move(take), name = long_name(names)](const std::vector<std::string>& texts) {
          for (const auto& text : texts)
            for (const auto& part : split_at_commas(name, text)) take(part);
        },
        help);
    option->take_all()->allow_extra_args(false)->option_text(what)->group(group_title);
  }

  std::vector<std::string> option_names() const {
    std::vector<std::string> names;
    for (const auto* option : app.get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    return names;
  }

  [[noreturn]] void unexpected(const std::vector<std::string>& extras) const {
    for (const auto& extra : extras)
      if (extra.starts_with("-") && extra != "-")
        throw InvalidArgument(fmt::format("there is no option '{}'{}; see mercer {} --help", extra,
                                          did_you_mean(extra, option_names()), app.get_name()));
    throw InvalidArgument(fmt::format("'{}' is one word too many; see mercer {} --help",
                                      extras.empty() ? "" : extras.front(), app.get_name()));
  }
};

Arguments::Arguments(const std::string& verb, const std::string& example,
                     const std::string& summary)
    : impl_(std::make_unique<Impl>()) {
  auto& app = impl_->app;
  app.name(verb);
  app.description(fmt::format("Example:\n{}\n\n{}", example, summary));
  app.formatter(std::make_shared<HelpPage>());
  app.set_help_flag("-h,--help", "show this page");
  app.allow_extras();
}

Arguments::~Arguments() = default;

void Arguments::positional(const std::string& name, std::string& value, const std::string& help) {
  impl_->app.add_option(name, value, help)->required();
}

void Arguments::group(const std::string& title) { impl_->group_title = title; }

void Arguments::flag(const std::string& names, bool& value, const std::string& help) {
  impl_->app
      .add_flag_callback(
          names, [&value] { value = true; }, help)
      ->group(impl_->group_title);
}

void Arguments::option(const std::string& names, const std::string& what, std::string& value,
                       const std::string& help) {
  const auto shown = value.empty() ? help : fmt::format("{} [default: {}]", help, value);
  impl_->add(names, what, shown, [&value, name = long_name(names)](const std::string& text) {
    if (text.empty()) throw InvalidArgument(fmt::format("{} is empty", name));
    value = text;
  });
}

void Arguments::option(const std::string& names, const std::string& what, double& value,
                       const std::string& help) {
  impl_->add_number(names, what, value, help);
}
void Arguments::option(const std::string& names, const std::string& what, int& value,
                       const std::string& help) {
  impl_->add_number(names, what, value, help);
}
void Arguments::option(const std::string& names, const std::string& what, std::uint64_t& value,
                       const std::string& help) {
  impl_->add_number(names, what, value, help);
}
void Arguments::option(const std::string& names, const std::string& what,
                       std::optional<double>& value, const std::string& help) {
  impl_->add_number(names, what, value, help);
}
void Arguments::option(const std::string& names, const std::string& what,
                       std::optional<Index>& value, const std::string& help) {
  impl_->add_number(names, what, value, help);
}
void Arguments::option(const std::string& names, const std::string& what, std::optional<int>& value,
                       const std::string& help) {
  impl_->add_number(names, what, value, help);
}
void Arguments::option(const std::string& names, const std::string& what,
                       std::optional<std::uint64_t>& value, const std::string& help) {
  impl_->add_number(names, what, value, help);
}

void Arguments::bytes(const std::string& names, std::optional<std::uint64_t>& value,
                      const std::string& help) {
  impl_->add(names, "SIZE", help, [&value, name = long_name(names)](const std::string& text) {
    try {
      value = parse_bytes(text);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", name, error.what()));
    }
  });
}

void Arguments::list(const std::string& names, const std::string& what,
                     std::vector<std::string>& values, const std::string& help) {
  impl_->add_list(names, what, help,
                  [&values](const std::string& part) { values.push_back(part); });
}

void Arguments::list(const std::string& names, const std::string& what, std::vector<double>& values,
                     const std::string& help) {
  impl_->add_list(names, what, help, [&values, name = long_name(names)](const std::string& part) {
    values.push_back(parse_number<double>(name, part));
  });
}

void Arguments::appendix(const std::string& title, const std::string& text) {
  impl_->appendices += fmt::format("{}:\n{}", title, text);
}

bool Arguments::parse(const std::vector<std::string>& words) {
  auto& app = impl_->app;
  if (!impl_->appendices.empty()) app.footer(impl_->appendices);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    print_out(app.help());
    return false;
  } catch (const CLI::RequiredError&) {
    // A mistyped option explains a missing word better than the word itself.
    if (const auto extras = app.remaining(); !extras.empty()) impl_->unexpected(extras);
    std::string missing;
    for (const auto* option : app.get_options())
      if (option->get_required() && option->count() == 0)
        missing += (missing.empty() ? "" : " and ") + option->get_name(true, false);
    throw InvalidArgument(
        fmt::format("{} is missing; see mercer {} --help", missing, app.get_name()));
  } catch (const CLI::ParseError& error) {
    throw InvalidArgument(fmt::format("{}; see mercer {} --help", error.what(), app.get_name()));
  }
  if (const auto extras = app.remaining(); !extras.empty()) impl_->unexpected(extras);
  return true;
}

bool Arguments::given(const std::string& name) const {
  const auto* option = impl_->app.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

}  // namespace mercer::cli
