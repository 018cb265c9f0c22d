# What is given to others: an archive for any Linux, a package for RPM, and make dist, which puts
# these and the Debian package together. make reproducible: two builds of the same sources are equal.

# What a package says of its time: the date of the newest version in CHANGELOG.
CHANGELOG_DATE := $(shell sed -n 's/^[0-9][0-9.]* (\(.*\))$$/\1/p;T;q' CHANGELOG)
export SOURCE_DATE_EPOCH ?= $(shell date -u -d '$(CHANGELOG_DATE)' +%s)

# A static memlog, from the objects of memlog: for systems that lack Debian's libraries. It has no
# HTTP, since Debian has no static library for that. The linker warns of functions of libc that would
# load libraries; src/static replaces them.
STATIC_LIBS := -lgcc_eh -ldw -lelf -liberty -lre2 -lz -lzstd -lsqlite3 -ledit -ltinfo \
               -lbsd -lmd -llzma -lbz2 $(ABSL_LIBS)
$(DEB_DIR)/preload-static.o: src/memlog/process/run/preload.cc
$(DEB_DIR)/static_memlog.o: src/static/static_memlog.cc
$(DEB_DIR)/preload-static.o $(DEB_DIR)/static_memlog.o:
	$(call say,CXX,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(TOOL_FLAGS)) $(CXXFLAGS) -DMTRACE_STATIC -O2 -c $< -o $@
$(DEB_DIR)/memlog-static: $(filter-out %/process/run/preload.o,$(TOOL_OBJ)) $(DEB_DIR)/preload-static.o \
    $(DEB_DIR)/static_memlog.o
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) -static-pie -o $@ $^ -Wl,--start-group $(STATIC_LIBS) -Wl,--end-group \
	    2> >(grep -v ' in function \| in statically linked applications ' >&2)

$(BUILD)/.dist-deps: doc/dist/packages.txt | $(BUILD)/.build-deps $(installing)
	@missing=$$(tests/install_packages.sh --missing doc/dist/packages.txt); [ -z "$$missing" ] || { \
	  echo "mtrace: packaging needs" $$missing"; make deps-dist installs them" >&2; exit 1; }
	@touch $@

# $(1) folder $(2) PREFIX $(3) LIBDIR: installs into FOLDER/root with the static memlog, without what
# only HTTP needs.
install_static = rm -rf $(1) && mkdir -p $(1)/root && umask 022 && \
    $(MAKE) --no-print-directory install PREFIX=$(2) LIBDIR=$(3) BINDIR=$(2)/bin DESTDIR='$(abspath $(1)/root)' \
        DEB_DIR=$(1) SHARE=$(1)/share LIBRARY=$(1)/libmtrace.so TOOL=$(1)/memlog-static && \
    rm -r $(1)/root$(3)/mtrace/memlog-http.so $(1)/root$(2)/lib/systemd && \
    $(CROSS)strip --strip-unneeded $(1)/root$(2)/bin/memlog $(1)/root$(3)/libmtrace.so $(1)/root$(3)/mtrace/memlog-replay

TARBALL_NAME := mtrace-$(VERSION)-linux-$(ARCH)
TARBALL      ?= $(BUILD)/$(TARBALL_NAME).tar.gz
TARBALL_DIR  := $(BUILD)/tarball
.PHONY: tarball tarball-test
tarball: all $(BUILD)/.dist-deps
	+$(Q)$(call install_static,$(TARBALL_DIR),/usr/local,/usr/local/lib)
	$(Q)sed -i -e 's|^prefix=.*|prefix=$${pcfiledir}/../..|' -e 's|/usr/local|$${prefix}|' \
	    $(TARBALL_DIR)/root/usr/local/lib/pkgconfig/mtrace.pc
	$(Q)tar -c -C $(TARBALL_DIR)/root/usr/local --sort=name --format=ustar --owner=0 --group=0 --numeric-owner \
	    --mtime=@$(SOURCE_DATE_EPOCH) --transform='s|^\.|$(TARBALL_NAME)|' . | gzip -9n >$(TARBALL)
	$(call say,TAR,$(TARBALL))
# Run in roots of other systems. Needs root, debootstrap and mirrors; five minutes.
tarball-test: tarball $(BUILD)/tests/programs/foreign_musl
	@tests/tarball_test.sh $(TARBALL) $(BUILD)/tarball-test $(BUILD)/tests/programs/foreign_musl

RPM     ?= $(BUILD)/mtrace-$(VERSION)-1.$(ARCH).rpm
RPM_DIR := $(BUILD)/rpm
# rpmbuild takes no path with a space.
.PHONY: rpm rpm-test
rpm: all $(BUILD)/.dist-deps
	+$(Q)$(call install_static,$(RPM_DIR),/usr,/usr/lib64)
	$(Q)find $(RPM_DIR)/root/usr/share/man -type f -exec gzip -9n {} +
	$(Q)(cd $(RPM_DIR)/root && find usr ! -type d -printf '/%p\n' && \
	    find usr -type d -path '*mtrace*' -printf '%%dir /%p\n') | LC_ALL=C sort >$(RPM_DIR)/files
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' \
	    -e "s|@DATE@|$$(LC_ALL=C date -u -d @$(SOURCE_DATE_EPOCH) '+%a %b %d %Y')|" doc/dist/mtrace.spec.in >$(RPM_DIR)/mtrace.spec
	$(Q)top=$$(mktemp -d) && trap 'rm -r $$top' EXIT && ln -s '$(abspath $(RPM_DIR))' $$top/rpm && \
	    sed -i "s|@TOP@|$$top/rpm|" $(RPM_DIR)/mtrace.spec && \
	    rpmbuild -bb --quiet --define "_topdir $$top/rpm" --define '_buildhost localhost' \
	    --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
	    --define '_build_id_links none' --target $(ARCH) $$top/rpm/mtrace.spec
	$(Q)mv $(RPM_DIR)/RPMS/$(ARCH)/mtrace-$(VERSION)-1.$(ARCH).rpm $(RPM)
	$(call say,RPM,$(RPM))
rpm-test: rpm
	@tests/rpm_test.sh $(RPM) $(BUILD)/rpm-test

# All of them, for people to fetch. SIGN=KEYID signs the sums.
DIST := $(BUILD)/dist
.PHONY: dist
dist: deb rpm tarball
	$(Q)rm -rf $(DIST) && mkdir -p $(DIST)
	$(Q)cp $(DEBS) $(RPM) $(TARBALL) doc/dist/install.sh $(DIST)
	$(Q)for file in APKBUILD default.nix; do \
	    sed "s|@SHA512@|$$(sha512sum <$(TARBALL) | cut -d' ' -f1)|; s|@VERSION@|$(VERSION)|; s|@ARCH@|$(ARCH)|" \
	        doc/dist/$$file.in >$(DIST)/$$file; done
	$(Q)CXX='$(CXX)' doc/dist/sbom.sh $(VERSION) packages.txt '$(STATIC_LIBS)' $(DEB_ARCHITECTURE) >$(DIST)/mtrace-$(VERSION).spdx.json
	$(Q)cd $(DIST) && LC_ALL=C sha256sum * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS
	$(Q)$(if $(SIGN),gpg --batch --yes --local-user '$(SIGN)' --armor --detach-sign $(DIST)/SHA256SUMS,\
	    echo '  not signed: make dist SIGN=KEYID signs SHA256SUMS')
	$(call say,DIST,$(DIST))

# Builds what git has as HEAD twice: some minutes.
.PHONY: reproducible
reproducible: $(BUILD)/.dist-deps
	@tests/reproducible.sh '$(BUILD)/reproducible' '$(MAKE)'
