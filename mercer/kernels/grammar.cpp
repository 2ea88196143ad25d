// The text form of kernel expressions.
//   expression = term {"+" term}
//   term       = factor {"*" factor}
//   factor     = NUMBER | leaf | "(" expression ")"
//   leaf       = NAME ["(" input {"," input} ")"] {":" option}
//   input      = a name up to the next "," or ")", or in double quotes; a number without names
//   option     = "iso" ["(" input {"," input} ")"] | "ard" | NUMBER | KEY "=" NUMBER
// iso gives all inputs of the leaf one lengthscale, iso(x,y) gives one to x and y together.
// Every term of the outermost sum is put under a scale node (its signal variance). In a sum inside
// a product the first term stays bare, because a common factor would be counted twice.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/kernels/kernel.hpp"

namespace mercer::kernels {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxLeaves = 64;
constexpr std::size_t kMostNamesListed = 20;

// An input as an expression may write it.
std::string quoted(const std::string& name) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  if (!name.empty() && name.find_first_of(",()\"") == std::string::npos && !space(name.front()) &&
      !space(name.back()))
    return name;
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string list_of(const InputNames& names) {
  std::string all;
  for (std::size_t i = 0; i < std::min(names.entries.size(), kMostNamesListed); ++i)
    all += (i == 0 ? "" : ", ") + quoted(names.entries[i].name);
  if (names.entries.size() > kMostNamesListed)
    all += fmt::format(" and {} more", names.entries.size() - kMostNamesListed);
  return all;
}

class Parser {
 public:
  /// names: null when inputs have numbers only.
  Parser(std::string_view text, Index num_inputs, const InputNames* names)
      : text_(text), num_inputs_(num_inputs), names_(names) {}

  Node parse() {
    Node root = expression(/*outermost=*/true);
    skip_spaces();
    if (position_ != text_.size()) fail("expected '+', '*' or the end");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidArgument(
        fmt::format("kernel '{}': {} at character {}", text_, what, position_ + 1));
  }

  void skip_spaces() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }

