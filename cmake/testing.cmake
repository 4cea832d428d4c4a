# modefold_add_test(NAME name COMMAND program ... [COUNTED] [SECONDS s] [LABELS ...] [ENVIRONMENT ...])
#
# Registers a test that runs in a clean folder of its own, under the emulator when there is one. COUNTED: its last line
# is "NAME: P passed, F failed, S skipped" (tests/check.h). cmake/run-one.sh leaves the counts in
# ${PROJECT_BINARY_DIR}/results, where tools/run-tests.sh adds them up.
set(MODEFOLD_TEST_SECONDS 900 CACHE STRING "How long one test may take")

# Sanitizers of clang 14 want a predictable address space, which newer kernels give only without randomisation.
set(modefold_test_prefix ${CMAKE_CROSSCOMPILING_EMULATOR})
if(MODEFOLD_SANITIZE)
    find_program(MODEFOLD_SETARCH setarch)
    if(MODEFOLD_SETARCH)
        execute_process(COMMAND ${MODEFOLD_SETARCH} -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
        if(result EQUAL 0)
            set(modefold_test_prefix ${MODEFOLD_SETARCH} -R)
        endif()
    endif()
endif()

# What drivers and compilers of GPUs leave behind is theirs. Memory that nobody has is an error for us to report.
# Sanitizers guess where libraries opened at run time keep a thread's variables, and at times read where nothing is
# when they look there for pointers; our own are not in such libraries.
set(asan allocator_may_return_null=1:intercept_tls_get_addr=0)
set(sanitizers "UBSAN_OPTIONS=print_stacktrace=1;ASAN_OPTIONS=${asan}")
list(APPEND sanitizers "LSAN_OPTIONS=print_suppressions=0:suppressions=${PROJECT_SOURCE_DIR}/tests/leaks.txt")

function(modefold_add_test)
    cmake_parse_arguments(test "COUNTED;NATIVE" "NAME;SECONDS" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
    set(kind plain)
    if(test_COUNTED)
        set(kind counted)
    endif()
    set(prefix ${modefold_test_prefix})
    if(test_NATIVE)
        set(prefix "")
    endif()
    if(NOT test_SECONDS)
        set(test_SECONDS ${MODEFOLD_TEST_SECONDS})
    endif()
    add_test(NAME ${test_NAME}
        COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/run-one.sh ${PROJECT_BINARY_DIR}/results ${test_NAME} ${kind}
                ${test_SECONDS} ${prefix} ${test_COMMAND})
    math(EXPR limit "${test_SECONDS} + 30")
    set_tests_properties(${test_NAME} PROPERTIES TIMEOUT ${limit} LABELS "${test_LABELS}"
        ENVIRONMENT "MODEFOLD_SOURCE=${PROJECT_SOURCE_DIR};${sanitizers};${test_ENVIRONMENT}")
endfunction()
