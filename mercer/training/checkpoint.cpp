#include "mercer/training/checkpoint.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "mercer/core/error.hpp"

namespace mercer::training {

std::optional<data::ArrayFile> open_checkpoint(const std::string& path, std::uint64_t identity) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  auto file = data::read_array_file(path, "checkpoint");
  if (file.header.value("identity", "") != fmt::format("{:016x}", identity))
    throw InvalidArgument(
        fmt::format("checkpoint '{}' belongs to a run on other data or with other options; remove "
                    "it or name another file",
                    path));
  return file;
}

data::ArrayFile make_checkpoint(std::uint64_t identity, const optim::ReplayLog& log,
                                Index parameters) {
  data::ArrayFile file;
  file.header = {{"kind", "checkpoint"}, {"identity", fmt::format("{:016x}", identity)}};
  const auto numbers = log.packed();
  const Index rows = 2 * parameters + 1;
  file.arrays["evaluations"] =
      Eigen::Map<const Matrix>(numbers.data(), rows, static_cast<Index>(numbers.size()) / rows);
  return file;
}

optim::ReplayLog evaluations_of(const data::ArrayFile& file, Index parameters,
                                const std::string& path) {
  const auto found = file.arrays.find("evaluations");
  if (found == file.arrays.end() || found->second.rows() != 2 * parameters + 1)
    throw ModelFileError(fmt::format("checkpoint '{}' is damaged", path));
  const Matrix& table = found->second;
  return optim::ReplayLog::unpacked({table.data(), static_cast<std::size_t>(table.size())},
                                    parameters);
}

std::string interrupted_text(const std::string& path, std::size_t evaluations,
                             const std::string& error) {
  if (path.empty())
    return "interrupted while learning; with `checkpoint=FILE` the same command would go on from "
           "here";
  if (!error.empty())
    return fmt::format("interrupted while learning; what was learned is lost: {}", error);
  if (evaluations == 0)
    return fmt::format(
        "interrupted while learning; '{}' holds the run so far, the same command goes on from "
        "there",
        path);
  return fmt::format(
      "interrupted while learning; '{}' holds {} evaluations, the same command goes on from there",
      path, evaluations);
}

}  // namespace mercer::training
