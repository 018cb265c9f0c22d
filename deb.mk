# make deb-test: it is installed in a new Debian, works, and leaves nothing when it is removed.
# make deb: a Debian package of what install.mk installs, with its fields from doc/deb/control.in.
# The programs find each other by where they are, but where /proc is not mounted only at the paths
# they were built for: what knows these is compiled once more, for /usr.

DEB_DIR  ?= $(BUILD)/deb
DEB_ROOT := $(DEB_DIR)/root
DEB_ARCHITECTURE = $(shell dpkg --print-architecture)
DEB ?= $(BUILD)/mtrace_$(VERSION)_$(DEB_ARCHITECTURE).deb
DEB_BINARIES = $(DEB_ROOT)/usr/bin/memlog $(DEB_ROOT)/usr/lib/$(MULTIARCH)/libmtrace.so \
               $(addprefix $(DEB_ROOT)/usr/lib/$(MULTIARCH)/mtrace/,memlog-http.so memlog-replay)

DEB_PATHS := PREFIX=/usr LIBDIR=/usr/lib/$(MULTIARCH) BINDIR=/usr/bin
$(DEB_DIR)/installation.o: src/libmtrace/life/installation.cc
	$(call say,CXX,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(LIB_FLAGS)) $(CXXFLAGS) -c $< -o $@
$(DEB_DIR)/preload.o: src/memlog/process/run/preload.cc
	$(call say,CXX,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(TOOL_FLAGS)) $(CXXFLAGS) -c $< -o $@
$(DEB_DIR)/libmtrace.so: $(filter-out %/life/installation.o,$(LIB_OBJ)) $(DEB_DIR)/installation.o
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LIB_LINK) $(LDFLAGS) -o $@ $^ -lc
$(DEB_DIR)/memlog: $(filter-out %/process/run/preload.o,$(TOOL_OBJ)) $(DEB_DIR)/preload.o
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) $(TOOL_LINK) -o $@ $^ $(TOOL_LIBS)

.PHONY: deb
deb: all
	$(Q)rm -rf $(DEB_DIR)
	$(Q)umask 022 && mkdir -p $(DEB_ROOT)/DEBIAN $(DEB_DIR)/debian
	$(Q)umask 022 && $(MAKE) --no-print-directory install $(DEB_PATHS) \
	    DESTDIR='$(abspath $(DEB_ROOT))' SHARE=$(DEB_DIR)/share LIBRARY=$(DEB_DIR)/libmtrace.so \
	    TOOL=$(DEB_DIR)/memlog
	$(Q)strip --strip-unneeded $(DEB_BINARIES) && chmod 644 $(filter %.so,$(DEB_BINARIES))
	$(Q)find $(DEB_ROOT)/usr/share/man -type f -exec gzip -9n {} +
	$(Q)mv $(DEB_ROOT)/usr/share/doc/mtrace/LICENSE $(DEB_ROOT)/usr/share/doc/mtrace/copyright
	$(Q)gzip -9n <doc/deb/changelog >$(DEB_ROOT)/usr/share/doc/mtrace/changelog.gz
	$(Q)install -D -m 644 doc/deb/lintian-overrides $(DEB_ROOT)/usr/share/lintian/overrides/mtrace
	$(Q)echo 'activate-noawait ldconfig' >$(DEB_ROOT)/DEBIAN/triggers
	$(Q)printf 'Source: mtrace\n\nPackage: mtrace\nArchitecture: any\n' >$(DEB_DIR)/debian/control
	$(Q)cd $(DEB_DIR) && dpkg-shlibdeps -Tsubstvars $(foreach b,$(DEB_BINARIES),'$(abspath $(b))')
	$(Q)depends=$$(sed -n 's/^shlibs:Depends=//p' $(DEB_DIR)/substvars) && [ -n "$$depends" ] && \
	    size=$$(find $(DEB_ROOT)/usr -type f -printf '%s\n' | awk '{ n += $$1 } END { print int((n + 1023) / 1024) }') && \
	    sed -e "s|@VERSION@|$(VERSION)|; s|@ARCHITECTURE@|$(DEB_ARCHITECTURE)|; s|@SIZE@|$$size|" \
	        -e "s|@DEPENDS@|$$depends|" doc/deb/control.in >$(DEB_ROOT)/DEBIAN/control
	$(Q)chmod -R u=rwX,go=rX $(DEB_ROOT)
	$(Q)cd $(DEB_ROOT) && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums
	$(Q)find $(DEB_ROOT) -exec touch --no-dereference --date=@$(SOURCE_DATE_EPOCH) {} +
	$(Q)dpkg-deb --root-owner-group --build $(DEB_ROOT) $(DEB) >/dev/null
	$(call say,DEB,$(DEB))

# Installed in a new Debian of this machine's release, with the packages it asks for and no others,
# run there and removed. Needs root, debootstrap and a mirror: this machine's.
.PHONY: deb-test
deb-test: deb
	@tests/deb_test.sh $(DEB) $(BUILD)/deb-test
