// Names of output files, checked before any long work.
#pragma once

#include <string>
#include <vector>

namespace mercer::cli {

/// Throws InvalidArgument when `path` cannot be written, or is one of the files being read.
/// `option` names it in the message. "-" (standard output) always passes.
void check_output(const std::string& option, const std::string& path,
                  const std::vector<std::string>& inputs);

/// The same for a file that must be an ordinary one: "-" and devices are refused.
void check_output_file(const std::string& option, const std::string& path,
                       const std::vector<std::string>& inputs);

/// A sentence about the model that a run replaces ("m.mcr is there already, written on ..."), empty
/// when there is none. Throws InvalidArgument when the file holds something else than a model.
std::string replaced_model_note(const std::string& option, const std::string& path);

/// Whether two names are of one file, however they are written ("a.csv", "./a.csv"), and whether
/// or not it exists yet.
bool same_file(const std::string& a, const std::string& b);

/// Where a model may go that cannot be written to `path`, the best place first: the temporary
/// folder, the current one, the home folder; under names that no file has yet.
std::vector<std::string> fallback_paths(const std::string& path);

/// folder/concrete.csv.gz -> concrete.mcr, standard input -> model.mcr: in the current folder.
std::string default_model_path(const std::string& data_path);

}  // namespace mercer::cli
