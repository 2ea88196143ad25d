#include "mercer/core/interrupt.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "mercer/core/error.hpp"

namespace mercer {
namespace interrupt_test {

TEST(Interrupt, ASignalSetsTheFlag) {
  for (const int signal : {SIGINT, SIGTERM}) {
    clear_interrupt();
    catch_interrupts();
    EXPECT_FALSE(interrupt_requested());
    std::raise(signal);
    EXPECT_TRUE(interrupt_requested());
  }
  clear_interrupt();
  EXPECT_FALSE(interrupt_requested());
}

TEST(Interrupt, CanBeAskedForWithoutASignal) {
  clear_interrupt();
  request_interrupt();
  EXPECT_TRUE(interrupt_requested());
  clear_interrupt();
}

TEST(Interrupt, LoopsWithoutAnObserverStopByException) {
  clear_interrupt();
  EXPECT_NO_THROW(stop_if_interrupted("counting"));
  request_interrupt();
  EXPECT_THROW(stop_if_interrupted("counting"), Interrupted);
  clear_interrupt();
}

TEST(InterruptDeathTest, TheSecondSignalEndsTheProgram) {
  EXPECT_EXIT(
      {
        clear_interrupt();
        catch_interrupts();
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
}

}  // namespace interrupt_test
}  // namespace mercer
