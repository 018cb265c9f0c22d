# What is given to others. make reproducible: two builds of the same sources are equal.

# What a package says of its time: the date of the newest version in CHANGELOG.
CHANGELOG_DATE := $(shell sed -n 's/^[0-9][0-9.]* (\(.*\))$$/\1/p;T;q' CHANGELOG)
export SOURCE_DATE_EPOCH ?= $(shell date -u -d '$(CHANGELOG_DATE)' +%s)

# Builds what git has as HEAD twice: some minutes.
.PHONY: reproducible
reproducible:
	@tests/reproducible.sh '$(BUILD)/reproducible' '$(MAKE)'
