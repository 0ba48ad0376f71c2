# `cmake --install`: the library, the command, the headers of its interface, the kernels and kit (which kernels of users
# include), and the package that find_package(quern) finds.
include(CMakePackageConfigHelpers)
install(TARGETS quern EXPORT quernTargets)
if(QN_BUILD_CLI)
  install(TARGETS quern-cli)
endif()
install(DIRECTORY quern/base quern/op quern/kit quern/bricks quern/ops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern
  FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "conform" EXCLUDE)
install(FILES quern/device/device.h quern/device/emulated.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern/device)
install(FILES quern/jit/spec.h quern/jit/freeze.h quern/jit/sources.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern/jit)
install(FILES quern/testing/warm_trace.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern/testing)
install(FILES quern/cli/command_line.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern/cli)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
install(EXPORT quernTargets NAMESPACE quern:: DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/quernConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/quernConfig.cmake.in ${PROJECT_BINARY_DIR}/quernConfig.cmake INSTALL_DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/quernConfig.cmake ${PROJECT_BINARY_DIR}/quernConfigVersion.cmake cmake/embed_sources.cmake
  tools/embed_sources.py DESTINATION ${package})
