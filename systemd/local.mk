# systemd/: the unit, the message catalog and the policy of the bus
systemdsystemunit_DATA = systemd/pkeyd.service
dist_systemdcatalog_DATA = systemd/pkeyd.catalog
# Where the distribution's policies are; those of the administrator are in /etc.
dist_dbuspolicy_DATA = systemd/org.pkeyd1.conf
EXTRA_DIST += systemd/pkeyd.service.in
CLEANFILES += systemd/pkeyd.service

# $$MAINPID is systemd's, not make's: the reload line cannot come through a variable of this Makefile.
systemd/pkeyd.service: systemd/pkeyd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	case '$(SERVICE_TYPE)' in \
	notify-reload) reload='# SIGHUP is sent by Type=notify-reload itself' ;; \
	*) reload='ExecReload=/bin/kill -HUP $$MAINPID' ;; \
	esac && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@SERVICE_TYPE[@]|$(SERVICE_TYPE)|g' -e "s|@SERVICE_RELOAD[@]|$$reload|g" \
		$(srcdir)/systemd/pkeyd.service.in > $@.tmp && mv $@.tmp $@
