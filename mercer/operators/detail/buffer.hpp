// Uninitialised memory aligned to cache lines, for tiles.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace mercer::operators::detail {

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::ptrdiff_t count)
      : data_(static_cast<T*>(
            ::operator new (static_cast<std::size_t>(count) * sizeof(T), std::align_val_t{64}))) {}
  T* data() const { return data_.get(); }
  T& operator[](std::ptrdiff_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<T[], Free> data_;
};

}  // namespace mercer::operators::detail
