# modefold_find_header(DLPACK dlpack/dlpack.h libdlpack-dev) sets DLPACK_INCLUDE_DIR to the folder to include from.
#
# A cross compiler must not see the host's /usr/include, so for it the header's own folder is linked into the build tree.
macro(modefold_find_header name header package)
    find_path(MODEFOLD_${name}_DIR ${header})
    if(NOT MODEFOLD_${name}_DIR)
        message(FATAL_ERROR "<${header}> was not found. Debian and Ubuntu have it in ${package}; "
            "elsewhere give its folder with -DMODEFOLD_${name}_DIR=...")
    endif()
    if(CMAKE_CROSSCOMPILING)
        get_filename_component(folder ${header} DIRECTORY)
        file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/headers)
        file(CREATE_LINK ${MODEFOLD_${name}_DIR}/${folder} ${PROJECT_BINARY_DIR}/headers/${folder} SYMBOLIC)
        set(${name}_INCLUDE_DIR ${PROJECT_BINARY_DIR}/headers)
    else()
        set(${name}_INCLUDE_DIR ${MODEFOLD_${name}_DIR})
    endif()
endmacro()
