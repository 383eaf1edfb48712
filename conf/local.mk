# conf/: commented examples; an admin copies them to $(sysconfdir)/pkeyd
dist_doc_DATA += conf/partitions.yaml conf/pkeyd.yaml
# For Prometheus and Grafana, which an admin refers to or copies; for editors, which the examples refer to.
dist_pkgdata_DATA = conf/alerts.yml conf/grafana-dashboard.json conf/partitions.schema.json conf/pkeyd.schema.json
EXAMPLES = partitions.yaml pkeyd.yaml
if ENABLE_REST
dist_doc_DATA += conf/rest.yaml
dist_pkgdata_DATA += conf/rest.schema.json
EXAMPLES += rest.yaml
endif

install-data-hook:
	for file in $(EXAMPLES); do \
		sed -i 's|^\(# yaml-language-server: $$schema=\).*/|\1$(pkgdatadir)/|' "$(DESTDIR)$(docdir)/$$file" || exit; \
	done
