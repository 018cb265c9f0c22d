# What is given to others. make reproducible: two builds of the same sources are equal.

# What a package says of its time: the date of the newest version in CHANGELOG.
CHANGELOG_DATE := $(shell sed -n 's/^[0-9][0-9.]* (\(.*\))$$/\1/p;T;q' CHANGELOG)
export SOURCE_DATE_EPOCH ?= $(shell date -u -d '$(CHANGELOG_DATE)' +%s)

$(BUILD)/.dist-deps: doc/dist/packages.txt | $(BUILD)/.build-deps $(installing)
	@missing=$$(tests/install_packages.sh --missing doc/dist/packages.txt); [ -z "$$missing" ] || { \
	  echo "mtrace: packaging needs" $$missing"; make deps-dist installs them" >&2; exit 1; }
	@touch $@

# Builds what git has as HEAD twice: some minutes.
.PHONY: reproducible
reproducible:
	@tests/reproducible.sh '$(BUILD)/reproducible' '$(MAKE)'
