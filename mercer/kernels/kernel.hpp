// A kernel expression is a value: a small tree of leaves under sum, product and scale.
//
//   auto k = Kernel::parse("matern52 + linear:iso", 3);      // 3 input columns
//   k.parameter_names();   // signal_variance1, matern52_1.lengthscale[0], ...
//   k.set_log_parameters(theta);
//   Kernel::parse("matern32(0,1) * matern12(2)", 3);         // leaves that see some inputs only
//
// Parameters are listed in the order of a walk from the root: the variance of a scale node before
// its child; of a leaf its lengthscales (one per input, or one in all), then its shape.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/types.hpp"
#include "mercer/kernels/input_names.hpp"
#include "mercer/kernels/leaf.hpp"

MERCER_API_BEGIN
namespace mercer::kernels {

struct Node {
  enum class Kind { leaf, scale, sum, product };
  Kind kind = Kind::leaf;
  double variance = 1;            // scale: factor on its only child
  bool variance_written = false;  // the expression has its value, which start values leave
  Leaf leaf;                      // leaf
  std::vector<Node> children;     // sum and product: two or more; scale: one

  Index num_parameters() const;
};

class Kernel {
 public:
  /// Reads an expression: sums and products of leaves, numbers and parentheses. Every term of the
  /// outer sum gets a signal variance (its start value is the number in front, or 1).
  ///   leaf    = name ["(" input {"," input} ")"] {":" option}
  ///   option  = iso ["(" input {"," input} ")"] | ard | NUMBER | key=NUMBER
  /// A leaf that names inputs sees only those; here by column number, from 0.
  /// Throws InvalidArgument that points at the character.
  static Kernel parse(std::string_view text, Index num_inputs);
  /// The same with inputs by name; a name that is not there is refused with the list of names.
  static Kernel parse(std::string_view text, const InputNames& names);

  Kernel(Node root, Index num_inputs);

  Index num_inputs() const { return num_inputs_; }
  const Node& root() const { return root_; }
  /// The structure as text that `parse` reads back, given the same names of inputs (parameter
  /// values are not part of it).
  std::string text() const;
  /// True when k(x, x') depends on x - x' only, so that points may be shifted.
  bool stationary() const;

  Index num_leaves() const;
  Index num_parameters() const;
  std::vector<std::string> parameter_names() const;
  /// True for each parameter that is a lengthscale / a variance in front of a term.
  std::vector<bool> is_lengthscale() const;
  std::vector<bool> is_variance() const;
  /// Raises lower and lowers upper bounds of the log parameters to the limits that leaves state;
  /// both begin with the kernel's parameters and may go on with others.
  void narrow_to_limits(VectorView lower, VectorView upper) const;
  Vector log_parameters() const;
  void set_log_parameters(ConstVectorView theta);

  /// One lengthscale for these inputs in every leaf that sees two or more of them; `names` are what
  /// an expression calls them. False when no leaf does.
  bool share_lengthscale(const std::vector<Index>& columns, const std::vector<std::string>& names);

  /// Every lengthscale (variance) of the tree := value.
  void set_all_lengthscales(double value);
  void set_all_variances(double value);
  /// Whether the expression has a value of a lengthscale.
  bool writes_lengthscale() const;
  /// The same, but values that the expression has stay.
  void set_unwritten_lengthscales(double value);
  void set_unwritten_variances(double value);
  /// The values of the options `lengthscale` (none, one, or one per input) and `signal_variance`.
  /// Throws InvalidArgument when the expression has values of its own there, or no such parameter.
  void set_given(const std::vector<double>& lengthscale, std::optional<double> signal_variance);
  /// Start values from data: variances that still are 1 become `variance`, lengthscales that still
  /// are 1 become those of `lengthscales` (one per input; inputs that share one take the root mean
  /// square), which are sqrt(num_inputs) times a spread; a leaf that sees d inputs takes sqrt(d)
  /// times the spread. Values written in the expression stay, a 1 too.
  void scale_start_values(double variance, const std::vector<double>& lengthscales);
  /// One value per input for every ARD leaf; throws when the sizes differ.
  void set_lengthscales(const std::vector<double>& values);

  /// Reference evaluation of one pair (pointers to num_inputs values with the given strides), in
  /// plain double arithmetic: tests and small work only. Bit-symmetric in its arguments.
  double evaluate(const double* a, Index stride_a, const double* b, Index stride_b) const;
  /// The same, and its derivative in each log parameter.
  double evaluate_with_gradient(const double* a, Index stride_a, const double* b, Index stride_b,
                                VectorView gradient) const;

  /// k(x_i, x_i) for the rows of x.
  Vector diagonal(ConstMatrixView x) const;
  /// Reference matrix k(a_i, b_j), pair by pair; operators/ has the fast one.
  Matrix reference_matrix(ConstMatrixView a, ConstMatrixView b) const;

 private:
  Node root_;
  Index num_inputs_;
};

}  // namespace mercer::kernels
MERCER_API_END
