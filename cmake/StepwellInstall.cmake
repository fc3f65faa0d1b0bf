# What `cmake --install` lays down: headers, the three libraries, a CMake package and pkg-config files.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stepwell)
install(DIRECTORY include/stepwell DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS stepwell_ops stepwell_infer stepwell_full EXPORT stepwell ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT stepwell NAMESPACE stepwell:: FILE stepwellTargets.cmake DESTINATION ${config_dir})
configure_package_config_file(cmake/stepwellConfig.cmake.in stepwellConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(stepwellConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stepwellConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/stepwellConfigVersion.cmake
  DESTINATION ${config_dir})

# stepwell_pkg_config(<file> <description> <Libs> <Requires>); the installed tree may be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
function(stepwell_pkg_config file description libs requires)
  configure_file(cmake/stepwell.pc.in ${file}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${file}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

if(STEPWELL_WITH_TBB)
  set(executor tbb)
else()
  set(thread_library " -pthread")
endif()
stepwell_pkg_config(stepwell-ops "Stepwell's numerical kernels" -lstepwell_ops libhwy)
stepwell_pkg_config(stepwell-infer "Stepwell's models and streams, without training" -lstepwell_infer stepwell-ops)
stepwell_pkg_config(stepwell "Fixed-state sequence models: train, fine-tune, stream" "-lstepwell${thread_library}"
  "stepwell-ops fmt tomlplusplus ${executor}")
