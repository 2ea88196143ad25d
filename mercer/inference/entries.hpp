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
InferenceInfo subset_info();
InferenceInfo srm_info();
InferenceInfo dtc_info();
InferenceInfo rra_info();
InferenceInfo fitc_info();
InferenceInfo pitc_info();
InferenceInfo pic_info();
InferenceInfo vfe_info();
InferenceInfo bcm_info();
InferenceInfo rbcm_info();

}  // namespace mercer::inference
