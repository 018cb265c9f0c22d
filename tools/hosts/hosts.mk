# Programs of others under the library: run.py, one host at a time, as root (namespaces).
#
#   make hosts             all, 90 minutes at most; the table of doc/internals/notebook/hosts.md
#   make hosts HOSTS=NAME  one or more, with the reasons and where the logs are; no table
#   make hosts HOSTS=list  their names and packages
#   make hosts-table       the table again, from the results that there are
#   make deps-hosts        the Debian packages of all hosts, some 4 GB

HOSTS       ?=
HOSTS_BUILD := $(BUILD)/hosts
HOSTS_RUN    = /usr/bin/python3 -B tools/hosts/run.py --build $(BUILD) --output $(HOSTS_BUILD) \
               $(HOSTS_OPTIONS)

$(TEST_BUILD)/check_memlogs: tools/hosts/check_memlogs.cc $(TEST_BUILD)/obj/host/memlog_file.o
	$(call say,LINK,$@)
	$(Q)$(CXX) $(CPPFLAGS) $(filter-out -MMD -MP,$(TEST_FLAGS)) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(HOST_TEST_LIBS)
TEST_EXTRA += $(TEST_BUILD)/check_memlogs

.PHONY: hosts hosts-table deps-hosts
hosts: $(if $(filter list,$(HOSTS)),,all $(TEST_BUILD)/check_memlogs)
ifeq ($(HOSTS),list)
	@$(HOSTS_RUN) --list
else ifneq ($(HOSTS),)
	@$(HOSTS_RUN) $(HOSTS)
else
	@rm -rf $(HOSTS_BUILD); $(HOSTS_RUN); status=$$?; \
	    $(MAKE) --no-print-directory hosts-table && exit $$status
endif
hosts-table:
	@/usr/bin/python3 -B tools/hosts/document.py --results $(HOSTS_BUILD)/results \
	    --document doc/internals/notebook/hosts.md
deps-hosts:
	@mkdir -p $(HOSTS_BUILD)
	@$(HOSTS_RUN) --list | awk '{ for (i = 3; i <= NF; ++i) print $$i }' | sort -u >$(HOSTS_BUILD)/packages
	@tests/install_packages.sh $(HOSTS_BUILD)/packages
