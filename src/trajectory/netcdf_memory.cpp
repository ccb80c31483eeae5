#include "netcdf_memory.hpp"

#include <fmt/format.h>
#include <netcdf.h>
#include <netcdf_mem.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace iclflow {

namespace {

using netCDF::NcGroup;

class MemoryFile {
 public:
  MemoryFile() { check(nc_create_mem("trajectory", NC_NETCDF4, std::size_t{1} << 16U, &id_)); }
  ~MemoryFile() {
    if (id_ >= 0) nc_abort(id_);
    std::free(contents_.memory);  // NOLINT(cppcoreguidelines-no-malloc): the library allocates it so
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] NcGroup group() const { return NcGroup(id_); }
  std::string_view close() {
    check(nc_close_memio(std::exchange(id_, -1), &contents_));
    return {static_cast<const char*>(contents_.memory), contents_.size};
  }

 private:
  static void check(int status) {
    if (status != NC_NOERR) throw std::runtime_error(nc_strerror(status));
  }
  int id_ = -1;
  NC_memio contents_{};
};

void write_bytes(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw std::runtime_error("the folder is not writable or the disk is full");
}

}  // namespace

void write_netcdf_file(const std::filesystem::path& file, const std::function<void(NcGroup&)>& contents) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> guard(one_at_a_time);
  const std::filesystem::path part = file.string() + ".part";
  try {
    MemoryFile memory;
    NcGroup group = memory.group();
    contents(group);
    write_bytes(part, memory.close());
    std::filesystem::rename(part, file);
  } catch (const std::exception& error) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", file.string(), error.what()));
  }
}

netCDF::NcVar add_doubles(NcGroup& group, const std::string& name, const std::vector<netCDF::NcDim>& dimensions) {
  netCDF::NcVar variable = group.addVar(name, netCDF::ncDouble, dimensions);
  variable.setFill(true, std::numeric_limits<double>::quiet_NaN());
  return variable;
}

void add_strings(NcGroup& group, const std::string& name, const netCDF::NcDim& dimension,
                 const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  for (const std::string& text : strings) pointers.push_back(text.c_str());
  group.addVar(name, netCDF::ncString, dimension).putVar(pointers.data());
}

}  // namespace iclflow
