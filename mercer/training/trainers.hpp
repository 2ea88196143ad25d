// The entries of the trainers' registry; each is declared by its own file.
#pragma once

#include "mercer/training/training.hpp"

namespace mercer::training {

TrainerInfo exact_info();
TrainerInfo lbfgs_info();
TrainerInfo vecchia_info();
TrainerInfo newton_info();
TrainerInfo adam_info();
TrainerInfo adagrad_info();
TrainerInfo mh_info();
TrainerInfo hmc_info();
TrainerInfo sgld_info();
TrainerInfo da_info();

}  // namespace mercer::training
