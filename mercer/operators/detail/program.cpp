#include "mercer/operators/detail/program.hpp"

#include <algorithm>
#include <numeric>

namespace mercer::operators::detail {
namespace {

using kernels::Node;
using simd::Write;

class Compiler {
 public:
  explicit Compiler(Program& program) : p_(program) {
    SourceSpec all;
    all.inputs.resize(static_cast<std::size_t>(program.num_inputs));
    std::iota(all.inputs.begin(), all.inputs.end(), Index{0});
    p_.sources.push_back(std::move(all));
  }

  // Adds the nodes below `node` and itself; returns its index.
  int add_node(const Node& node) {
    ProgramNode out;
    out.kind = node.kind;
    if (node.kind == Node::Kind::scale) {
      out.variance = node.variance;
      out.parameter = p_.num_parameters++;
    }
    if (node.kind == Node::Kind::leaf) out.leaf = add_leaf(node.leaf);
    for (const auto& child : node.children) out.children.push_back(add_node(child));
    p_.nodes.push_back(std::move(out));
    return static_cast<int>(p_.nodes.size()) - 1;
  }

  // strip `to` (write)= factor * node; strips above `to` are free.
  void emit(int index, int to, Write write, double factor) {
    const ProgramNode node = p_.nodes[static_cast<std::size_t>(index)];
    p_.num_strips = std::max(p_.num_strips, to + 1);
    switch (node.kind) {
      case Node::Kind::leaf:
        p_.instructions.push_back({node.leaf, 0, to, write, factor});
        return;
      case Node::Kind::scale:
        return emit(node.children[0], to, write, factor * node.variance);
      case Node::Kind::sum:
        if (write == Write::multiply) return emit_apart(index, to, write, factor);
        for (std::size_t i = 0; i < node.children.size(); ++i)
          emit(node.children[i], to, i == 0 ? write : Write::add, factor);
        return;
      case Node::Kind::product:
        if (write == Write::add) return emit_apart(index, to, write, factor);
        for (std::size_t i = 0; i < node.children.size(); ++i)
          emit(node.children[i], to, i == 0 ? write : Write::multiply, i == 0 ? factor : 1.0);
        return;
    }
  }

 private:
  int add_leaf(const kernels::Leaf& leaf) {
    ProgramLeaf out;
    out.profile = {leaf.kind, leaf.own()};
    out.info = &leaf.info();
    out.family = out.info->family;
    out.inputs = leaf.inputs;
    out.num_lengthscales = static_cast<Index>(leaf.lengthscales.size());
    out.has_shape = out.info->has_shape();
    out.first_parameter = p_.num_parameters;
    p_.num_parameters += leaf.num_parameters();
    if (out.family != kernels::Family::constant) {
      out.source = out.input_source = plain_source(leaf.inputs);
      if (out.info->inputs == kernels::InputMap::circle) {
        out.source = static_cast<int>(p_.sources.size());
        p_.sources.push_back({leaf.inputs, true, leaf.shape});
      }
      const Index features = p_.source_features(out.source);
      for (Index f = 0; f < features; ++f) {
        out.scale.push_back(1.0 / leaf.lengthscale(f % leaf.num_inputs()));
        out.lengthscale_of.push_back(leaf.lengthscale_index(f % leaf.num_inputs()));
      }
    }
    p_.leaves.push_back(std::move(out));
    return static_cast<int>(p_.leaves.size()) - 1;
  }

  // Leaves that see the same inputs share them.
  int plain_source(const std::vector<Index>& inputs) {
    for (std::size_t s = 0; s < p_.sources.size(); ++s)
      if (!p_.sources[s].circle && p_.sources[s].inputs == inputs) return static_cast<int>(s);
    p_.sources.push_back({inputs, false, 0.0});
    return static_cast<int>(p_.sources.size()) - 1;
  }

  void emit_apart(int index, int to, Write write, double factor) {
    emit(index, to + 1, Write::store, 1.0);
    p_.instructions.push_back({-1, to + 1, to, write, factor});
  }

  Program& p_;
};

}  // namespace

Program::Program(const kernels::Kernel& kernel) : num_inputs(kernel.num_inputs()) {
  Compiler compiler(*this);
  int root = compiler.add_node(kernel.root());
  while (nodes[static_cast<std::size_t>(root)].kind == Node::Kind::scale) {
    outer_factor *= nodes[static_cast<std::size_t>(root)].variance;
    root = nodes[static_cast<std::size_t>(root)].children[0];
  }
  compiler.emit(root, 0, Write::store, 1.0);
}

}  // namespace mercer::operators::detail
