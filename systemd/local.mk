# systemd/: the unit, the message catalog and the policy of the bus
systemdsystemunit_DATA = systemd/pkeyd.service
dist_systemdcatalog_DATA = systemd/pkeyd.catalog
# The directory for policies of the distribution; those of the administrator are in /etc.
dist_dbuspolicy_DATA = systemd/org.pkeyd1.conf
EXTRA_DIST += systemd/pkeyd.service.in
CLEANFILES += systemd/pkeyd.service

# $$MAINPID belongs to systemd, not to make, so the reload line cannot be a variable of this Makefile.
systemd/pkeyd.service: systemd/pkeyd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	case '$(SERVICE_TYPE)' in \
	notify-reload) reload='# SIGHUP is sent by Type=notify-reload itself' ;; \
	*) reload='ExecReload=/bin/kill -HUP $$MAINPID' ;; \
	esac && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@SERVICE_TYPE[@]|$(SERVICE_TYPE)|g' -e "s|@SERVICE_RELOAD[@]|$$reload|g" \
		$(srcdir)/systemd/pkeyd.service.in > $@.tmp && mv $@.tmp $@
