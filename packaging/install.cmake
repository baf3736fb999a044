# What `cmake --install` puts where. Opt-in: --component teflon-link (see docs/devices.md).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Plugins and libraries for LD_PRELOAD; nobody links against these.
set(plugin_dir ${CMAKE_INSTALL_LIBDIR}/skillet)

install(TARGETS skillet_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS skillet_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(preload IN ITEMS skillet_virtual_preload skillet_capture_preload)
  if(TARGET ${preload})
    install(TARGETS ${preload} LIBRARY DESTINATION ${plugin_dir} NAMELINK_SKIP)
  endif()
endforeach()

# The TensorFlow Lite delegate; libskillet_c is the C interface.
install(TARGETS skillet_delegate LIBRARY DESTINATION ${plugin_dir})
set(delegate_file ${plugin_dir}/$<TARGET_FILE_NAME:skillet_delegate>)

install(FILES include/skillet/skillet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/skillet)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES packaging/70-skillet.rules DESTINATION lib/udev/rules.d)

# pkg-config finds the prefix from where the file lies, so that an installation may be moved.
file(RELATIVE_PATH prefix_from_pc /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(packaging/skillet.pc.in ${CMAKE_CURRENT_BINARY_DIR}/skillet.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/skillet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/skillet)
configure_package_config_file(packaging/skilletConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/skilletConfig.cmake
  INSTALL_DESTINATION ${config_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/skilletConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/skilletConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/skilletConfigVersion.cmake
  DESTINATION ${config_dir})

# Programs that load /usr/lib/teflon/libteflon.so, without options, load ours through this link.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/teflon_link.cmake CONTENT "
set(folder \$ENV{DESTDIR}/usr/lib/teflon)
file(MAKE_DIRECTORY \${folder})
message(STATUS \"Linking: \${folder}/libteflon.so -> \${CMAKE_INSTALL_PREFIX}/${delegate_file}\")
file(CREATE_LINK \${CMAKE_INSTALL_PREFIX}/${delegate_file} \${folder}/libteflon.so SYMBOLIC)
")
install(SCRIPT ${CMAKE_CURRENT_BINARY_DIR}/teflon_link.cmake COMPONENT teflon-link EXCLUDE_FROM_ALL)
