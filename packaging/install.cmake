# Places of installed files. Opt-in: --component teflon-link (see docs/devices.md).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Plug-ins and libraries for LD_PRELOAD. Programs do not link them, and the command looks for them there.
set(plugin_dir lib/skillet)

# As `cmake --install --strip` does: debug information is 20 times as large as the code.
install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)" ALL_COMPONENTS)

install(TARGETS skillet_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS skillet_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(preload IN ITEMS skillet_virtual_preload skillet_capture_preload)
  if(TARGET ${preload})
    install(TARGETS ${preload} LIBRARY DESTINATION ${plugin_dir} NAMELINK_SKIP)
  endif()
endforeach()

# The TensorFlow Lite delegate; libskillet_c is the C interface.
install(TARGETS skillet_delegate LIBRARY DESTINATION ${plugin_dir})
# The ONNX Runtime provider.
install(TARGETS skillet_onnxruntime LIBRARY DESTINATION ${plugin_dir})
# LiteRT's compiler plug-in, and under another name its dispatch library.
install(TARGETS skillet_litert_plugin LIBRARY DESTINATION ${plugin_dir})
install(FILES $<TARGET_FILE_DIR:skillet_litert_plugin>/libLiteRtDispatch_Skillet.so DESTINATION ${plugin_dir})
# `import skillet`, and the verbs of the command that are in Python: the command looks for them there.
install(DIRECTORY src/frontend/python/skillet DESTINATION lib/python3/dist-packages
  FILES_MATCHING PATTERN "*.py" PATTERN "*.cpp" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
# GStreamer's element, if its headers are installed.
if(TARGET skillet_gstreamer)
  install(TARGETS skillet_gstreamer LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gstreamer-1.0)
endif()
set(delegate_file ${plugin_dir}/$<TARGET_FILE_NAME:skillet_delegate>)

install(FILES include/skillet/skillet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/skillet)
# Has the layout of the source tree, so that links between pages, and the commands on them, work.
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.json")
install(FILES src/lab/interpose/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/src/lab/interpose)
install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "digits.tflite" PATTERN "digits_labels.txt" PATTERN "*.png")
install(FILES packaging/example/classify.c DESTINATION ${CMAKE_INSTALL_DOCDIR}/example)
install(FILES packaging/70-skillet.rules DESTINATION lib/udev/rules.d)

# pkg-config derives the prefix from the file's place, so an installation may be moved.
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

# Programs that load /usr/lib/teflon/libteflon.so without options load our delegate through this link. Another package's file
# there stays: that package or the administrator must move it.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/teflon_link.cmake CONTENT "
set(folder \$ENV{DESTDIR}/usr/lib/teflon)
set(link \${folder}/libteflon.so)
set(target \${CMAKE_INSTALL_PREFIX}/${delegate_file})
set(there)
if(IS_SYMLINK \${link})
  file(READ_SYMLINK \${link} there)
endif()
if((EXISTS \${link} OR IS_SYMLINK \${link}) AND NOT there STREQUAL target)
  message(FATAL_ERROR \"\${link} is there already and is not ours. If another package put it there (dpkg -S /usr/lib/teflon/libteflon.so), \"
    \"remove that package, or move its file aside: \"
    \"dpkg-divert --add --rename --divert /usr/lib/teflon/libteflon.so.other /usr/lib/teflon/libteflon.so\")
endif()
file(MAKE_DIRECTORY \${folder})
message(STATUS \"Linking: \${link} -> \${target}\")
file(CREATE_LINK \${target} \${link} SYMBOLIC)
")
install(SCRIPT ${CMAKE_CURRENT_BINARY_DIR}/teflon_link.cmake COMPONENT teflon-link EXCLUDE_FROM_ALL)
