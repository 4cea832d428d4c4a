# Cross compilation to 64-bit ARM Linux, tests under qemu's user emulation (Debian: gcc-aarch64-linux-gnu,
# libc6-dev-arm64-cross, qemu-user-static).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
find_program(MODEFOLD_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(MODEFOLD_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${MODEFOLD_QEMU} -L /usr/aarch64-linux-gnu)
endif()
