# modefold's front door; `make help` says what there is. The build itself is CMakeLists.txt.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
SECONDS ?= 60
BENCH ?= *
STAGES ?=
RELEASE = build/release

# CMake's own make must not inherit this one's flags; CC counts only when somebody chose it.
CMAKE = env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u MAKELEVEL cmake
ifneq ($(origin CC),default)
COMPILER = -DCMAKE_C_COMPILER=$(CC)
endif

.PHONY: all build demo check test lint bench fuzz install deps clean help gpu-check gpu-bench

all: build

help:
	@echo 'make                  build into $(RELEASE)'
	@echo 'make demo             install what is missing, build, run the demonstration'
	@echo 'make check            install what is missing, then everything that must hold (STAGES="gcc lint" for some)'
	@echo 'make test             build and run the tests of $(RELEASE)'
	@echo 'make lint             sizes, formatting, cppcheck'
	@echo 'make bench            build and run the benchmarks (BENCH=kernels for one)'
	@echo 'make gpu-check        all tests of the GPU there is, and GPU_COUNT=20000 random problems on it'
	@echo 'make gpu-bench        the table of the GPU there is, into bench/results/ (needs PyTorch and CuPy)'
	@echo 'make fuzz SECONDS=600 fuzz for so long, all targets together'
	@echo 'make install          install into PREFIX (/usr/local); DESTDIR is honoured'
	@echo 'make deps             install the packages that make check wants'
	@echo 'make clean            remove build/'

$(RELEASE)/Makefile:
	@command -v cmake >/dev/null || { echo "cmake is missing: 'make deps' installs what is needed"; exit 1; }
	@$(CMAKE) -S . -B $(RELEASE) -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release $(COMPILER) --log-level=WARNING

build: $(RELEASE)/Makefile
	@$(CMAKE) --build $(RELEASE) -j $(JOBS)

demo:
	@tools/install-deps.sh demo
	@$(MAKE) --no-print-directory $(RELEASE)/Makefile >/dev/null
	@echo "building $(RELEASE)/cli/modefold"
	@$(CMAKE) --build $(RELEASE) -j $(JOBS) --target modefold_cli >$(RELEASE)/build.log 2>&1 || \
		{ tail -n 60 $(RELEASE)/build.log; exit 1; }
	@$(RELEASE)/cli/modefold demo

check:
	@tools/install-deps.sh check || echo "going on with what is there"
	@tools/run-tests.sh $(STAGES)

test: build
	@cd $(RELEASE) && ctest --output-on-failure -j $(JOBS)

lint:
	@tools/lint.sh

bench: $(RELEASE)/Makefile
	@$(CMAKE) --build $(RELEASE) -j $(JOBS) --target benches
	@for bench in $(RELEASE)/bench/bench_$(BENCH); do "$$bench" || exit 1; done

gpu-check: build
	@JOBS=$(JOBS) tools/gpu-check.sh $(RELEASE)

gpu-bench: build
	@tools/gpu-bench.sh $(RELEASE)/libmodefold.so $(GPU_BENCH)

fuzz:
	@tools/run-tests.sh fuzz $(SECONDS)

install: build
	@$(CMAKE) --install $(RELEASE) --prefix $(PREFIX)

deps:
	@tools/install-deps.sh check

clean:
	rm -rf build