  bool accept(char c) {
    skip_spaces();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  bool accept_ahead(char c) {
    skip_spaces();
    return position_ < text_.size() && text_[position_] == c;
  }

  bool at_number() const {
    return position_ < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[position_])) || text_[position_] == '.');
  }

  double number() {
    double value = 0;
    const char* first = text_.data() + position_;
    const auto [rest, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc{} || !(value > 0) || !std::isfinite(value))
      fail("expected a positive number");
    position_ += static_cast<std::size_t>(rest - first);
    return value;
  }

  std::string_view word() {
    const std::size_t first = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_'))
      ++position_;
    return text_.substr(first, position_ - first);
  }

  Node expression(bool outermost) {
    if (++depth_ > kMaxDepth) fail("parentheses nested too deeply");
    std::vector<Node> terms;
    do {
      terms.push_back(term(outermost || !terms.empty()));
    } while (accept('+'));
    --depth_;
    if (terms.size() == 1) return std::move(terms.front());
    Node sum;
    sum.kind = Node::Kind::sum;
    sum.children = std::move(terms);
    return sum;
  }

  // A product of factors; numbers multiply into the variance of the scale node above it.
  Node term(bool scaled) {
    double variance = 1;
    bool has_number = false;
    std::vector<Node> factors;
    do {
      skip_spaces();
      if (at_number()) {
        variance *= number();
        has_number = true;
        if (!(variance > 0) || !std::isfinite(variance)) fail("the numbers multiply out of range");
      } else {
        factors.push_back(factor());
      }
    } while (accept('*'));
    if (factors.empty()) {  // a bare number: a constant kernel of that variance
      factors.emplace_back();
      factors.back().leaf.kind = leaf_info("constant").kind;
      factors.back().leaf.ard = false;
      scaled = true;
    }
    Node product;
    if (factors.size() == 1) {
      product = std::move(factors.front());
    } else {
      product.kind = Node::Kind::product;
      product.children = std::move(factors);
    }
    // "(a + b)" alone in the outer sum: its terms are scaled already, all but the first.
    if (!scaled && !has_number) return product;
    if (product.kind == Node::Kind::scale) {
      product.variance *= variance;
      product.variance_written = product.variance_written || has_number;
      return product;
    }
    Node scale;
    scale.kind = Node::Kind::scale;
    scale.variance = variance;
    scale.variance_written = has_number;
    scale.children.push_back(std::move(product));
    return scale;
  }

  Node factor() {
    skip_spaces();
    if (accept('(')) {
      Node inner = expression(/*outermost=*/false);
      if (!accept(')')) fail("expected ')'");
      return inner;
    }
    const std::string_view name = word();
    if (name.empty()) fail("expected a kernel name, a number or '('");
    if (++leaves_ > kMaxLeaves)
      fail(fmt::format("more than {} kernels in one expression", kMaxLeaves));
    Node node;
    node.leaf = leaf(leaf_info(name));
    return node;
  }

  Leaf leaf(const LeafInfo& info) {
    Leaf leaf;
    leaf.kind = info.kind;
    leaf.shape = info.shape.start;
    leaf.degree = info.has_degree() ? info.degree.start : 1;
    leaf.ard = info.has_lengthscale;
    if (accept('(')) inputs(info, leaf);
    Written written;
    while (accept(':')) option(info, leaf, written);
    if (leaf.ard ? info.has_lengthscale : info.has_lengthscale && info.has_iso_lengthscale)
      leaf.lengthscales.assign(!leaf.ard             ? 1U
                               : leaf.inputs.empty() ? static_cast<std::size_t>(num_inputs_)
                                                     : leaf.inputs.size(),
                               written.lengthscale.value_or(1.0));
    leaf.lengthscale_written = written.lengthscale.has_value();
    for (const auto& [columns, names] : written.shared) leaf.share_lengthscale(columns, names);
    return leaf;
  }

  // What the options of a leaf say; each says one thing once.
  struct Written {
    std::string_view kind;  // "iso" or "ard"
    std::optional<double> lengthscale;
    bool degree = false, shape = false;
    std::vector<std::pair<std::vector<Index>, std::vector<std::string>>> shared;
  };

  void inputs(const LeafInfo& info, Leaf& leaf) {
    if (info.family == Family::constant) fail(fmt::format("{} sees no inputs", info.name));
    leaf.inputs = named_columns(leaf.input_names);
  }

  // The columns of a list of inputs up to its ")", ascending.
  std::vector<Index> named_columns(std::vector<std::string>& names) {
    std::set<Index> columns;
    do {
      skip_spaces();
      const std::size_t start = position_;
      names.push_back(input_name());
      const std::size_t end = std::exchange(position_, start);  // errors point at the name
      const auto [first, count] = columns_of(names.back());
      for (Index c = first; c < first + count; ++c)
        if (!columns.insert(c).second) fail(fmt::format("input '{}' is given twice", names.back()));
      position_ = end;
    } while (accept(','));
    if (!accept(')')) fail("expected ',' or ')' after an input");
    return {columns.begin(), columns.end()};
  }

  // As it stands up to ',' or ')', or in double quotes, where "" is one quote.
  std::string input_name() {
    std::string name;
    if (position_ < text_.size() && text_[position_] == '"') {
      const std::size_t start = position_;
      for (++position_; position_ < text_.size(); ++position_) {
        if (text_[position_] == '"' && text_.substr(position_, 2) != "\"\"") {
          ++position_;
          return name;
        }
        if (text_[position_] == '"') ++position_;
        name += text_[position_];
      }
      position_ = start;
      fail("a quote without its end");
    }
    while (position_ < text_.size() && text_[position_] != ',' && text_[position_] != ')')
      name += text_[position_++];
    while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
    if (name.empty()) fail("expected an input");
    return name;
  }

  std::pair<Index, Index> columns_of(const std::string& name) const {
    if (names_ == nullptr) {
      Index number = 0;
      const char* end = name.data() + name.size();
      const auto [rest, error] = std::from_chars(name.data(), end, number);
      if (error == std::errc{} && rest == end && number >= 0 && number < num_inputs_)
        return {number, 1};
      fail(fmt::format("there is no input '{}'; inputs have numbers here, from 0 to {}", name,
                       num_inputs_ - 1));
    }
    for (const auto& entry : names_->entries)
      if (entry.name == name) return {entry.first, entry.columns};
    fail(fmt::format("there is no input '{}'; there are: {}", name, list_of(*names_)));
  }

  void option(const LeafInfo& info, Leaf& leaf, Written& written) {
    skip_spaces();
    const std::size_t start = position_;
    if (at_number()) {  // rq:0.5, periodic:12, poly:3
      const double value = number();
      if (info.has_degree()) return set_degree(info, leaf, value, written);
      if (info.has_shape()) return set_shape(info, leaf, value, written);
      fail(fmt::format("{} takes no number after ':'", info.name));
    }
    const std::string_view key = word();
    if (key == "iso" || key == "ard") return set_kind(info, leaf, key, written);
    const bool known = key == "lengthscale" ? info.has_lengthscale
                       : key == "degree"    ? info.has_degree()
                                            : !key.empty() && key == info.shape.name;
    if (!known)
      fail(fmt::format("unknown option '{}' of {} ({})", key, info.name, options_of(info)));
    if (!accept('=')) fail(fmt::format("expected '=' after '{}'", key));
    skip_spaces();
    const double value = number();
    if (key == "lengthscale") {
      if (written.lengthscale) fail_twice(start, "lengthscale", info);
      written.lengthscale = value;
    } else if (key == "degree") {
      set_degree(info, leaf, value, written);
    } else {
      set_shape(info, leaf, value, written);
    }
  }

  [[noreturn]] void fail_twice(std::size_t at, std::string_view what, const LeafInfo& info) {
    position_ = at;
    fail(fmt::format("the {} of {} is given twice; leave one out", what, info.name));
  }

  // iso, ard, iso(x,y).
  void set_kind(const LeafInfo& info, Leaf& leaf, std::string_view key, Written& written) {
    if (!info.has_lengthscale) fail(fmt::format("{} has no lengthscale", info.name));
    const std::size_t start = position_ - key.size();
    if (!written.kind.empty() || (!written.shared.empty() && !accept_ahead('('))) {
      position_ = start;
      fail(
          fmt::format("{} says a second time which inputs of {} share a lengthscale; leave one "
                      "out",
                      key, info.name));
    }
    if (key == "ard" || !accept('(')) {
      written.kind = key;
      leaf.ard = key == "ard";
      return;
    }
    std::vector<std::string> names;
    auto columns = named_columns(names);
    if (leaf.inputs.empty())
      for (Index c = 0; c < num_inputs_; ++c) leaf.inputs.push_back(c);
    const std::size_t end = std::exchange(position_, start);  // errors point at the option
    for (const Index c : columns)
      if (std::find(leaf.inputs.begin(), leaf.inputs.end(), c) == leaf.inputs.end())
        fail(fmt::format("iso({}) names an input that this {} does not see", fmt::join(names, ","),
                         info.name));
    if (columns.size() < 2)
      fail(fmt::format("iso({}) is one input, which shares its lengthscale with none",
                       fmt::join(names, ",")));
    for (const auto& [others, other_names] : written.shared)
      for (const Index c : columns)
        if (std::find(others.begin(), others.end(), c) != others.end())
          fail(fmt::format("iso({}) and iso({}) have an input in common; name them together",
                           fmt::join(other_names, ","), fmt::join(names, ",")));
    position_ = end;
    written.shared.emplace_back(std::move(columns), std::move(names));
  }

  static std::string options_of(const LeafInfo& info) {
    std::vector<std::string> out;
    if (info.has_lengthscale) out = {"iso", "iso(INPUTS)", "ard", "lengthscale=NUMBER"};
    if (info.has_degree()) out.emplace_back("degree=NUMBER");
    if (info.has_shape()) out.push_back(fmt::format("{}=NUMBER", info.shape.name));
    return out.empty() ? "it has none" : fmt::format("{}", fmt::join(out, ", "));
  }

  void set_degree(const LeafInfo& info, Leaf& leaf, double value, Written& written) {
    if (std::exchange(written.degree, true)) fail_twice(position_ - 1, "degree", info);
    if (value != std::floor(value) || value < 1 || value > info.degree.most)
      fail(fmt::format("the degree of {} must be a whole number from 1 to {}", info.name,
                       info.degree.most));
    leaf.degree = static_cast<int>(value);
  }

  void set_shape(const LeafInfo& info, Leaf& leaf, double value, Written& written) {
    if (std::exchange(written.shape, true)) fail_twice(position_ - 1, info.shape.name, info);
    if (value < info.shape.least || value > info.shape.most)
      fail(fmt::format("the {} of {} must be from {} to {}", info.shape.name, info.name,
                       info.shape.least, info.shape.most));
    leaf.shape = value;
  }

  std::string_view text_;
  Index num_inputs_;
  const InputNames* names_;
  std::size_t position_ = 0;
  int depth_ = 0;
  int leaves_ = 0;
};

