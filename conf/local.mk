# conf/: commented examples; an admin copies them to $(sysconfdir)/pkeyd; rest.yaml is for a program that is not built yet
dist_doc_DATA += conf/partitions.yaml conf/pkeyd.yaml
EXTRA_DIST += conf/rest.yaml
# For Prometheus and Grafana, which an admin refers to or copies; for editors, which the examples refer to.
dist_pkgdata_DATA = conf/alerts.yml conf/grafana-dashboard.json conf/partitions.schema.json conf/pkeyd.schema.json

install-data-hook:
	sed -i 's|^\(# yaml-language-server: $$schema=\).*/|\1$(pkgdatadir)/|' \
		'$(DESTDIR)$(docdir)/partitions.yaml' '$(DESTDIR)$(docdir)/pkeyd.yaml'
