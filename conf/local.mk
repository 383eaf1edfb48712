# conf/: commented examples; an admin copies them to $(sysconfdir)/pkeyd
dist_doc_DATA += conf/partitions.yaml conf/pkeyd.yaml
# For Prometheus and Grafana; an admin refers to these files or copies them.
dist_pkgdata_DATA = conf/alerts.yml conf/grafana-dashboard.json
