#pragma once

#include <filesystem>
#include <functional>
#include <netcdf>
#include <string>
#include <vector>

namespace iclflow {

/// Puts a NetCDF-4 file together in memory and writes it under a temporary name, renamed when whole. HDF5 crashes at
/// the end of the process when the disk fills up under an open file, so it never sees the disk; it is not safe to use
/// from two threads either, so that one file is written at a time. Throws std::runtime_error naming the file.
void write_netcdf_file(const std::filesystem::path& file, const std::function<void(netCDF::NcGroup&)>& contents);

/// A variable of doubles whose missing values are NaN.
netCDF::NcVar add_doubles(netCDF::NcGroup& group, const std::string& name,
                          const std::vector<netCDF::NcDim>& dimensions);
void add_strings(netCDF::NcGroup& group, const std::string& name, const netCDF::NcDim& dimension,
                 const std::vector<std::string>& strings);

}  // namespace iclflow
