#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// Writes all results to one NetCDF-4 file that xarray opens without a group:
/// variables `<dynamics>_<observable>` with dimensions ([<dynamics>_seed,] <dynamics>_time, head, task, coordinate),
/// coordinate variables `<dynamics>_time`, `<dynamics>_seed`; attributes long_name, units, description.
/// Missing samples of a shorter member are NaN (_FillValue). Written under a temporary name and renamed when whole.
/// Throws std::runtime_error naming the file.
void write_netcdf(const std::filesystem::path& file, const std::vector<DynamicsResult>& results,
                  const std::map<std::string, std::string>& attributes);

/// The inverse of write_netcdf, bit for bit in values, times, seeds, events.
[[nodiscard]] std::vector<DynamicsResult> read_netcdf(const std::filesystem::path& file);

}  // namespace iclflow
