#include "mercer/core/stop.hpp"

#include <memory>
#include <string>
#include <utility>

#include "mercer/core/error.hpp"

namespace mercer {
namespace {

using StopClock = std::chrono::steady_clock;

thread_local StopScope* innermost = nullptr;
thread_local const std::atomic<bool>* loop_is_over = nullptr;
thread_local int uninterrupted = 0;
thread_local int questions_asked = 0;  // one inside the other

}  // namespace

StopScope::StopScope(std::function<bool()> wanted, double seconds_between)
    : wanted_(std::move(wanted)),
      pause_(std::chrono::duration_cast<StopClock::duration>(
          std::chrono::duration<double>(seconds_between))),
      next_(StopClock::now() + pause_),
      outer_(std::exchange(innermost, this)) {}

StopScope::~StopScope() { innermost = outer_; }

bool StopScope::stops(bool now) {
  if (!asking_ && (now || StopClock::now() >= next_)) {
    // Reset on every way out: the question may throw.
    const auto answered = [](bool* asking) {
      *asking = false;
      --questions_asked;
    };
    ++questions_asked;
    const std::unique_ptr<bool, decltype(answered)> guard(&(asking_ = true), answered);
    if (wanted_ && wanted_()) return true;  // and the next question is asked at once
    next_ = StopClock::now() + pause_;
  }
  return outer_ != nullptr && outer_->stops(now);
}

bool stop_requested(bool now) {
  if (uninterrupted > 0) return false;
  if (loop_is_over != nullptr && loop_is_over->load(std::memory_order_relaxed)) return true;
  return innermost != nullptr && innermost->stops(now);
}

void stop_if_requested(std::string_view doing) {
  if (stop_requested()) throw Interrupted("interrupted while " + std::string(doing));
}

bool inside_question() { return questions_asked > 0; }

Uninterrupted::Uninterrupted() { ++uninterrupted; }
Uninterrupted::~Uninterrupted() { --uninterrupted; }

LoopMember::LoopMember(const std::atomic<bool>& over)
    : outer_(std::exchange(loop_is_over, &over)) {}

LoopMember::~LoopMember() { loop_is_over = outer_; }

}  // namespace mercer
