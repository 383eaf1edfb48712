# systemd/: the units, the message catalog, the policy of the bus, the users of the services, and the rule for the devices
systemdsystemunit_DATA = systemd/pkeyd.service systemd/pkeyd@.service
dist_systemdcatalog_DATA = systemd/pkeyd.catalog
# The directory for policies of the distribution; those of the administrator are in /etc.
dist_dbuspolicy_DATA = systemd/org.pkeyd1.conf
dist_sysusers_DATA = systemd/sysusers/pkeyd.conf
dist_udevrules_DATA = systemd/udev/70-pkeyd.rules
# To be copied to /etc/systemd/system/pkeyd.service.d/, see pkeyd-opensm(7).
dist_doc_DATA += systemd/pkeyd-etcd.conf systemd/pkeyd-opensm.conf
UNITS = systemd/pkeyd.service systemd/pkeyd-rest.service
TEMPLATES = systemd/pkeyd@.service systemd/pkeyd-rest@.service systemd/pkeyd-rest@.socket
EXTRA_DIST += systemd/pkeyd.service.in systemd/pkeyd-rest.service.in
CLEANFILES += $(UNITS) $(TEMPLATES)

# +: kill runs outside of the sandbox, whose system calls are those of pkeyd.
# $$MAINPID belongs to systemd, not to make, so the reload line cannot be a variable of this Makefile.
$(UNITS): %.service: %.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	case '$(SERVICE_TYPE)' in \
	notify-reload) reload='# SIGHUP is sent by Type=notify-reload itself' ;; \
	*) reload='ExecReload=+/bin/kill -HUP $$MAINPID' ;; \
	esac && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@SERVICE_TYPE[@]|$(SERVICE_TYPE)|g' -e "s|@SERVICE_RELOAD[@]|$$reload|g" \
		$(srcdir)/$@.in > $@.tmp && mv $@.tmp $@

# The units of one of several fabrics: the same, with the name of the fabric.
systemd/%@.service: systemd/%.service
	$(AM_V_GEN)sed -e 's|^Description=.*|& of fabric %i|' -e 's|^ExecStart=.*|& --fabric %i|' -e 's|^StateDirectory=.*|& pkeyd/%i|' \
		-e 's/pkeyd\(-rest\)*\.\(service\|socket\)/pkeyd\1@%i.\2/g' $< > $@.tmp && mv $@.tmp $@

systemd/%@.socket: systemd/%.socket
	$(AM_V_GEN)$(MKDIR_P) systemd && sed -e 's|^Description=.*|& of fabric %i|' $< > $@.tmp && mv $@.tmp $@

if ENABLE_REST
systemdsystemunit_DATA += systemd/pkeyd-rest.service systemd/pkeyd-rest@.service systemd/pkeyd-rest@.socket
dist_systemdsystemunit_DATA = systemd/pkeyd-rest.socket
dist_sysusers_DATA += systemd/sysusers/pkeyd-rest.conf
endif
