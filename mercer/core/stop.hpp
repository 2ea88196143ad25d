// Ending long work from outside: between two tiles of a product, two tiles of a factorisation, two
// tasks of any parallel loop. The call then throws Interrupted, and what it was computing is gone;
// the objects that it worked on remain usable.
//
//   std::atomic<bool> enough{false};           // set by another thread
//   const StopScope scope([&] { return enough.load(); });
//   k.apply(x, y);                             // throws Interrupted soon after
//
// A scope belongs to the thread that made it, so callers in several threads do not disturb each
// other. models::fit, predict and their kind make one from their progress callback (progress.hpp).
//   Cost: one look at the clock a task; the question itself is asked a few times a second.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

/// How often a scope asks, unless told otherwise.
inline constexpr double kSecondsBetweenQuestions = 0.05;

/// While it lives, long work that this thread calls for asks `wanted` now and then, between tiles,
/// and ends by Interrupted when the answer is true. Only this thread asks, never two at once.
/// Scopes nest: work inside ends when any of them says so.
class StopScope {
 public:
  explicit StopScope(std::function<bool()> wanted,
                     double seconds_between = kSecondsBetweenQuestions);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// Whether this scope, or one around it, wants the work to end. `now`: asks even when the last
  /// question was a moment ago.
  bool stops(bool now = false);

 private:
  std::function<bool()> wanted_;
  std::chrono::steady_clock::duration pause_;
  std::chrono::steady_clock::time_point next_;
  bool asking_ = false;  // a question is not asked inside itself
  StopScope* outer_;
};

/// Whether the work of this thread is to end: asked between tiles. `now` as above, for loops that
/// wait for something outside.
bool stop_requested(bool now = false);
/// Throws Interrupted ("interrupted while factoring a matrix") when it is.
void stop_if_requested(std::string_view doing);

/// Whether this thread is answering such a question. Buffers of the interrupted computation are in
/// use then: parallel_for refuses to compute.
bool inside_question();

/// While it lives, work of this thread is not cancelled: for short changes to an object that are
/// made whole or not at all.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

/// For parallel_for: the work of this thread is part of a loop of another one, which sets `over`
/// once the loop is to end.
class LoopMember {
 public:
  explicit LoopMember(const std::atomic<bool>& over);
  ~LoopMember();
  LoopMember(const LoopMember&) = delete;
  LoopMember& operator=(const LoopMember&) = delete;

 private:
  const std::atomic<bool>* outer_;
};

}  // namespace mercer
MERCER_API_END
