# What a wheel holds beside Python: all below the package's folder, found from there.
if(NOT TARGET quern_ffi)
  message(FATAL_ERROR "a wheel needs TVM-FFI's headers: pip install apache-tvm-ffi into the Python that CMake found, ${Python3_EXECUTABLE}")
endif()
# A wheel holds no links: the file has the name that the loader asks for.
set_target_properties(quern PROPERTIES VERSION 0)
set_target_properties(quern_ffi PROPERTIES INSTALL_RPATH "\$ORIGIN")
set_target_properties(quern-cli PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib")
install(TARGETS quern quern_ffi LIBRARY DESTINATION quern/lib NAMELINK_SKIP COMPONENT python)
install(TARGETS quern-cli RUNTIME DESTINATION quern/bin COMPONENT python)

add_custom_target(quern_stubs
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/quern/_schema.py $<TARGET_FILE:quern-cli> ${PROJECT_BINARY_DIR}/stubs
  DEPENDS quern-cli VERBATIM COMMENT "Type stubs of the ops")
install(DIRECTORY ${PROJECT_BINARY_DIR}/stubs/ DESTINATION quern COMPONENT python)
