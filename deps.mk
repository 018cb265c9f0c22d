# What has to be on the machine. Building and testing look whether it is there, and install nothing:
# that is for `make deps` (to build), `make deps-test` (to test), `make deps-aarch64` (both for arm64, in
# emulation) and `make deps-dist` (to package), as root or with sudo.

.PHONY: deps deps-test deps-aarch64 deps-dist
deps:
	@tests/install_packages.sh packages.txt
deps-test: deps
	@tests/install_packages.sh tests/packages.txt
	@mkdir -p $(BUILD)
	@tests/install_npm.sh tests/npm_packages.txt $(BUILD)/npm
deps-aarch64: deps-test
	@tests/install_packages.sh tests/packages_aarch64.txt
deps-dist: deps
	@tests/install_packages.sh doc/dist/packages.txt

# `make deps demo` installs first.
installing := $(filter deps deps-test deps-aarch64 deps-dist,$(MAKECMDGOALS))

# One run of the preprocessor, which leaves the packages whose header it does not find.
missing_headers = sed -n 's/^\([^ \#]*\) \(.*\)/\#if !__has_include(<\2>)\nmissing: \1\n\#endif/p' \
                      packages.txt | $(CXX) -E -P -x c++ - | sed -n 's/^missing: *//p' | tr -d ' '
make_deps := make deps$(if $(CROSS),-$(ARCH))
$(BUILD)/.build-deps: packages.txt deps.mk | $(installing)
	@command -v $(firstword $(CXX)) >/dev/null || { \
	  echo 'mtrace: no compiler: $(CXX). $(make_deps) installs $(firstword $(CXX)) and all that building needs' >&2; \
	  exit 1; }
	@missing=$$($(missing_headers)); [ -z "$$missing" ] || { \
	  echo "mtrace: building needs" $$missing"; $(make_deps) installs them" >&2; exit 1; }
	@mkdir -p $(@D)
	@touch $@
# Where there is no dpkg it is not known what is missing: the tests that need it fail.
$(BUILD)/.test-deps: tests/packages.txt tests/npm_packages.txt deps.mk $(BUILD)/.build-deps | $(installing)
	@missing=$$(tests/install_packages.sh --missing tests/packages.txt); [ -z "$$missing" ] || { \
	  echo "mtrace: the tests need" $$missing"; make deps-test installs them" >&2; exit 1; }
	@mkdir -p $(@D); [ -d $(BUILD)/npm ] || [ ! -d build/npm ] || \
	  ln -s '$(abspath build/npm)' $(BUILD)/npm  # another build's
	@[ -d $(BUILD)/npm ] || { \
	  echo "mtrace: the tests need packages of npm; make deps-test installs them" >&2; exit 1; }
	@touch $@
$(BUILD)/.aarch64-deps: tests/packages_aarch64.txt deps.mk | $(installing)
	@missing=$$(tests/install_packages.sh --missing $<); [ -z "$$missing" ] || { \
	  echo "mtrace: check-aarch64 needs" $$missing"; make deps-aarch64 installs them" >&2; exit 1; }
	@mkdir -p $(@D); touch $@
