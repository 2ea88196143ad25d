#include "mercer/core/rng.hpp"

#include <Random123/philox.h>

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <numeric>

#include "mercer/core/error.hpp"

namespace mercer {
namespace {

#ifdef MERCER_SHIFT_SEEDS
// Only in the build of scripts/seeds, which runs the same tests with other random numbers.
std::uint64_t seed_shift() {
  static const char* value = std::getenv("MERCER_SEED_SHIFT");
  static const std::uint64_t shift = value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
  return shift * 0x9e3779b97f4a7c15ULL;
}
#else
constexpr std::uint64_t seed_shift() { return 0; }
#endif

// FNV-1a of the purpose, mixed with the seed (splitmix64 finaliser).
std::uint64_t stream_key(std::uint64_t seed, std::string_view purpose) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : purpose) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  h ^= seed + 0x9e3779b97f4a7c15ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

}  // namespace

Rng::Rng(std::uint64_t seed, std::string_view purpose, std::uint64_t index)
    : key_(stream_key(seed ^ seed_shift(), purpose)), index_(index) {}

void Rng::refill() {
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32),
       static_cast<std::uint32_t>(index_), static_cast<std::uint32_t>(index_ >> 32)}};
  const r123::Philox4x32::key_type key = {
      {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)}};
  const auto block = r123::Philox4x32()(counter, key);
  for (int i = 0; i < 4; ++i) block_[i] = block[static_cast<std::size_t>(i)];
  ++counter_;
  used_ = 0;
}

std::uint32_t Rng::bits32() {
  if (used_ == 4) refill();
  return block_[used_++];
}

std::uint64_t Rng::bits64() {
  const std::uint64_t high = bits32();
  return (high << 32) | bits32();
}

double Rng::uniform() { return (static_cast<double>(bits64() >> 11) + 0.5) * 0x1.0p-53; }

double Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  // Box-Muller: two uniforms give two independent normals.
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

double Rng::sign() { return (bits32() & 1U) != 0U ? 1.0 : -1.0; }

Index Rng::index(Index n) {
  if (n <= 0) throw InvalidArgument("Rng::index: n must be positive");
  const auto range = static_cast<std::uint64_t>(n);
  const std::uint64_t limit = range * (UINT64_MAX / range);
  for (;;) {
    const std::uint64_t draw = bits64();
    if (draw < limit) return static_cast<Index>(draw % range);
  }
}

void Rng::fill_normal(MatrixView out) {
  for (Index j = 0; j < out.cols(); ++j)
    for (Index i = 0; i < out.rows(); ++i) out(i, j) = normal();
}

void Rng::fill_uniform(MatrixView out) {
  for (Index j = 0; j < out.cols(); ++j)
    for (Index i = 0; i < out.rows(); ++i) out(i, j) = uniform();
}

void Rng::fill_rademacher(MatrixView out) {
  for (Index j = 0; j < out.cols(); ++j)
    for (Index i = 0; i < out.rows(); ++i) out(i, j) = sign();
}

void Rng::move_to(std::uint64_t position) {
  counter_ = position / 4;
  used_ = 4;
  if (position % 4 == 0) return;
  refill();
  used_ = static_cast<int>(position % 4);
}

// Two normals take two uniforms, four numbers of 32 bits.
void Rng::skip_normals(Index count) {
  if (count > 0 && has_spare_) {
    has_spare_ = false;
    --count;
  }
  move_to(position() + 4 * static_cast<std::uint64_t>(count / 2));
  if (count % 2 != 0) normal();
}

void Rng::fill_normal_rows(MatrixView out, Index first, Index rows) {
  for (Index j = 0; j < out.cols(); ++j) {
    skip_normals(first);
    for (Index i = 0; i < out.rows(); ++i) out(i, j) = normal();
    skip_normals(rows - first - out.rows());
  }
}

void Rng::fill_rademacher_rows(MatrixView out, Index first, Index rows) {
  for (Index j = 0; j < out.cols(); ++j) {
    move_to(position() + static_cast<std::uint64_t>(first));
    for (Index i = 0; i < out.rows(); ++i) out(i, j) = sign();
    move_to(position() + static_cast<std::uint64_t>(rows - first - out.rows()));
  }
}

std::vector<Index> Rng::permutation(Index n) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  for (Index i = n - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(index(i + 1))]);
  return order;
}

}  // namespace mercer
