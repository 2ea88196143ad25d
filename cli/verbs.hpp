// The verbs of the program. Each lives in the file of its name and takes the words after the verb;
// it returns the exit code, or throws, which main.cpp turns into one.
#pragma once

#include <string>
#include <vector>

namespace mercer::cli {

using Words = std::vector<std::string>;

int run_fit(const Words& words);
int run_predict(const Words& words);
int run_evaluate(const Words& words);
int run_sample(const Words& words);
int run_cv(const Words& words);
int run_solve(const Words& words);
int run_compare(const Words& words);
/// `compare` when --methods is among the words.
int run_compare_approximations(const Words& words);
int run_plan(const Words& words);
int run_info(const Words& words);
int run_generate(const Words& words);
int run_split(const Words& words);
int run_demo(const Words& words);
/// Not in the overview: prints docs/options.md.
int run_options(const Words& words);

}  // namespace mercer::cli
