# make deb: Debian packages of what install.mk installs: libmtrace has the library, mtrace all else.
# make deb-test: they are installed in a new Debian, work, and leave nothing when they are removed.
# The programs find each other by where they are, but where /proc is not mounted only at the paths
# they were built for: what knows these is compiled once more, for /usr.

DEB_DIR  ?= $(BUILD)/deb
DEB_OUT  ?= $(BUILD)
DEB_ARCHITECTURE = $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(ARCH)))
DEB_NAMES := libmtrace mtrace
DEBS      = $(foreach name,$(DEB_NAMES),$(addprefix $(DEB_OUT)/$(name),_$(VERSION)_$(DEB_ARCHITECTURE).deb \
                -dbgsym_$(VERSION)_$(DEB_ARCHITECTURE).deb))

DEB_PATHS := PREFIX=/usr LIBDIR=/usr/lib/$(MULTIARCH) BINDIR=/usr/bin
$(DEB_DIR)/environment.o: src/libmtrace/life/environment.cc
	$(call say,CXX,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(LIB_FLAGS)) $(CXXFLAGS) -c $< -o $@
$(DEB_DIR)/preload.o: src/memlog/process/run/preload.cc
	$(call say,CXX,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(TOOL_FLAGS)) $(CXXFLAGS) -c $< -o $@
$(DEB_DIR)/libmtrace.so: $(filter-out %/life/environment.o,$(LIB_OBJ)) $(DEB_DIR)/environment.o
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LIB_LINK) $(LDFLAGS) -o $@ $^ -lc
$(DEB_DIR)/memlog: $(filter-out %/process/run/preload.o,$(TOOL_OBJ)) $(DEB_DIR)/preload.o
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) $(TOOL_LINK) -o $@ $^ $(TOOL_LIBS)

.PHONY: deb
deb: all
	$(Q)rm -rf $(DEB_DIR)
	$(Q)umask 022 && mkdir -p $(DEB_DIR)/libmtrace/usr/lib/$(MULTIARCH) $(DEB_DIR)/libmtrace/DEBIAN && \
	    $(MAKE) --no-print-directory install $(DEB_PATHS) \
	    DESTDIR='$(abspath $(DEB_DIR)/mtrace)' SHARE=$(DEB_DIR)/share LIBRARY=$(DEB_DIR)/libmtrace.so \
	    TOOL=$(DEB_DIR)/memlog
	$(Q)find $(DEB_DIR)/mtrace/usr/share/man -type f -exec gzip -9n {} +
	$(Q)rm $(DEB_DIR)/mtrace/usr/share/doc/mtrace/LICENSE
	$(Q)mv $(DEB_DIR)/mtrace/usr/lib/$(MULTIARCH)/libmtrace.so $(DEB_DIR)/libmtrace/usr/lib/$(MULTIARCH)
	$(Q)for name in $(DEB_NAMES); do \
	    install -D -m 644 doc/deb/$$name.lintian-overrides $(DEB_DIR)/$$name/usr/share/lintian/overrides/$$name || exit 1; done
	$(Q)echo 'activate-noawait ldconfig' >$(DEB_DIR)/libmtrace/DEBIAN/triggers
	$(Q)for name in $(DEB_NAMES); do \
	    CROSS=$(CROSS) doc/deb/package.sh $$name $(DEB_DIR)/$$name $(DEB_OUT) $(VERSION) $(DEB_ARCHITECTURE) || exit 1; done
	$(call say,DEB,$(DEBS))

# Installed in a new Debian of this machine's release, with the packages it asks for and no others,
# run there and removed. Needs root, debootstrap and a mirror: this machine's.
.PHONY: deb-test
deb-test: deb $(BUILD)/.dist-deps
	@tests/deb_test.sh $(BUILD)/deb-test $(DEBS)
