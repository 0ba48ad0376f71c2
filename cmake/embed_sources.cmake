# quern_embed_sources(<out.cpp> <file>...): a C++ source that carries the text of every kernel source and header by its
# path from the repository's root, for NVRTC and the host compiler.
function(quern_embed_sources out)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_sources.py ${PROJECT_SOURCE_DIR} ${out} ${ARGN}
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/tools/embed_sources.py
    COMMENT "Embedding kernel sources"
    VERBATIM)
endfunction()
