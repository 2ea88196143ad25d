// A kernel expression made flat: what to evaluate into which strip, in which order.
//
//   v1 rbf + v2 linear:   strip0  = v1 rbf        (leaf, store)
//                         strip0 += v2 linear     (leaf, add)
//   rbf (rq + periodic):  strip0  = rbf; strip1 = rq; strip1 += periodic; strip0 *= strip1
//
// A factor in front of everything is applied to the finished product instead of each entry.
#pragma once

#include <vector>

#include "mercer/kernels/kernel.hpp"
#include "mercer/operators/simd/tile_kernels.hpp"

namespace mercer::operators::detail {

/// The arrays that leaves read: some inputs themselves, or the circle map of each (cosines of all
/// of them, then sines) for one period.
struct SourceSpec {
  std::vector<Index> inputs;
  bool circle = false;
  double period = 0;
};

struct ProgramLeaf {
  simd::ProfileSpec profile;
  const kernels::LeafInfo* info = nullptr;
  kernels::Family family = kernels::Family::distance;
  int source = 0;             // of its features
  int input_source = 0;       // of its inputs as they are
  std::vector<Index> inputs;  // columns of the data that it sees
  std::vector<double> scale;  // 1/lengthscale of each feature
  Index num_lengthscales = 0;
  std::vector<Index> lengthscale_of;  // each feature
  bool has_shape = false;
  Index first_parameter = 0;

  Index num_inputs() const { return static_cast<Index>(inputs.size()); }
};

struct Instruction {
  int leaf = -1;  // evaluate this leaf, or (-1) combine strip `from`
  int from = 0;
  int to = 0;
  simd::Write write = simd::Write::store;
  double factor = 1;
};

/// The tree in post-order, for the reverse pass and for bounds.
struct ProgramNode {
  kernels::Node::Kind kind = kernels::Node::Kind::leaf;
  double variance = 1;
  Index parameter = 0;  // of a scale
  int leaf = -1;
  std::vector<int> children;
};

struct Program {
  explicit Program(const kernels::Kernel& kernel);

  Index num_inputs = 0;
  Index num_parameters = 0;
  std::vector<SourceSpec> sources;  // the first has all inputs as they are
  std::vector<ProgramLeaf> leaves;
  std::vector<ProgramNode> nodes;  // the root comes last
  std::vector<Instruction> instructions;
  int num_strips = 1;
  double outer_factor = 1;

  Index source_features(int source) const {
    const auto& spec = sources[static_cast<std::size_t>(source)];
    return (spec.circle ? 2 : 1) * static_cast<Index>(spec.inputs.size());
  }
};

}  // namespace mercer::operators::detail
