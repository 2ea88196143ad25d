// The next block of a source is read while the last one is worked on.
//   Cost: one more block in memory. The blocks are those of the source, in their order.
#pragma once

#include "mercer/core/background.hpp"
#include "mercer/data/row_source.hpp"

namespace mercer::data {

class ReadAhead {
 public:
  /// Goes on from where the source is, which must outlive this and is not to be used meanwhile.
  explicit ReadAhead(RowSource& source);

  /// As RowSource::next.
  bool next(RowBlock& block);

 private:
  void start();

  RowSource& source_;
  RowBlock coming_;
  bool there_ = false;
  Background reading_;  // last: it ends before what it writes to is gone
};

}  // namespace mercer::data
