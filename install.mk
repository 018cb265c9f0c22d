# The manual pages, the completion for shells, what pkg-config and CMake read, and where all of it is
# installed.
# What commands and options there are is asked of memlog itself.

INCDIR  ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/mtrace
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASH_COMPLETIONS ?= $(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS  ?= $(PREFIX)/share/zsh/site-functions
FISH_COMPLETIONS ?= $(PREFIX)/share/fish/vendor_completions.d

SHARE       ?= $(BUILD)/share
PAGES       := $(patsubst doc/man/%.in,$(SHARE)/man/%,$(wildcard doc/man/*.in))
UNITS       := $(SHARE)/systemd/memlog-serve.service $(SHARE)/systemd/mtrace.conf
CMAKE_FILES := $(addprefix $(SHARE)/cmake/mtrace-config,.cmake -version.cmake)
COMPLETIONS := $(addprefix $(SHARE)/completion/memlog.,bash zsh fish)
DOCUMENTS   := README LICENSE index.html $(wildcard doc/performance/*.svg doc/pictures/*.svg \
               doc/pictures/*.png doc/examples/*.* doc/examples/project/*) \
               $(filter-out doc/internals/contributing.md,$(wildcard doc/*.md doc/internals/*.md \
               doc/internals/notebook/*.md))
# Each function of the header has a page, which is a link to that of mtrace_report.
parenthesis := (
API_FUNCTIONS := $(shell sed -n -e '/How the library is found/q' -e 's/$(parenthesis).*//' \
    -e '/^MTRACE_INTERNAL_[FI][A-Z]* .* mtrace_/s/.* //p' include/mtrace.h)
API_LINKS := $(filter-out mtrace_report,$(API_FUNCTIONS))

# Written anew only where it differs, since the paths are not the same in every run of make.
PATHS := $(VERSION) $(PREFIX) $(LIBDIR) $(BINDIR) $(INCDIR) $(DOCDIR)
$(SHARE)/paths: always
	@mkdir -p $(@D)
	@echo '$(PATHS)' | cmp -s - $@ || echo '$(PATHS)' >$@
.PHONY: always share uninstall

share: $(PAGES) $(UNITS) $(COMPLETIONS) $(SHARE)/mtrace.pc $(CMAKE_FILES)

comma := ,
space := $(empty) $(empty)
# From the directory of CMake's files to another.
cmake_to = $(shell realpath -ms --relative-to='$(LIBDIR)/cmake/mtrace' '$(1)')
fill_in = sed -e 's|@VERSION@|$(VERSION)|g; s|@PREFIX@|$(PREFIX)|g; s|@LIBDIR@|$(LIBDIR)|g' \
              -e 's|@BINDIR@|$(BINDIR)|g; s|@INCDIR@|$(INCDIR)|g; s|@DOCDIR@|$(DOCDIR)|g' \
              -e 's|@CMAKE_TO_INCDIR@|$(call cmake_to,$(INCDIR))|' \
              -e 's|@CMAKE_TO_LIBDIR@|$(call cmake_to,$(LIBDIR))|' \
              -e 's|@CMAKE_TO_BINDIR@|$(call cmake_to,$(BINDIR))|' \
              -e 's|@NAMES@|$(subst $(space),$(comma) ,$(API_FUNCTIONS))|' \
              -e '/^@COMMANDS@$$/{r $(SHARE)/commands.roff' -e 'd}' \
              -e '/^@OPTIONS@$$/{r $(SHARE)/options.roff' -e 'd}'
help = $(if $(CROSS),$(EMULATOR)) $(BUILD)/memlog help
$(SHARE)/commands.roff: $(BUILD)/memlog
	@mkdir -p $(@D)
	$(Q)$(help) --roff >$@
$(SHARE)/options.roff: $(BUILD)/memlog
	@mkdir -p $(@D)
	$(Q)$(help) options --roff >$@
$(SHARE)/man/%: doc/man/%.in $(SHARE)/commands.roff $(SHARE)/options.roff $(SHARE)/paths \
    include/mtrace.h install.mk
	@mkdir -p $(@D)
	$(call say,PAGE,$@)
	$(Q)$(fill_in) $< >$@
$(SHARE)/completion/memlog.%: $(BUILD)/memlog
	@mkdir -p $(@D)
	$(call say,SHELL,$@)
	$(Q)$(help) --completion $* >$@
$(SHARE)/systemd/%: doc/systemd/%.in $(SHARE)/paths install.mk
	@mkdir -p $(@D)
	$(call say,UNIT,$@)
	$(Q)$(fill_in) $< >$@
$(SHARE)/mtrace.pc: doc/mtrace.pc.in $(SHARE)/paths install.mk
	$(call say,PC,$@)
	$(Q)$(fill_in) $< >$@
$(SHARE)/cmake/%: doc/cmake/%.in $(SHARE)/paths install.mk
	@mkdir -p $(@D)
	$(call say,CMAKE,$@)
	$(Q)$(fill_in) $< >$@

# Another pair of the same, for other paths: deb.mk.
LIBRARY ?= $(BUILD)/libmtrace.so
TOOL    ?= $(BUILD)/memlog
# What install puts where: SOURCE:MODE:PLACE, and the links between pages.
INSTALLED := $(LIBRARY):755:$(LIBDIR)/libmtrace.so $(TOOL):755:$(BINDIR)/memlog \
    $(HTTP):644:$(LIBDIR)/mtrace/memlog-http.so $(REPLAY):755:$(LIBDIR)/mtrace/memlog-replay \
    $(foreach h,mtrace.h mtrace_gtest.h mtrace_resources.h,include/$(h):644:$(INCDIR)/$(h)) \
    $(foreach p,$(notdir $(PAGES)),$(SHARE)/man/$(p):644:$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(p)) \
    $(SHARE)/completion/memlog.bash:644:$(BASH_COMPLETIONS)/memlog \
    $(SHARE)/completion/memlog.zsh:644:$(ZSH_COMPLETIONS)/_memlog \
    $(SHARE)/completion/memlog.fish:644:$(FISH_COMPLETIONS)/memlog.fish \
    $(SHARE)/mtrace.pc:644:$(LIBDIR)/pkgconfig/mtrace.pc \
    $(foreach f,$(notdir $(CMAKE_FILES)),$(SHARE)/cmake/$(f):644:$(LIBDIR)/cmake/mtrace/$(f)) \
    $(SHARE)/systemd/memlog-serve.service:644:$(UNITDIR)/memlog-serve.service \
    $(SHARE)/systemd/mtrace.conf:644:$(DOCDIR)/doc/systemd/mtrace.conf \
    $(foreach d,$(DOCUMENTS),$(d):644:$(DOCDIR)/$(d))
LINK_PAGES := $(foreach f,$(API_LINKS),$(MANDIR)/man3/$(f).3)
INSTALLED_FILES := $(foreach i,$(INSTALLED),$(lastword $(subst :, ,$(i)))) $(LINK_PAGES)

install: all share $(LIBRARY) $(TOOL) $(HTTP) $(REPLAY)
	$(Q)for entry in $(INSTALLED); do IFS=: read -r from mode to <<<"$$entry"; \
	    install -D -m "$$mode" "$$from" "$(DESTDIR)$$to" || exit 1; done
	$(Q)for page in $(LINK_PAGES); do \
	    echo '.so man3/mtrace_report.3' >"$(DESTDIR)$$page" && chmod 644 "$(DESTDIR)$$page" || exit 1; \
	done
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

# Under DESTDIR directories that are empty then go, too; elsewhere only the one that is ours, since
# the others may have been there before.
uninstall:
	$(Q)rm -f $(foreach f,$(INSTALLED_FILES),"$(DESTDIR)$(f)")
	$(Q)if [ -z "$(DESTDIR)" ]; then \
	    rmdir $(LIBDIR)/mtrace $(LIBDIR)/cmake/mtrace $(DOCDIR)/doc/performance $(DOCDIR)/doc/pictures $(DOCDIR)/doc/systemd $(DOCDIR)/doc/examples/project $(DOCDIR)/doc/examples $(DOCDIR)/doc/internals/notebook $(DOCDIR)/doc/internals $(DOCDIR)/doc $(DOCDIR) 2>/dev/null || true; \
	else for file in $(INSTALLED_FILES); do \
	    (cd "$(DESTDIR)" 2>/dev/null && rmdir -p ".$$(dirname "$$file")" 2>/dev/null) || true; \
	done; fi
	$(call say,REMOVE,$(DESTDIR)$(PREFIX))
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
