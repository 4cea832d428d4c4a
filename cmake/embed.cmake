# modefold_embed(sources_variable FILE ...): for each text file a C file that defines it as `const char mf_text_NAME[]`
# (mf_text_rows_cl for rows.cl; src/gpu/texts.h declares them), made anew whenever the text changes and appended to
# sources_variable.
#
# The texts go to compilers without a file system, so their lines `#include "..."` become empty: whoever joins the texts
# brings what they include. Comments and indentation are a third of the texts, and stay behind.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(modefold_embed_script ${CMAKE_CURRENT_LIST_FILE})
    function(modefold_embed sources_variable)
        set(sources ${${sources_variable}})
        foreach(input ${ARGN})
            get_filename_component(input ${input} ABSOLUTE)
            get_filename_component(name ${input} NAME)
            string(MAKE_C_IDENTIFIER ${name} name)
            set(output ${PROJECT_BINARY_DIR}/texts/${name}.c)
            add_custom_command(OUTPUT ${output} DEPENDS ${input} ${modefold_embed_script} VERBATIM
                COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=mf_text_${name}
                        -P ${modefold_embed_script})
            list(APPEND sources ${output})
        endforeach()
        set(${sources_variable} ${sources} PARENT_SCOPE)
    endfunction()
    return()
endif()

# Called as a script, by the command above: everything is done on bytes in hex, "23 69 6e ", since CMake's strings
# treat ; and [ in their own way.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "\\1 " bytes "0a${bytes}")
set(any "(0[0-9b-f] |[1-9a-f][0-9a-f] )*")
string(REGEX REPLACE "0a (20 )*23 (20 )*69 6e 63 6c 75 64 65 (20 )*22 ${any}" "0a " bytes "${bytes}") # include "
string(REPLACE "2a 2f " "!" bytes "${bytes}") # the end of a comment as one character, which no byte is written with
string(REGEX REPLACE "2f 2a [^!]*!" "20 " bytes "${bytes}")
string(REGEX REPLACE "(20 )*0a (20 |0a )*" "0a " bytes "${bytes}")
string(REGEX REPLACE "^0a " "" bytes "${bytes}")
string(REGEX REPLACE "0a " "0a \n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f]) " "'\\\\x\\1'," bytes "${bytes}") # characters, as a byte may not fit in char
file(WRITE ${OUTPUT} "#include \"gpu/texts.h\"\n\nconst char ${NAME}[] = {\n${bytes}0};\n")
