# quern_embed_sources(<out.cpp> <file>...): a C++ source that carries the text of kernel sources and headers by their path
# from the calling project's root, for NVRTC and the host compiler. Add it to the library that launches the kernels.
set(QUERN_EMBED_SOURCES_FOLDER ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")
function(quern_embed_sources out)
  find_file(QUERN_EMBED_SOURCES embed_sources.py PATHS ${QUERN_EMBED_SOURCES_FOLDER} ${QUERN_EMBED_SOURCES_FOLDER}/../tools NO_DEFAULT_PATH REQUIRED)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${Python3_EXECUTABLE} ${QUERN_EMBED_SOURCES} ${PROJECT_SOURCE_DIR} ${out} ${ARGN}
    DEPENDS ${ARGN} ${QUERN_EMBED_SOURCES}
    COMMENT "Embedding kernel sources"
    VERBATIM)
endfunction()
