// The entries of the registry of inference methods; each is declared by its own file.
#pragma once

#include "mercer/inference/inference.hpp"

namespace mercer::inference {

InferenceInfo exact_info();
InferenceInfo exact_solves_info();
InferenceInfo vecchia_info();
InferenceInfo laplace_info();
InferenceInfo laplace_solves_info();
InferenceInfo kernel_cg_info();

}  // namespace mercer::inference