std::string leaf_text(const Leaf& leaf) {
  std::string text(leaf.info().name);
  for (std::size_t i = 0; i < leaf.input_names.size(); ++i)
    text += (i == 0 ? "(" : ",") + quoted(leaf.input_names[i]);
  if (!leaf.input_names.empty()) text += ")";
  if (leaf.info().has_degree()) text += fmt::format(":{}", leaf.degree);
  if (leaf.info().has_lengthscale && !leaf.ard) text += ":iso";
  for (const auto& names : leaf.shared_names) {
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ",") + quoted(name);
    text += ":iso(" + list + ")";
  }
  return text;
}

// "1 *" marks a variance where the grammar would not add one by itself.
std::string node_text(const Node& node, bool mark_variance) {
  std::string text;
  switch (node.kind) {
    case Node::Kind::leaf:
      return leaf_text(node.leaf);
    case Node::Kind::scale: {
      const Node& child = node.children[0];
      const bool is_sum = child.kind == Node::Kind::sum;
      text = node_text(child, true);
      if (is_sum) text = "(" + text + ")";
      return (mark_variance || is_sum ? "1 * " : "") + text;
    }
    case Node::Kind::sum:
      for (std::size_t i = 0; i < node.children.size(); ++i)
        text += (i > 0 ? " + " : "") + node_text(node.children[i], mark_variance && i == 0);
      return text;
    case Node::Kind::product:
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        const Node& child = node.children[i];
        const bool plain = child.kind == Node::Kind::leaf || child.kind == Node::Kind::product;
        const std::string inner = node_text(child, true);
        text += (i > 0 ? " * " : "") + (plain ? inner : "(" + inner + ")");
      }
      return text;
  }
  return text;
}

}  // namespace

Kernel Kernel::parse(std::string_view text, Index num_inputs) {
  return Kernel(Parser(text, num_inputs, nullptr).parse(), num_inputs);
}

Kernel Kernel::parse(std::string_view text, const InputNames& names) {
  return Kernel(Parser(text, names.num_inputs, &names).parse(), names.num_inputs);
}

std::string Kernel::text() const { return node_text(root_, false); }

}  // namespace mercer::kernels
