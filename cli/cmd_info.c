/* modefold info: what this build has and what this machine can use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <modefold.h>

#include "commands.h"
#include "lists.h"
#include "options.h"
#include "problem.h"

/* Names with blanks between, wrapped and indented. */
static void put_names(const char *title, const char *(*name)(int number))
{
    int column = printf("%-14s", title);
    for (int i = 0; name(i); i++) {
        if (column + (int)strlen(name(i)) + 1 > 100)
            column = printf("\n%14s", "");
        column += printf("%s%s", column > 14 ? " " : "", name(i));
    }
    putchar('\n');
}

static const char *type_name(int number)
{
    return number < list_type_count() ? mf_type_name(list_type(number)) : NULL;
}

/* Tries every instruction set by name: the library says which it was built with and which this processor has. */
static void put_instruction_sets(void)
{
    static const char *const names[] = {"avx512", "avx2", "sse2", "neon", "scalar"};
    const char *before = getenv("MODEFOLD_ISA");
    char *kept = before ? strdup(before) : NULL;
    printf("%-14s", "instructions");
    for (int i = 0, first = 1; i < 5; i++) {
        mf_device *device;
        setenv("MODEFOLD_ISA", names[i], 1);
        mf_status status = mf_device_open("cpu:1", &device);
        mf_device_close(device);
        if (status == MF_ERROR_ARGUMENT) /* not in this build */
            continue;
        printf("%s%s%s", first ? "" : ", ", names[i], status == MF_OK ? "" : " (not on this processor)");
        first = 0;
    }
    putchar('\n');
    if (kept)
        setenv("MODEFOLD_ISA", kept, 1);
    else
        unsetenv("MODEFOLD_ISA");
    free(kept);
}

static void put_environment(void)
{
    static const char *const names[] = {"MODEFOLD_THREADS", "MODEFOLD_ISA", "MODEFOLD_SOLVER", "MODEFOLD_CACHE",
                                        "MODEFOLD_OPENCL_OPTIONS"};
    printf("%-14s", "environment");
    for (int i = 0; i < 5; i++)
        printf("%s%s%s%s", i ? ", " : "", names[i], getenv(names[i]) ? "=" : " not set",
               getenv(names[i]) ? getenv(names[i]) : "");
    putchar('\n');
}

static void put_solvers(const char *title, int kind)
{
    for (int i = 0; list_solver(kind, i); i++)
        printf("%-14s%-10s %s\n", i ? "" : title, list_solver(kind, i), list_solver_what(kind, i));
}

/* Solvers whose results have an order of their own: they run by name, or where a flag lets them. */
static const char *cpu_by_name(int number)
{
    return list_solver_by_name(kDLCPU, number);
}

static const char *gpu_by_name(int number)
{
    return list_solver_by_name(kDLOpenCL, number);
}

/* Whether the first GPUs open, or why not; what compiles for them. */
static void put_gpus(void)
{
    static const char *const names[] = {"cuda:0", "opencl:0"};
    char folder[4096];
    for (int i = 0; i < 2; i++) {
        mf_device *device;
        mf_status status = mf_device_open(names[i], &device);
        if (status == MF_OK)
            printf("%-14s%s\n", i ? "" : "GPUs", mf_device_describe(device));
        else
            printf("%-14s%s: no: %s\n", i ? "" : "GPUs", names[i], mf_error());
        mf_device_close(device);
    }
    printf("%-14s%s\n", "CUDA compiler", list_cuda_compiler());
    printf("%-14s%s\n", "kernels in", list_kernel_folder(folder, sizeof folder) ? folder : "memory only");
}

int command_info(int argc, char **argv)
{
    const char *device_name = "cpu";
    struct option_list rest = {0};
    mf_device *device;
    const struct option_spec specs[] = {{"device", OPTION_TEXT, &device_name}, {NULL, OPTION_FLAG, NULL}};
    int status = options_parse(argc, argv, specs, &rest);
    if (status)
        return status;
    if (rest.count)
        return complain(2, "info takes no \"%s\"", rest.item[0]);
    if (mf_device_open(device_name, &device) != MF_OK)
        return complain_library();
    int version = mf_version();
    printf("%-14s%d.%d.%d\n", "modefold", version / 10000, version / 100 % 100, version % 100);
    printf("%-14s%s\n", "device", mf_device_describe(device));
    mf_device_close(device);
    put_gpus();
    put_instruction_sets();
    put_names("types", type_name);
    put_names("reducers", list_reducer);
    put_names("maps", list_map);
    put_solvers("solvers", kDLCPU);
    put_names("  by name", cpu_by_name);
    put_solvers("on a GPU", kDLOpenCL);
    put_names("  by name", gpu_by_name);
    for (int i = 0; i < VALUES_COUNT; i++)
        printf("%-14s%-10s %s\n", i ? "" : "test data", values_kind_names[i], values_kind_whats[i]);
    put_environment();
    return 0;
}
