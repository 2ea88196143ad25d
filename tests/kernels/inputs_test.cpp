// Leaves that name their inputs: the grammar, the values and the parameters.
#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/kernels/kernel.hpp"

namespace mercer::kernels {
namespace inputs_test {

/// x, y, a categorical column of three levels, and a name that needs quotes.
InputNames names() {
  return {6,
          {{"x", 0, 1},
           {"y", 1, 1},
           {"colour", 2, 3},
           {"t (days, UTC)", 5, 1},
           {"colour=blue", 2, 1},
           {"colour=green", 3, 1},
           {"colour=red", 4, 1}}};
}

Matrix points(Index n, Index d) {
  Matrix x(n, d);
  Rng(3, "named inputs").fill_normal(x);
  return x;
}

const Leaf& only_leaf(const Kernel& kernel) { return kernel.root().children[0].leaf; }

std::string error_of(const std::string& text) {
  try {
    Kernel::parse(text, names());
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

std::string error_of_numbers(const std::string& text) {
  try {
    Kernel::parse(text, 3);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(NamedInputs, SelectColumnsAndOnlyTheirLengthscales) {
  using Columns = std::vector<Index>;
  EXPECT_EQ(only_leaf(Kernel::parse("rbf", names())).inputs, (Columns{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(only_leaf(Kernel::parse("rbf(y, x)", names())).inputs, (Columns{0, 1}));
  EXPECT_EQ(only_leaf(Kernel::parse("rbf(colour)", names())).inputs, (Columns{2, 3, 4}));
  EXPECT_EQ(only_leaf(Kernel::parse("rbf(colour=red,x)", names())).inputs, (Columns{0, 4}));
  EXPECT_EQ(only_leaf(Kernel::parse("rbf( \"t (days, UTC)\" )", names())).inputs, (Columns{5}));
  EXPECT_EQ(only_leaf(Kernel::parse("rbf(0,2)", 3)).inputs, (Columns{0, 2}));
  EXPECT_EQ(Kernel::parse("rbf(colour,y):lengthscale=2", names()).num_parameters(), 5);
  EXPECT_EQ(Kernel::parse("rbf(colour,y):iso", names()).num_parameters(), 2);
  EXPECT_EQ(Kernel::parse("matern32(0,1) * matern12(2)", 3).parameter_names(),
            (std::vector<std::string>{"signal_variance1", "matern32_1.lengthscale[0]",
                                      "matern32_1.lengthscale[1]", "matern12_2.lengthscale[2]"}));
}

TEST(NamedInputs, TextReadsBackTheSame) {
  for (const char* text :
       {"matern32(x,y) * matern12(\"t (days, UTC)\")", "rbf(colour):iso + linear(x)",
        "poly(colour=red,y):3", "rq(x):iso * (periodic(y) + constant)"}) {
    const auto kernel = Kernel::parse(text, names());
    const auto again = Kernel::parse(kernel.text(), names());
    EXPECT_EQ(again.text(), kernel.text()) << text;
    EXPECT_EQ(again.parameter_names(), kernel.parameter_names()) << text;
    const Matrix x = points(6, 6);
    EXPECT_EQ(again.reference_matrix(x, x), kernel.reference_matrix(x, x)) << text;
  }
  InputNames odd{2, {{"say \"hi\"", 0, 1}, {" padded ", 1, 1}}};
  const auto kernel = Kernel::parse("rbf(\"say \"\"hi\"\"\",\" padded \")", odd);
  EXPECT_EQ(Kernel::parse(kernel.text(), odd).text(), kernel.text());
  EXPECT_EQ(kernel.text(), "rbf(\"say \"\"hi\"\"\",\" padded \")");
}

TEST(NamedInputs, ErrorsSayWhatThereIs) {
  EXPECT_NE(error_of("rbf(z)").find(
                "there is no input 'z'; there are: x, y, colour, \"t (days, UTC)\", colour=blue"),
            std::string::npos)
      << error_of("rbf(z)");
  EXPECT_NE(error_of("rbf(z)").find("at character 5"), std::string::npos);
  EXPECT_NE(error_of("rbf(x,x)").find("input 'x' is given twice"), std::string::npos);
  EXPECT_NE(error_of("rbf(colour,colour=red)").find("given twice"), std::string::npos);
  EXPECT_NE(error_of("rbf(0)").find("there is no input '0'"), std::string::npos);
  EXPECT_NE(error_of("rbf()").find("expected an input"), std::string::npos);
  EXPECT_NE(error_of("rbf(x").find("expected ',' or ')'"), std::string::npos);
  EXPECT_NE(error_of("rbf(\"x)").find("a quote without its end"), std::string::npos);
  EXPECT_NE(error_of("constant(x)").find("constant sees no inputs"), std::string::npos);
  EXPECT_NE(error_of_numbers("rbf(3)").find("inputs have numbers here, from 0 to 2"),
            std::string::npos);
  EXPECT_NE(error_of_numbers("rbf(x)").find("there is no input 'x'"), std::string::npos);
  EXPECT_NE(error_of_numbers("rbf(-1)").find("there is no input '-1'"), std::string::npos);
}

TEST(NamedInputs, OfManyNamesTheFirstAreListed) {
  InputNames many{100, {}};
  for (Index c = 0; c < 100; ++c) many.entries.push_back({"p" + std::to_string(c), c, 1});
  try {
    Kernel::parse("rbf(q)", many);
    FAIL() << "accepted a name that is not there";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("p18, p19 and 80 more"), std::string::npos)
        << error.what();
  }
}

TEST(NamedInputs, ALeafIsTheLeafOnItsColumnsAlone) {
  const Matrix x = points(15, 4);
  Matrix some(15, 2);
  some << x.col(1), x.col(3);
  for (const auto& info : kernels_registry()) {
    if (info.family == Family::constant) continue;
    for (const std::string options : {"", ":iso"}) {
      auto part = Kernel::parse(std::string(info.name) + "(1,3)" + options, 4);
      auto alone = Kernel::parse(std::string(info.name) + options, 2);
      Vector theta(alone.num_parameters());
      Rng(5, "theta").fill_normal(theta);
      part.set_log_parameters(theta);
      alone.set_log_parameters(theta);
      EXPECT_EQ(part.reference_matrix(x, x), alone.reference_matrix(some, some)) << info.name;
      Vector g(theta.size()), h(theta.size());
      part.evaluate_with_gradient(x.data(), 15, x.data() + 1, 15, g);
      alone.evaluate_with_gradient(some.data(), 15, some.data() + 1, 15, h);
      EXPECT_EQ(g, h) << info.name;
    }
  }
}

TEST(NamedInputs, AProductOverDisjointInputsIsTheElementwiseProduct) {
  const Matrix x = points(20, 3);
  const auto both = Kernel::parse("matern32(0,1) * matern12(2)", 3);
  const auto space = Kernel::parse("matern32", 2), time = Kernel::parse("matern12", 1);
  const Matrix product = space.reference_matrix(x.leftCols(2), x.leftCols(2))
                             .cwiseProduct(time.reference_matrix(x.col(2), x.col(2)));
  EXPECT_LE((both.reference_matrix(x, x) - product).cwiseAbs().maxCoeff(), 1e-16);
}

TEST(NamedInputs, LengthscalesAndStartValuesAreThoseOfTheirColumns) {
  auto kernel = Kernel::parse("matern32(0,2) + rbf(1):iso", 4);
  kernel.set_all_lengthscales(1.0);
  // Given are sqrt(4) times the spreads 1, 2, 3, 4; a leaf with d inputs takes sqrt(d) times them.
  kernel.scale_start_values(5.0, {2, 4, 6, 8});
  const Vector start = kernel.log_parameters().array().exp();
  EXPECT_NEAR(start(1), std::sqrt(2.0) * 1, 1e-14);
  EXPECT_NEAR(start(2), std::sqrt(2.0) * 3, 1e-14);
  EXPECT_NEAR(start(4), 2, 1e-14);
  auto ard = Kernel::parse("matern32(0,2)", 4);
  ard.set_lengthscales({1, 2, 3, 4});
  EXPECT_NEAR(std::exp(ard.log_parameters()(2)), 3, 1e-14);
}

TEST(NamedInputs, ATreeMadeByHandIsChecked) {
  Node node;
  node.leaf.kind = leaf_info("rbf").kind;
  node.leaf.lengthscales = {1, 1};
  node.leaf.inputs = {2, 0};
  EXPECT_THROW(Kernel(node, 3), InvalidArgument);
  node.leaf.inputs = {0, 3};
  EXPECT_THROW(Kernel(node, 3), InvalidArgument);
  node.leaf.inputs = {0, 1, 2};
  EXPECT_THROW(Kernel(node, 3), DimensionMismatch);
  node.leaf.inputs = {0, 2};
  EXPECT_EQ(Kernel(node, 3).num_parameters(), 2);
}

}  // namespace inputs_test
}  // namespace mercer::kernels
