# The manual pages, the completion for shells, what pkg-config and CMake read, where all of it is
# installed, and the packages. What commands and options there are is asked of memlog itself.

DOCDIR    := $(PREFIX)/share/doc/mtrace
SHARE     ?= $(or $(STAGE),$(BUILD))/share
# Made of SOURCE.in: manual pages, units of systemd, and files for pkg-config and CMake.
TEMPLATES := $(patsubst doc/%.in,%,$(wildcard doc/man/*.in doc/systemd/*.in doc/cmake/*.in doc/mtrace.pc.in))
PAGES     := $(notdir $(filter man/%,$(TEMPLATES)))
DOCUMENTS := README LICENSE index.html $(wildcard doc/performance/*.svg doc/pictures/*.svg \
             doc/pictures/*.png doc/examples/*.* doc/examples/project/*) \
             $(filter-out doc/internals/contributing.md,$(wildcard doc/*.md doc/internals/*.md))
# Each function of the header has a page, which is a link to that of mtrace_report.
API_FUNCTIONS := $(shell sed -n -e '/How the library is found/q' -e 's/\x28.*//' \
                   -e '/^MTRACE_INTERNAL_[FI][A-Z]* .* mtrace_/s/.* //p' include/mtrace.h)

share: $(TEMPLATES:%=$(SHARE)/%) $(foreach s,bash zsh fish,$(SHARE)/completion/memlog.$(s))
# The paths are not the same in every run of make.
$(SHARE)/paths: always
	$(call keep,$(VERSION) $(PREFIX) $(LIBDIR))
empty :=
comma := ,
help   = $(if $(CROSS),$(EMULATOR)) $(BUILD)/memlog help
$(SHARE)/commands.roff $(SHARE)/options.roff: $(BUILD)/memlog
	$(call run,HELP,$@)$(help) $(filter options,$(basename $(@F))) --roff >$@
$(SHARE)/completion/memlog.%: $(BUILD)/memlog
	$(call run,SHELL,$@)$(help) --completion $* >$@
$(SHARE)/%: doc/%.in $(SHARE)/commands.roff $(SHARE)/options.roff $(SHARE)/paths include/mtrace.h
	$(call run,FILE,$@)sed -e 's|@VERSION@|$(VERSION)|g; s|@PREFIX@|$(PREFIX)|g; s|@LIBDIR@|$(LIBDIR)|g' \
	    -e 's|@TO_PREFIX@|$(shell realpath -ms --relative-to='$(LIBDIR)/cmake/mtrace' '$(PREFIX)')|' \
	    -e 's|@NAMES@|$(subst $(empty) $(empty),$(comma) ,$(API_FUNCTIONS))|' \
	    -e '/^@COMMANDS@$$/{r $(SHARE)/commands.roff' -e 'd}' \
	    -e '/^@OPTIONS@$$/{r $(SHARE)/options.roff' -e 'd}' $< >$@

# What install puts where: SOURCE:MODE:PLACE, and the links between pages.
INSTALLED := $(BUILD)/libmtrace.so:755:$(LIBDIR)/libmtrace.so $(BUILD)/memlog$(STATIC):755:$(PREFIX)/bin/memlog \
    $(if $(STATIC),,$(HTTP):644:$(LIBDIR)/mtrace/memlog-http.so) $(REPLAY):755:$(LIBDIR)/mtrace/memlog-replay \
    $(foreach h,mtrace.h mtrace_gtest.h mtrace_resources.h,include/$(h):644:$(PREFIX)/include/$(h)) \
    $(foreach p,$(PAGES),$(SHARE)/man/$(p):644:$(PREFIX)/share/man/man$(subst .,,$(suffix $(p)))/$(p)) \
    $(SHARE)/completion/memlog.bash:644:$(PREFIX)/share/bash-completion/completions/memlog \
    $(SHARE)/completion/memlog.zsh:644:$(PREFIX)/share/zsh/site-functions/_memlog \
    $(SHARE)/completion/memlog.fish:644:$(PREFIX)/share/fish/vendor_completions.d/memlog.fish \
    $(SHARE)/mtrace.pc:644:$(LIBDIR)/pkgconfig/mtrace.pc \
    $(foreach f,$(filter cmake/%,$(TEMPLATES)),$(SHARE)/$(f):644:$(LIBDIR)/cmake/mtrace/$(notdir $(f))) \
    $(if $(STATIC),,$(SHARE)/systemd/memlog-serve.service:644:$(PREFIX)/lib/systemd/system/memlog-serve.service) \
    $(SHARE)/systemd/mtrace.conf:644:$(DOCDIR)/doc/systemd/mtrace.conf \
    $(foreach d,$(DOCUMENTS),$(d):644:$(DOCDIR)/$(d))
LINK_PAGES := $(foreach f,$(filter-out mtrace_report,$(API_FUNCTIONS)),$(PREFIX)/share/man/man3/$(f).3)
INSTALLED_FILES := $(foreach i,$(INSTALLED),$(lastword $(subst :, ,$(i)))) $(LINK_PAGES)
to_system = @if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
install: all share $(BUILD)/memlog$(STATIC)
	$(Q)for entry in $(INSTALLED); do IFS=: read -r from mode to <<<"$$entry"; \
	    install -D -m "$$mode" "$$from" "$(DESTDIR)$$to" || exit 1; done
	$(Q)for page in $(LINK_PAGES); do \
	    echo '.so man3/mtrace_report.3' >"$(DESTDIR)$$page" && chmod 644 "$(DESTDIR)$$page" || exit 1; done
	@echo "  INSTALL  $(DESTDIR)$(PREFIX)"
	$(to_system)
# Under DESTDIR directories that are empty then go, too; elsewhere only the one that is ours, since
# the others may have been there before.
OWN_DIRS := $(LIBDIR)/mtrace $(LIBDIR)/cmake/mtrace $(addprefix $(DOCDIR),/doc/performance /doc/pictures \
            /doc/systemd /doc/examples/project /doc/examples /doc/internals /doc) $(DOCDIR)
uninstall:
	$(Q)rm -f $(foreach f,$(INSTALLED_FILES),"$(DESTDIR)$(f)")
	$(Q)if [ -z "$(DESTDIR)" ]; then rmdir $(OWN_DIRS) 2>/dev/null || true; \
	else for file in $(INSTALLED_FILES); do \
	    (cd "$(DESTDIR)" 2>/dev/null && rmdir -p ".$$(dirname "$$file")" 2>/dev/null) || true; done; fi
	@echo "  REMOVE  $(DESTDIR)$(PREFIX)"
	$(to_system)

# ---- Packages. For systems that lack Debian's libraries, STATIC=-static. That has no HTTP, since Debian
# has no static library for it. The linker warns of functions of libc that would load libraries;
# src/static replaces them.
STATIC_LIBS := -lgcc_eh -ldw -lelf -liberty -lre2 -lz -lzstd -lsqlite3 -llzma -lbz2 $(ABSL_LIBS)
$(BUILD)/obj/src/static/static_memlog.o: FLAGS = $(TOOL_FLAGS)
$(BUILD)/memlog-static: $(TOOL_OBJ) $(BUILD)/obj/src/static/static_memlog.o | $(BUILD)/.dist-deps
	$(call run,LINK,$@)$(CXX) $(LDFLAGS) -static-pie -o $@ $^ -Wl,--start-group $(STATIC_LIBS) \
	    -Wl,--end-group 2> >(grep -v ' in function \| in statically linked applications ' >&2)

# What a package says of its time: the date of the newest version in CHANGELOG.
export SOURCE_DATE_EPOCH ?= $(shell date -u -d "$$(sed -n 's/^[0-9][0-9.]* (\(.*\))$$/\1/p;T;q' CHANGELOG)" +%s)
package_env = MAKE='$(MAKE)' VERSION=$(VERSION) ARCH=$(ARCH) CROSS=$(CROSS) MULTIARCH=$(MULTIARCH) CXX='$(CXX)' SIGN='$(SIGN)' \
    STATIC_LIBS='$(STATIC_LIBS)' DEB_ARCHITECTURE=$(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(ARCH)))
.PHONY: $(PACKAGES) dist
# Each script installs by MAKE below STAGE, and puts its package into OUT.
OUT ?= $(BUILD)
# Linked here: the makes of two packages that run at once would both write it.
rpm tarball: $(BUILD)/memlog-static
$(PACKAGES): all
	+@$(package_env) packaging/$@.sh '$(or $(STAGE),$(BUILD)/$@)' '$(OUT)'
dist: $(PACKAGES)
	@$(package_env) packaging/dist.sh '$(OUT)' '$(BUILD)/dist'
