#include "cli/console.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/format.hpp"
#include "cli/option_list.hpp"
#include "cli/signals.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

bool bar_on_screen = false;

bool set_in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
  return known ? size.ws_col : 80;
}

// What the library calls a stage, as a user reads it.
std::string_view in_words(std::string_view stage) {
  constexpr std::array<std::array<std::string_view, 2>, 10> names = {{
      {"learn", "learning"},
      {"learn (start)", "learning, on some of the rows"},
      {"learn (fewer rows)", "learning, on fewer rows"},
      {"learn (all rows)", "learning, on all rows"},
      {"learn (curvature)", "learning, curvature"},
      {"learn (surrogate)", "learning, by neighbours"},
      {"solve", "solving"},
      {"likelihood", "log likelihood of all rows"},
      {"predict", "predicting"},
      {"check variances", "checking variances"},
  }};
  for (const auto& [name, text] : names)
    if (name == stage) return text;
  return stage;
}

/// Keeps the time of the present stage and draws it now and then.
class Display {
 public:
  explicit Display(std::string name)
      : name_(std::move(name)), bar_(terminal()), colour_(!set_in_environment("NO_COLOR")) {}

  void show(const Progress& progress) {
    if (progress.stage.empty()) return;  // nothing was begun yet
    // All of learning is one stage to whoever waits, with one clock: its fraction is of all of it.
    const bool fresh = progress.stage != stage_ && !(learns(stage_) && learns(progress.stage));
    if (fresh) stage_time_ = Timer();
    stage_ = progress.stage;
    const double pause = bar_ ? 0.1 : 5.0;
    if (!fresh && since_last_.seconds() < pause) return;
    since_last_ = Timer();
    if (bar_)
      draw(progress);
    else
      print_error(fmt::format("{}: {}\n", name_, line(progress)));
  }

 private:
  static bool learns(const std::string& stage) { return stage.starts_with("learn"); }

  // "learning 43 %, about 12 s left in all, step 7".
  std::string line(const Progress& progress) const {
    std::string text(in_words(progress.stage));
    const double elapsed = stage_time_.seconds();
    if (progress.fraction >= 0) text += fmt::format(" {:.0f} %", 100 * progress.fraction);
    const bool after = learns(progress.stage) && progress.seconds_after > 0;
    if (progress.fraction > 0.01 && progress.fraction < 1 && elapsed > 0.5)
      text += fmt::format(", about {} left{}",
                          duration(elapsed * (1 - progress.fraction) / progress.fraction +
                                   (after ? progress.seconds_after : 0)),
                          after ? " in all" : "");
    else if (elapsed > 1)
      text += fmt::format(", {} so far", duration(elapsed));
    if (!progress.detail.empty()) text += ", " + progress.detail;
    return text;
  }

  void draw(const Progress& progress) const {
    constexpr int cells = 24;
    std::string bar;
    if (progress.fraction >= 0) {
      const int filled = std::clamp(static_cast<int>(cells * progress.fraction), 0, cells);
      bar = fmt::format("[{}{}] ", std::string(static_cast<std::size_t>(filled), '#'),
                        std::string(static_cast<std::size_t>(cells - filled), '.'));
    }
    std::string text = line(progress);
    const std::size_t room = terminal_width() - 1;
    text.resize(std::min(text.size(), room - std::min(room, bar.size())));
    const char* on = colour_ ? "\033[36m" : "";
    const char* off = colour_ ? "\033[0m" : "";
    print_error(fmt::format("\r\033[K{}{}{}{}", on, bar, off, text));
    bar_on_screen = true;
  }

  std::string name_;
  bool bar_;
  bool colour_;
  std::string stage_;
  Timer stage_time_;
  Timer since_last_;
};

}  // namespace

void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::clearerr(stderr);
}

void clear_progress_line() {
  if (!bar_on_screen) return;
  print_error("\r\033[K");
  bar_on_screen = false;
}

Console::Console(std::string_view verb, bool quiet)
    : name_(fmt::format("mercer {}", verb)), quiet_(quiet) {}

void Console::note(std::string_view text) const {
  if (!quiet_) warn(text);
}

void Console::warn(std::string_view text) const {
  clear_progress_line();
  print_error(data::printable(fmt::format("{}: {}", name_, with_dashes(text))) + "\n");
}

ProgressCallback Console::progress() const {
  std::shared_ptr<Display> display;
  if (!quiet_) display = std::make_shared<Display>(name_);
  return [display, console = *this](const Progress& progress) {
    if (!progress.warning.empty()) console.warn(progress.warning);
    if (display) display->show(progress);
    return leaving() != 0 ? Action::stop : Action::proceed;
  };
}

}  // namespace mercer::cli
