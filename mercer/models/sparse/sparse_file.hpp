// The part of a model file that an approximation has: base points, the belief about the functions
// there, and the training rows where predictions go back to them.
#pragma once

#include "mercer/data/array_file.hpp"
#include "mercer/models/kernel_machine.hpp"

namespace mercer::models {

/// Adds the section `approximation` and its arrays; `inputs` is written with the rest of the model.
void write_sparse(const KernelMachine& model, data::ArrayFile& file);

/// Fills sparse, sparse_rows, check and functions of a model whose inputs, problem and classes are
/// known. Throws ModelFileError when an array is not what the header says.
void read_sparse(data::ArrayFile& file, KernelMachine& model);

/// What KernelMachine::functions has of them: coefficients of the mean and offsets.
std::vector<LatentFunction> latent_functions(const inference::SparsePosterior& sparse);

}  // namespace mercer::models
