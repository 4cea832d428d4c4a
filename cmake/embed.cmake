# modefold_embed(sources_variable FILE ...): a C file made of text files, anew whenever one changes, and appended to
# sources_variable. It defines, for each of them, `char mf_text_NAME[]` (mf_text_rows_cl for rows.cl; src/gpu/texts.h
# declares them), and what src/gpu/unpack.c fills them from: all texts in one deflate stream, a quarter of their size.
#
# The texts go to compilers without a file system, so their lines `#include "..."` become empty: whoever joins the texts
# brings what they include. Comments and indentation are a third of the texts, and stay behind, as do spaces round most
# operators, which no text has where they would matter, and the ends of some lines. The texts come in the order of
# text_order.txt (tools/order_texts.py), those that it does not name last.
# tests/test_gpu_runtime.c does the same in C.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(modefold_embed_script ${CMAKE_CURRENT_LIST_FILE})
    set(modefold_embed_order ${CMAKE_CURRENT_LIST_DIR}/text_order.txt)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${modefold_embed_order})
    function(modefold_embed sources_variable)
        set(inputs "")
        file(STRINGS ${modefold_embed_order} names)
        foreach(name ${names})
            string(REPLACE "." "\\." name ${name})
            set(named ${ARGN})
            list(FILTER named INCLUDE REGEX "/${name}$")
            list(APPEND inputs ${named})
        endforeach()
        list(APPEND inputs ${ARGN})
        list(REMOVE_DUPLICATES inputs)
        set(output ${PROJECT_BINARY_DIR}/texts/texts.c)
        add_custom_command(OUTPUT ${output} DEPENDS ${inputs} ${modefold_embed_script}
            ${modefold_embed_order} VERBATIM
            COMMAND ${CMAKE_COMMAND} "-DINPUTS=${inputs}" -DOUTPUT=${output} -P ${modefold_embed_script})
        set(${sources_variable} ${${sources_variable}} ${output} PARENT_SCOPE)
    endfunction()
    return()
endif()

# Called as a script, by the command above. The characters 1 and 2, which no text has, stand for the end of a text
# (CMake's strings have no 0) and of a comment.
string(ASCII 1 end)
string(ASCII 2 close)
set(all "")
set(arrays "")
set(table "")
foreach(input ${INPUTS})
    file(READ ${input} text)
    string(REGEX REPLACE "\n *# *include \"[^\n]*" "\n" text "\n${text}")
    string(REPLACE "*/" "${close}" text "${text}")
    string(REGEX REPLACE "/\\*[^${close}]*${close}" " " text "${text}")
    string(REGEX REPLACE " *\n[ \n]*" "\n" text "${text}")
    string(REGEX REPLACE "^\n" "" text "${text}")
    string(REGEX REPLACE " ([-+*/%&|^<>=!?:]+) " "\\1" text "${text}")
    string(REGEX REPLACE "([,;)]) ([^\"])" "\\1\\2" text "${text}")
    if(NOT input MATCHES "/vocab/") # whose functions src/gpu/vocabulary.c finds by their lines
        string(REGEX REPLACE "\\)\n{" "){" text "${text}")
        string(REGEX REPLACE "([;}])\n}" "\\1}" text "${text}")
        string(REGEX REPLACE ",\n([a-zA-Z(])" ",\\1" text "${text}")
    endif()
    string(APPEND all "${text}${end}")
    string(LENGTH "${text}" size)
    math(EXPR size "${size} + 1")
    get_filename_component(name ${input} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    string(APPEND arrays "char mf_text_${name}[${size}];\n")
    string(APPEND table "    {mf_text_${name}, ${size}},\n")
endforeach()

# A file of gzip is the stream behind a head of 10 bytes, before a tail of 8. The reader may look 8 bytes too far.
file(WRITE ${OUTPUT}.txt "${all}")
set(level "")
if(NOT CMAKE_VERSION VERSION_LESS 3.19)
    set(level COMPRESSION_LEVEL 9)
endif()
file(ARCHIVE_CREATE OUTPUT ${OUTPUT}.gz PATHS ${OUTPUT}.txt FORMAT raw COMPRESSION GZip ${level})
file(READ ${OUTPUT}.gz packed OFFSET 10 HEX)
file(REMOVE ${OUTPUT}.txt ${OUTPUT}.gz)
string(REGEX REPLACE "(................................)" "\\1\n" packed "${packed}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," packed "${packed}")
file(WRITE ${OUTPUT} "#include \"gpu/texts.h\"\n\n${arrays}\n"
    "const struct packed_text mf_packed_texts[] = {\n${table}    {0, 0}};\n\n"
    "const unsigned char mf_packed[] = {\n${packed}};\n")
