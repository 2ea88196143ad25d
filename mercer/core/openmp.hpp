// OpenMP belongs to the program that embeds mercer: mercer does not use it. OpenBLAS of the OpenMP
// flavour does, and asks for the number of OpenMP threads in every thread that calls it.
#pragma once

namespace mercer {

/// One OpenMP thread for this thread of the program while the object lives, what it had afterwards.
/// Does nothing in a program without OpenMP.
class SerialOpenMp {
 public:
  SerialOpenMp();
  ~SerialOpenMp();
  SerialOpenMp(const SerialOpenMp&) = delete;
  SerialOpenMp& operator=(const SerialOpenMp&) = delete;

 private:
  int before_ = 1;
};

}  // namespace mercer
