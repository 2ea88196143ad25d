#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "cli/config_file.hpp"
#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/option_list.hpp"
#include "cli/suggest.hpp"

namespace mercer::cli {
namespace {

constexpr int kHelpColumn = 32;

class HelpPage : public CLI::Formatter {
 public:
  HelpPage() { column_width(kHelpColumn); }
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

// Lines that fit beside the column of flags, which the help page indents itself.
std::string help_lines(const std::string& text) {
  const std::string indent = "\n" + std::string(kHelpColumn, ' ');
  std::string whole = with_dashes(text);
  // A default stays on one line.
  constexpr char kept_blank = '\1';
  if (const auto at = whole.rfind("[default: "); at != std::string::npos && whole.size() - at < 60)
    std::replace(whole.begin() + static_cast<std::ptrdiff_t>(at), whole.end(), ' ', kept_blank);
  std::string lines = wrapped(whole, kHelpColumn);
  std::replace(lines.begin(), lines.end(), kept_blank, ' ');
  for (auto at = lines.find(indent); at != std::string::npos; at = lines.find(indent, at))
    lines.erase(++at, kHelpColumn);
  return lines;
}

// Options that have a letter as well.
const std::map<std::string, std::string>& letters() {
  static const std::map<std::string, std::string> all = {{"output", "-o,"}, {"model", "-m,"}};
  return all;
}

struct Given {
  std::size_t option = 0;
  std::vector<std::string> words;
  bool on = true;  // a flag
};

}  // namespace

bool Pick::takes(std::string_view name) const {
  const auto has = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return only.empty() ? !has(without) : has(only);
}

struct Arguments::Impl {
  CLI::App app;
  std::string group_title = "Options";
  std::string appendices;
  std::vector<Option> options;
  std::vector<Given> words;
  std::set<std::string, std::less<>> given;
  ConfigOptions config;
  Json record = Json::object();
  std::vector<std::string> notes;

  void add_flag(const std::string& flag, std::size_t place, bool on, const std::string& help) {
    app.add_flag_callback(
           flag,
           [this, place, on] {
             words.push_back({place, {}, on});
           },
           help)
        ->group(help.empty() ? "" : group_title)
        ->disable_flag_override();
  }

  void add_option(const std::string& flags, std::size_t place, const Option& option) {
    CLI::Option* made = nullptr;
    if (option.is_list) {
      made = app.add_option_function<std::vector<std::string>>(
          flags,
          [this, place](const std::vector<std::string>& texts) {
            words.push_back({place, texts});
          },
          help_lines(option.text()));
      made->take_all()->allow_extra_args(false);
    } else {
      made = app.add_option_function<std::string>(
          flags,
          [this, place](const std::string& text) {
            words.push_back({place, {text}});
          },
          help_lines(option.text()));
    }
    made->option_text(option.word)->group(group_title);
  }

  // Values of the file, then those of the words.
  void fill() {
    for (const auto& word : words)
      if (options[word.option].name == "config") options[word.option].take(word.words);
    if (!config.config.empty()) {
      auto read = read_config(config.config, app.get_name(), options);
      given.merge(read.given);
      notes = std::move(read.notes);
    }
    for (const auto& word : words) {
      const auto& option = options[word.option];
      given.insert(option.name);
      for (const auto& other : words)
        if (option.is_flag && other.option == word.option && other.on != word.on)
          throw InvalidArgument(
              fmt::format("{} and its opposite are both given; leave one out", option.flag()));
      if (option.is_flag)
        option.set(word.on);
      else
        option.take(word.words);
      if (!option.choices.empty() && !option.open) check_choices(option);
    }
    for (const auto& option : options)
      if (option.affects != Affects::nothing) record[option.name] = option.json();
  }

  static void check_choices(const Option& option) {
    const Json value = option.json();
    for (const auto& name : value.is_array() ? value : Json::array({value}))
      require_choice(option.flag(), name.get<std::string>(), option.choices);
  }

  std::vector<std::string> option_names() const {
    std::vector<std::string> names;
    for (const auto* option : app.get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    return names;
  }

  // An option without its value, with one that it does not take, or given twice. The parser's own
  // sentence begins with the name of the option.
  [[noreturn]] void mismatch(const std::string& sentence) const {
    std::string name = sentence.substr(0, sentence.find_first_of(": "));
    if (!name.starts_with("-")) name = "--" + name;
    const CLI::Option* option = app.get_option_no_throw(name);
    std::string fault = "has too few or too many values";
    if (option != nullptr && option->get_expected_max() == 0)
      fault = "takes no value";
    else if (option != nullptr && option->count() > 1)
      fault = fmt::format("is given {} times; give it once", option->count());
    else if (option != nullptr)
      fault = fmt::format("needs a value: {} {}", name, option->get_option_text());
    throw InvalidArgument(fmt::format("{} {}; see mercer {} --help", name, fault, app.get_name()));
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

void Arguments::add(Option option) {
  auto& options = impl_->options;
  for (const auto& other : options)
    if (other.value == option.value) return;
  const std::size_t place = options.size();
  const auto letter = letters().find(option.name);
  const std::string flags = (letter == letters().end() ? "" : letter->second) + option.flag();
  if (option.is_flag) {
    impl_->add_flag(flags, place, !option.on_by_default, help_lines(option.text()));
    // The other way round, for what a configuration file has set; not on the help page.
    if (option.affects != Affects::nothing) {
      Option other = option;
      other.on_by_default = !option.on_by_default;
      impl_->add_flag(other.flag(), place, option.on_by_default, "");
    }
  } else {
    impl_->add_option(flags, place, option);
  }
  options.push_back(std::move(option));
}

void Arguments::add_config() { add(impl_->config); }

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
  } catch (const CLI::ArgumentMismatch& error) {
    impl_->mismatch(error.what());
  } catch (const CLI::ParseError& error) {
    throw InvalidArgument(fmt::format("{}; see mercer {} --help", error.what(), app.get_name()));
  }
  if (const auto extras = app.remaining(); !extras.empty()) impl_->unexpected(extras);
  impl_->fill();
  return true;
}

bool Arguments::given(std::string_view name) const { return impl_->given.contains(name); }

const Json& Arguments::record() const { return impl_->record; }

const std::vector<std::string>& Arguments::notes() const { return impl_->notes; }

}  // namespace mercer::cli
