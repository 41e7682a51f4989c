# The headers, the CMake package and a pkg-config file, installed and as archives; and for find_package() without an
# install, the package in the build tree.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(steptimer_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/steptimer")

target_include_directories(steptimer_steptimer INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/steptimer-config.cmake.in"
  "${PROJECT_BINARY_DIR}/steptimer-config.cmake"
  INSTALL_DESTINATION "${steptimer_package_dir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/steptimer-config-version.cmake"
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
configure_file("${PROJECT_SOURCE_DIR}/cmake/steptimer-optional.cmake"
  "${PROJECT_BINARY_DIR}/steptimer-optional.cmake" COPYONLY)

install(TARGETS steptimer_steptimer EXPORT steptimer-targets)
export(EXPORT steptimer-targets NAMESPACE steptimer:: FILE "${PROJECT_BINARY_DIR}/steptimer-targets.cmake")
install(EXPORT steptimer-targets NAMESPACE steptimer:: DESTINATION "${steptimer_package_dir}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/steptimer"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp")
install(FILES
  "${PROJECT_BINARY_DIR}/steptimer-config.cmake"
  "${PROJECT_BINARY_DIR}/steptimer-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/steptimer-optional.cmake"
  DESTINATION "${steptimer_package_dir}")

# For builds without CMake. It finds the headers from where it lies itself, so the folder may be moved.
configure_file("${PROJECT_SOURCE_DIR}/cmake/steptimer.pc.in" "${PROJECT_BINARY_DIR}/steptimer.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/steptimer.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/steptimer")

# Archives: cpack in the build tree for what is installed, cpack --config CPackSourceConfig.cmake for the source.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR TGZ ZIP)
  set(CPACK_SOURCE_GENERATOR TGZ ZIP)
  set(CPACK_PACKAGE_FILE_NAME "steptimer-${PROJECT_VERSION}")
  set(CPACK_SOURCE_PACKAGE_FILE_NAME "steptimer-${PROJECT_VERSION}-source")
  set(CPACK_SOURCE_IGNORE_FILES "/[.]git/" "/build/")
  set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
  set(CPACK_VERBATIM_VARIABLES ON)
  include(CPack)
endif()
