# The program, the library with its headers, and a package for find_package(iclflow).
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/iclflow)
install(TARGETS iclflow_library EXPORT iclflowTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET iclflow)
  install(TARGETS iclflow RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/iclflow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT iclflowTargets NAMESPACE iclflow:: DESTINATION ${package_directory})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/iclflowConfig.cmake.in ${PROJECT_BINARY_DIR}/iclflowConfig.cmake
                              INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/iclflowConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/iclflowConfig.cmake ${PROJECT_BINARY_DIR}/iclflowConfigVersion.cmake
        DESTINATION ${package_directory})
