#include "mercer/data/read_ahead.hpp"

#include <utility>

namespace mercer::data {

ReadAhead::ReadAhead(RowSource& source) : source_(source) { start(); }

void ReadAhead::start() {
  reading_.start([this] { there_ = source_.next(coming_); });
}

bool ReadAhead::next(RowBlock& block) {
  reading_.wait();
  std::swap(block, coming_);
  if (!there_) return false;
  start();
  return true;
}

}  // namespace mercer::data
